"""tab:imagenet-c: the main table, single images and label shifts."""

from polytta.lab.reproduce.tables import TableBlock, TableRecipe

RECIPE = TableRecipe(
    name="tab:imagenet-c",
    shows="batch size 1 and label shifts, severity 5, all methods, two models",
    needs="ImageNet-C; weights of ResNet-50-GN and ViT-B/16",
    blocks=(
        TableBlock("Batch Size 1", "ResNet-50-GN", "batch1"),
        TableBlock("Batch Size 1", "ViTBase-LN", "batch1"),
        TableBlock("Label Shifts", "ResNet-50-GN", "label_shift"),
        TableBlock("Label Shifts", "ViTBase-LN", "label_shift"),
    ),
)
