"""Source models that need more than a name: CLIP with its class names, and two-class ResNets trained by the user."""

from polytta.data.datasets.cifar_classes import CIFAR10_CLASSES, CIFAR100_CLASSES
from polytta.data.datasets.roots import data_root
from polytta.models import SourceModel, create
from polytta.models.preprocessing import IMAGENET_MEAN, IMAGENET_STD, Preprocessing
from polytta.reproduce.places import weights_file

# The paper says OpenCLIP ViT-B/32 and names no weights; these are the ones whose published accuracy fits its figures.
_CLIP = "open_clip/ViT-B-32/laion2b_s34b_b79k"
_CLIP_FILE = "clip_vit_b32_laion2b"


def clip_cifar10() -> SourceModel:
    """CLIP with CIFAR-10's classes; the weights lie in the data folder."""
    return create(_CLIP, weights=weights_file(data_root(None), _CLIP_FILE), classes=CIFAR10_CLASSES)


def clip_cifar100() -> SourceModel:
    """CLIP with CIFAR-100's classes."""
    return create(_CLIP, weights=weights_file(data_root(None), _CLIP_FILE), classes=CIFAR100_CLASSES)
