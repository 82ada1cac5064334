"""tab:cifar-c: CLIP on CIFAR-10-C and CIFAR-100-C. The text says fifteen corruptions, the table has these twelve."""

from polytta.lab.reproduce.tables import TableBlock, TableRecipe

CORRUPTIONS = (
    "gaussian_noise",
    "shot_noise",
    "impulse_noise",
    "speckle_noise",
    "gaussian_blur",
    "brightness",
    "spatter",
    "contrast",
    "elastic_transform",
    "pixelate",
    "jpeg_compression",
    "saturate",
)
CLIP = "CLIP-ViT-B-32"

RECIPE = TableRecipe(
    name="tab:cifar-c",
    shows="CLIP ViT-B/32 on CIFAR-10-C and CIFAR-100-C, mild, severity 5, all methods",
    needs="CIFAR-10-C, CIFAR-100-C; weights of OpenCLIP ViT-B/32 (laion2b_s34b_b79k)",
    blocks=(
        TableBlock("CIFAR-10-C", CLIP, "mild", "CLIP on CIFAR-10", "cifar10-c", CORRUPTIONS),
        TableBlock("CIFAR-100-C", CLIP, "mild", "CLIP on CIFAR-100", "cifar100-c", CORRUPTIONS),
    ),
)
