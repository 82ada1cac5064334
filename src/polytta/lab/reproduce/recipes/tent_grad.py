"""tab:tent-grad: Grad over Tent instead of DeYO, on noise and blur."""

from polytta.data.corruption_names import COMMON_CORRUPTIONS
from polytta.lab.reproduce.tables import BASELINES, TableBlock, TableRecipe

RECIPE = TableRecipe(
    name="tab:tent-grad",
    shows="Grad over Tent, batch size 1, noise and blur, ViT",
    needs="ImageNet-C; weights of ViT-B/16",
    blocks=(
        TableBlock(
            "Batch Size 1",
            "ViTBase-LN",
            "batch1",
            corruptions=COMMON_CORRUPTIONS[:7],
            rows={**BASELINES, "Tent + Grad": "tent_grad"},
            define={"tent_grad": {"method": "tent", "diversity": "grad"}},
        ),
    ),
)
