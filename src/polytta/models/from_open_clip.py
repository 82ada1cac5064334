"""``open_clip/ARCHITECTURE/TAG``: a CLIP image tower (arXiv 2103.00020) as zero-shot classifier.

The text tower is used once, to embed the class names in their templates, and is then let go: adaptation
happens in ``visual`` alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from polytta.errors import InputError
from polytta.models._torchvision_cpu import import_zoo
from polytta.models.preprocessing import Preprocessing, triple
from polytta.models.record import SourceModel
from polytta.models.weights import WeightsPath, load_weights, missing_weights


class ClipClassifier(nn.Module):
    """Logits are scaled cosines between an image and each class's mean embedding over the templates."""

    text_features: Tensor
    class_features: Tensor
    logit_scale: Tensor

    def __init__(self, visual: nn.Module, text_features: Tensor, logit_scale: Tensor) -> None:
        """Take the image tower, unit text embeddings (templates, classes, width) and the log of the scale."""
        super().__init__()
        self.visual = visual
        self.register_buffer("text_features", text_features)
        self.register_buffer("class_features", F.normalize(text_features.mean(0), dim=-1))
        self.register_buffer("logit_scale", logit_scale.detach().clone())

    def forward(self, x: Tensor) -> Tensor:
        """Map normalised images to logits."""
        features = F.normalize(self.visual(x), dim=-1)
        return self.logit_scale.exp() * features @ self.class_features.T


def from_open_clip(
    name: str, weights: WeightsPath | None, classes: Sequence[str] | None, templates: Sequence[str]
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
    if not templates or not all("{}" in template for template in templates):
        raise InputError(
            f"templates: got {templates!r}; allowed are sentences with {{}} in the place of the class name."
        )
    quick = bool(config.get("quick_gelu", False))
    clip = open_clip.create_model(architecture, pretrained=None, force_quick_gelu=quick)
    digest = load_weights(clip, weights)
    clip.eval()
    text = _embed(clip, open_clip.get_tokenizer(architecture), classes, templates)
    module = ClipClassifier(clip.visual, text, clip.logit_scale)
    size = clip.visual.image_size
    size = int(size[0] if isinstance(size, tuple) else size)
    preprocessing = Preprocessing(
        triple(config.get("mean") or open_clip.OPENAI_DATASET_MEAN),
        triple(config.get("std") or open_clip.OPENAI_DATASET_STD),
        size,
        size,
        "bicubic",
    )
    return SourceModel(f"open_clip/{name}", module.eval(), preprocessing, len(classes), digest)


@torch.no_grad()
def _embed(clip: Any, tokenizer: Any, classes: Sequence[str], templates: Sequence[str]) -> Tensor:
    rows = []
    for template in templates:
        tokens = tokenizer([template.replace("{}", name) for name in classes])
        rows.append(F.normalize(clip.encode_text(tokens), dim=-1))
    return torch.stack(rows)
