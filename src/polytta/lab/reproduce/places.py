"""Where a recipe runs: on the paper's data in a folder, or on the images and models shipped with the package."""

from dataclasses import dataclass
from pathlib import Path

from polytta.errors import DataError

BUNDLED = "bundled"
WEIGHTS = "weights"
# The demo's learning rate for single images, found on the four extra corruptions with scripts/tune_demo_lr.py; the
# reference rule, which the paper's data get, is for streams of 50,000 images.
BUNDLED_SINGLE_IMAGE_LR = 2.5e-4

# {backbone in the paper: (model, its file in the weights folder, bundled stand-in)}
BACKBONES = {
    "ResNet-50-GN": ("timm/resnet50_gn.a1h_in1k", "resnet50_gn", "bundled/cifar10_resnet_gn"),
    "ViTBase-LN": ("timm/vit_base_patch16_224.augreg_in21k_ft_in1k", "vit_base_patch16_224", "bundled/cifar10_vit_ln"),
    "ResNet-50-BN": ("torchvision/resnet50", "resnet50", "bundled/cifar10_resnet_bn"),
    "CLIP on CIFAR-10": ("polytta.lab.reproduce.networks:clip_cifar10", None, "bundled/mini_clip"),
    "CLIP on CIFAR-100": ("polytta.lab.reproduce.networks:clip_cifar100", None, "bundled/mini_clip"),
    "OpenAI CLIP on CIFAR-100": ("polytta.lab.reproduce.networks:openai_clip_cifar100", None, "bundled/mini_clip"),
    "Waterbirds ResNet-50": (
        "polytta.lab.reproduce.networks:resnet50_two",
        "waterbirds_resnet50",
        "bundled/cifar10_resnet_bn",
    ),
    "ColoredMNIST ResNet-18": (
        "polytta.lab.reproduce.networks:resnet18_two",
        "colored_mnist_resnet18",
        "bundled/cifar10_resnet_bn",
    ),
}
_SUFFIXES = (".safetensors", ".pth", ".pt", ".bin")


@dataclass(frozen=True)
class Place:
    """Data and models of one run.

    Attributes:
        folder: holds the datasets and a folder ``weights``; None for what is shipped.
        quick: a few images of the first corruption, to see that everything works.
    """

    folder: Path | None = None
    quick: bool = False

    @property
    def is_bundled(self) -> bool:
        """Whether the published figures are of other data."""
        return self.folder is None

    @property
    def images(self) -> int | None:
        """Images of each corruption."""
        if self.quick:
            return 4
        return 200 if self.is_bundled else None

    @property
    def batch_size(self) -> int | None:
        """Of scenarios with larger batches; None for the scenario's own 64."""
        return 4 if self.quick else 20 if self.is_bundled else None

    @property
    def seeds(self) -> tuple[int, ...]:
        """The paper has five."""
        if self.quick:
            return (0,)
        return (0, 1) if self.is_bundled else (2021, 2022, 2023, 2024, 2025)

    def model(self, backbone: str) -> str:
        """The model as a grid names it."""
        name, file, shipped = BACKBONES[backbone]
        if self.folder is None:
            return shipped
        if file is None:
            return name
        return f"{name}={weights_file(self.folder, file)}"

    def dataset(self, name: str) -> str:
        """The dataset as a grid names it."""
        return BUNDLED if self.folder is None else f"{name}={self.folder}"

    def lr(self, scenario: str) -> float | None:
        """None for the reference rule."""
        return BUNDLED_SINGLE_IMAGE_LR if self.is_bundled and scenario == "batch1" else None

    def normalisation(self, backbone: str) -> str:
        """As the paper's code had it for ImageNet models, so that its figures can be met."""
        name = BACKBONES[backbone][0]
        return "sar2023" if not self.is_bundled and name.startswith(("timm/", "torchvision/")) else "correct"

    @property
    def description(self) -> str:
        """What was measured on, in words."""
        if self.folder is not None:
            return f"{self.folder}" + (", a few images only" if self.quick else "")
        return f"bundled CIFAR-10 images and models, {self.images} images per corruption"


def weights_file(folder: Path, stem: str) -> Path:
    """The file of a model's weights; nothing is downloaded."""
    found = [path for suffix in _SUFFIXES if (path := folder / WEIGHTS / f"{stem}{suffix}").is_file()]
    if not found:
        raise DataError(
            f"{folder / WEIGHTS / stem}.safetensors: got no file; allowed is the model's published weights."
        )
    return found[0]
