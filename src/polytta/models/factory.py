"""One name for every source model: ``create("timm/resnet50_gn.a1h_in1k", weights="model.safetensors")``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from polytta.errors import InputError
from polytta.models.from_bundled import from_bundled
from polytta.models.from_mini_clip import NAME as MINI_CLIP
from polytta.models.from_module import from_module
from polytta.models.from_open_clip import from_open_clip
from polytta.models.from_timm import from_timm
from polytta.models.from_torchvision import from_torchvision
from polytta.models.preprocessing import under_protocol
from polytta.models.record import SourceModel
from polytta.models.weights import WeightsPath

IMAGENET_ZOOS = ("timm", "torchvision")
FORMS = "bundled/NAME, timm/NAME.TAG, torchvision/NAME, open_clip/ARCHITECTURE/TAG, module:function"


def create(
    model_id: str,
    *,
    weights: WeightsPath | None = None,
    num_classes: int | None = None,
    classes: Sequence[str] | None = None,
    templates: str | Sequence[str] | None = None,
    normalisation: str = "correct",
) -> SourceModel:
    """Create a source model; nothing is downloaded, so only bundled models and one's own need no weights.

    Args:
        model_id: bundled/NAME, timm/NAME.TAG, torchvision/NAME, open_clip/ARCHITECTURE/TAG, module:function; each may
            say its weights too, as NAME=FILE.
        weights: A safetensors file, or a torch file that holds tensors only.
        num_classes: Number of logits where it differs from the published weights; not for open_clip.
        classes: Class names, for models that read: open_clip needs them, bundled/mini_clip has CIFAR-10's.
        templates: Sentences for the class names, or a name of ``polytta.clip.TEMPLATES``; by default "photo" for
            open_clip and "watt8" for bundled/mini_clip.
        normalisation: ``correct`` (the model's own) or ``sar2023`` (ImageNet's for every ImageNet model).
    """
    model_id, equals, file = model_id.partition("=")
    if equals and weights is not None:
        raise InputError(f"weights: got {weights} beside {model_id}={file}; allowed is one of the two.")
    weights = file if equals else weights
    source, slash, name = model_id.partition("/")
    if source == "bundled":
        model = from_bundled(name, weights, num_classes, classes, templates)
    elif source == "timm":
        model = from_timm(name, weights, num_classes)
    elif source == "torchvision":
        model = from_torchvision(name, weights, num_classes)
    elif source == "open_clip":
        model = from_open_clip(name, weights, classes, "photo" if templates is None else templates)
    elif ":" in model_id and not slash:
        model = from_module(model_id, weights)
    else:
        raise InputError(f"model: got {model_id!r}; allowed are {FORMS}.")
    for argument, given in {"classes": classes, "templates": templates}.items():
        if given is not None and not reads_class_names(model_id):
            readers = f"bundled/{MINI_CLIP} and open_clip models, which read them"
            raise InputError(f"{argument}: got {given!r} for {model_id}; allowed only for {readers}.")
    own = under_protocol(model.preprocessing, normalisation, imagenet_model=source in IMAGENET_ZOOS)
    return replace(model, preprocessing=own)


def reads_class_names(model_id: str) -> bool:
    """Whether a model tells apart whatever classes it is given the names of."""
    return model_id.startswith("open_clip/") or model_id == f"bundled/{MINI_CLIP}"
