"""tab:noAug: three particles with three optimizers."""

from polytta.lab.reproduce.tables import BASELINES, TableBlock, TableRecipe

OPTIMIZERS = ["sgd", "adam", "adamw"]
ROWS = {
    name: {"method": "deyo", "diversity": kind, "optimizer": OPTIMIZERS}
    for name, kind in (
        ("naive_optimizers", "none"),
        ("svgd_optimizers", "svgd"),
        ("kl_optimizers", "kl"),
        ("grad_optimizers", "grad"),
    )
}

RECIPE = TableRecipe(
    name="tab:noAug",
    shows="a different optimizer per particle (SGD, Adam, AdamW), batch size 1, ViT",
    needs="ImageNet-C; weights of ViT-B/16",
    blocks=(
        TableBlock(
            "Batch Size 1",
            "ViTBase-LN",
            "batch1",
            rows={
                **BASELINES,
                "Naive": "naive_optimizers",
                "SVGD": "svgd_optimizers",
                "KL": "kl_optimizers",
                "Grad": "grad_optimizers",
            },
            define=ROWS,
        ),
    ),
)
