"""``open_clip/ARCHITECTURE/TAG``: a CLIP image tower (arXiv 2103.00020) as zero-shot classifier.

Adaptation happens in the image encoder alone (``polytta.clip``).
"""

from __future__ import annotations

from collections.abc import Sequence

from polytta.clip import zero_shot
from polytta.errors import InputError
from polytta.models._torchvision_cpu import import_zoo
from polytta.models.preprocessing import Preprocessing, triple
from polytta.models.record import SourceModel
from polytta.models.weights import WeightsPath, load_weights, missing_weights


def from_open_clip(
    name: str, weights: WeightsPath | None, classes: Sequence[str] | None, templates: str | Sequence[str]
) -> SourceModel:
    """Build a zero-shot classifier over the given class names."""
    open_clip = import_zoo("open_clip")
    architecture, _, tag = name.partition("/")
    config = open_clip.get_pretrained_cfg(architecture, tag)
    if not config:
        raise InputError(
            f"model: got {architecture!r} with {tag!r}; allowed is what open_clip.list_pretrained() lists."
        )
    if weights is None:
        where = f"Hugging Face repository {config['hf_hub'].rstrip('/')}" if config.get("hf_hub") else config["url"]
        raise missing_weights(f"open_clip/{name}", "open_clip_model.safetensors", where)
    if not classes:
        raise InputError(f"classes: got none for open_clip/{name}; allowed are the names it is to tell apart.")
    quick = bool(config.get("quick_gelu", False))
    clip = open_clip.create_model(architecture, pretrained=None, force_quick_gelu=quick)
    digest = load_weights(clip, weights)
    clip.eval()
    module = zero_shot(clip, open_clip.get_tokenizer(architecture), classes, templates)
    size = clip.visual.image_size
    size = int(size[0] if isinstance(size, tuple) else size)
    preprocessing = Preprocessing(
        triple(config.get("mean") or open_clip.OPENAI_DATASET_MEAN),
        triple(config.get("std") or open_clip.OPENAI_DATASET_STD),
        size,
        size,
        "bicubic",
    )
    return SourceModel(f"open_clip/{name}", module, preprocessing, len(classes), digest)
