"""tab:augoptim: particles that learn from flipped views too."""

from polytta.lab.reproduce.tables import BASELINES, TableBlock, TableRecipe

ROWS = {
    name: {"method": "deyo", "diversity": kind, "views": "flips"}
    for name, kind in (
        ("naive_flips", "none"),
        ("svgd_flips", "svgd"),
        ("kl_flips", "kl"),
        ("grad_flips", "grad"),
    )
}

RECIPE = TableRecipe(
    name="tab:augoptim",
    shows="horizontal and vertical flips as views to learn from, batch size 1, ViT",
    needs="ImageNet-C; weights of ViT-B/16",
    blocks=(
        TableBlock(
            "Batch Size 1",
            "ViTBase-LN",
            "batch1",
            rows={
                **BASELINES,
                "Naive+Aug": "naive_flips",
                "SVGD+Aug": "svgd_flips",
                "KL+Aug": "kl_flips",
                "Grad+Aug": "grad_flips",
            },
            define=ROWS,
        ),
    ),
)
