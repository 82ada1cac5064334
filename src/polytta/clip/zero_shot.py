r"""A CLIP-like model as an ordinary classifier over class names.

    logits_c = exp(s) · ⟨ f(x)/|f(x)|, t_c/|t_c| ⟩ (+ b),   t_c = mean over templates of g("a photo of a c")/|g(...)|

Radford et al., "Learning Transferable Visual Models From Natural Language Supervision", ICML 2021. Text features are
computed once. The image encoder's norm layers are what adapts; everything polytta has works on the module as on any
other classifier.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from polytta.clip.templates import resolve_classes, resolve_templates
from polytta.clip.text import TextEncoder, Tokenizer
from polytta.clip.towers import take_apart
from polytta.errors import InputError


class ZeroShot(nn.Module):
    """Logits of images over class names.

    Attributes:
        image: the image encoder.
        text: the text encoder, for methods that write prompts of their own; not a part of the module tree.
        classes: the names.
        templates: the sentences.
        text_features: (templates, C, D) unit features.
        class_features: (C, D) of each class that answers are given by: the mean over templates, unit again.
        feature_size: D.
        telling: whether features are appended to logits (``polytta.network.features``).
    """

    text_features: Tensor
    class_features: Tensor
    logit_scale: Tensor
    logit_bias: Tensor | None

    def __init__(
        self,
        image: nn.Module,
        text: TextEncoder,
        classes: Sequence[str],
        templates: Sequence[str],
        logit_scale: Tensor,
        logit_bias: Tensor | None = None,
        answers: Sequence[str] | None = None,
    ) -> None:
        super().__init__()
        self.image, self.text = image, text
        self.classes, self.templates = tuple(classes), tuple(templates)
        features = text.of_classes(classes, templates)
        answered = features if answers is None else text.of_classes(classes, answers)
        self.register_buffer("text_features", features)
        self.register_buffer("class_features", F.normalize(answered.mean(dim=0), dim=-1))
        self.register_buffer("logit_scale", logit_scale)
        self.register_buffer("logit_bias", logit_bias)
        self.feature_size, self.telling = int(features.shape[-1]), False

    def forward(self, x: Tensor) -> Tensor:
        """(B, C) logits of normalised images; with ``telling`` unit features beside them."""
        features = F.normalize(self.image(x), dim=-1)
        logits = self.classify(features, self.class_features)
        return torch.cat([logits, features], dim=-1) if self.telling else logits

    def classify(self, features: Tensor, text: Tensor) -> Tensor:
        """Logits from unit features of images and of text, in float32 or better whatever the encoder computes in."""
        wide = torch.promote_types(features.dtype, torch.float32)
        # Cosines of classes differ in their third digit, which bfloat16 does not have.
        mixing = torch.is_autocast_enabled(features.device.type)
        with torch.autocast(features.device.type, enabled=False) if mixing else nullcontext():
            logits = self.logit_scale.exp().to(wide) * features.to(wide) @ text.to(wide).mT
        return logits if self.logit_bias is None else logits + self.logit_bias

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        self.text.move(fn)
        return super()._apply(fn, recurse)


def zero_shot(
    model: Any,
    tokenizer: Tokenizer,
    classes: Sequence[str],
    templates: str | Sequence[str] = "watt8",
    answers: str | Sequence[str] | None = None,
) -> ZeroShot:
    """A CLIP-like model becomes a classifier.

    Args:
        model: of open_clip or transformers (CLIP, SigLIP), or any torch module with ``encode_image`` and
            ``encode_text``; never changed, and its weights are shared, not copied.
        tokenizer: sentences to token numbers, as its library makes it.
        classes: the names to tell apart.
        templates: sentences with {} in the place of a name, "watt8" or "photo".
        answers: the same for answers alone, where methods should learn from others than these.
    """
    if not callable(tokenizer):
        raise InputError(f"tokenizer: got {type(tokenizer).__name__}; allowed is a callable from sentences to tokens.")
    names, sentences = resolve_classes(classes), resolve_templates(templates)
    towers = take_apart(model, tokenizer, sentences[0].replace("{}", names[0]))
    told = None if answers is None else resolve_templates(answers)
    made = ZeroShot(towers.image, towers.text, names, sentences, towers.logit_scale, towers.logit_bias, told)
    return made.eval()
