"""Source models that need more than a name: CLIP with its class names, and two-class ResNets the user has trained."""

from polytta.data.datasets.cifar_classes import CIFAR10_CLASSES, CIFAR100_CLASSES
from polytta.data.datasets.roots import data_root
from polytta.lab.reproduce.places import weights_file
from polytta.models import SourceModel, create
from polytta.models._torchvision_cpu import import_zoo
from polytta.models.preprocessing import IMAGENET_MEAN, IMAGENET_STD, Preprocessing

# The paper says OpenCLIP ViT-B/32 and names no weights; these are the ones whose published accuracy fits its figures.
_CLIP = "open_clip/ViT-B-32/laion2b_s34b_b79k"
_CLIP_FILE = "clip_vit_b32_laion2b"
# WATT's own tables, from which the paper's is taken, name these.
_OPENAI_CLIP = "open_clip/ViT-B-32/openai"
_OPENAI_CLIP_FILE = "clip_vit_b32_openai"


def clip_cifar10() -> SourceModel:
    """CLIP with CIFAR-10's classes; the weights lie in the data folder."""
    return create(_CLIP, weights=weights_file(data_root(None), _CLIP_FILE), classes=CIFAR10_CLASSES)


def clip_cifar100() -> SourceModel:
    """CLIP with CIFAR-100's classes."""
    return create(_CLIP, weights=weights_file(data_root(None), _CLIP_FILE), classes=_spaced(CIFAR100_CLASSES))


def openai_clip_cifar100() -> SourceModel:
    """OpenAI's CLIP with CIFAR-100's classes in WATT's eight templates."""
    weights = weights_file(data_root(None), _OPENAI_CLIP_FILE)
    return create(_OPENAI_CLIP, weights=weights, classes=_spaced(CIFAR100_CLASSES), templates="watt8")


def _spaced(names: tuple[str, ...]) -> tuple[str, ...]:
    """As people write them."""
    return tuple(name.replace("_", " ") for name in names)


def resnet50_two() -> SourceModel:
    """For Waterbirds, as DeYO's code sees it: every image squeezed to 224 x 224."""
    seen = Preprocessing(IMAGENET_MEAN, IMAGENET_STD, 224, 224, fit="squash")
    return _two_classes("resnet50", seen)


def resnet18_two() -> SourceModel:
    """For ColoredMNIST, as DeYO's code sees it."""
    return _two_classes("resnet18", Preprocessing((0.1307, 0.1307, 0.0), (0.3081, 0.3081, 0.3081), 28, 28))


def _two_classes(name: str, seen: Preprocessing) -> SourceModel:
    network = import_zoo("torchvision").models.get_model(name, weights=None, num_classes=2)
    return SourceModel(name, network, seen, 2, "")
