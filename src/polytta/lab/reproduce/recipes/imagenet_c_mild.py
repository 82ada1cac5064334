"""tab:imagenet-c-mild: one corruption after the other in batches of 64, with BatchNorm."""

from polytta.lab.reproduce.tables import TableBlock, TableRecipe

RECIPE = TableRecipe(
    name="tab:imagenet-c-mild",
    shows="mild: shuffled batches of 64, severity 5, all methods, ResNet-50-BN",
    needs="ImageNet-C; weights of ResNet-50-BN (torchvision V1)",
    blocks=(TableBlock("Mild", "ResNet-50-BN", "mild"),),
)
