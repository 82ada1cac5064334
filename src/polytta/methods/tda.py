r"""TDA: nothing is trained; images seen before, sure ones and unsure ones, speak for and against classes.

    logits = 100 ⟨f, t_c⟩ + α₊ Σ_{i∈P_c} e^{-β₊(1-⟨f,f_i⟩)} - α₋ Σ_{i∈N} e^{-β₋(1-⟨f,f_i⟩)} [l < p_i,c < u]

Karmanov et al., "Efficient Test-Time Adaptation of Vision-Language Models", CVPR 2024. P holds the surest images of
each predicted class, N those of medium entropy with the classes they are not; both are bounded, and an image is stored
before it is answered. As in the public code entropy in nats is divided by log2 C, and the factor on cosines is 100
whatever the model's own is.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import log2
from typing import Any, ClassVar

import torch
from torch import Tensor

from polytta.errors import ConfigError
from polytta.methods.base import Method
from polytta.methods.given import is_count, is_number, views_like
from polytta.methods.text_targets import features_of
from polytta.methods.tpt import ViewsOf, features_of_views
from polytta.roles import Context, Lesson, Pass, Sight, Start, State, entropy

SHARE = 0.1
"""Of the views of an image, those of lowest entropy that count."""


@dataclass(frozen=True)
class Cache:
    """Of one kind.

    Attributes:
        slots: images of each class at most; 0 turns it off.
        alpha: weight.
        beta: how fast it falls off with distance.
    """

    slots: int
    alpha: float
    beta: float


@dataclass(frozen=True)
class TDA(Method):
    """Training-free adapter with two bounded caches.

    Attributes:
        positive: of sure images.
        negative: of unsure ones.
        entropies: share of log2 C between which an image goes into the negative cache.
        probs: probabilities between which a class counts as one that a cached image is not.
        scale: factor on cosines; None means the model's own.
        views: a callable ``(x, noise) -> [view, ...]``: the surest tenth of image and views stand for it.
    """

    positive: Cache = field(default=Cache(3, 2.0, 5.0))
    negative: Cache = field(default=Cache(2, 0.117, 1.0))
    entropies: tuple[float, float] = (0.2, 0.5)
    probs: tuple[float, float] = (0.03, 1.0)
    scale: float | None = 100.0
    views: ViewsOf | None = None

    name: ClassVar[str] = "tda"
    descends: ClassVar[bool] = False
    needs_text: ClassVar[bool] = True
    statistics: ClassVar[str] = "source"

    def validate(self) -> None:
        """Bounds in order, slots not negative, numbers that can be computed with."""
        for name in ("positive", "negative"):
            cache = getattr(self, name)
            whole = isinstance(cache, Cache) and is_count(cache.slots, least=0)
            if not whole or not is_number(cache.alpha) or not is_number(cache.beta):
                raise ConfigError(
                    f"method: got TDA({name}={cache!r}); allowed is a Cache of 0 slots or more, alpha and beta finite."
                )
        for name in ("entropies", "probs"):
            both = getattr(self, name)
            two = isinstance(both, tuple | list) and len(both) == 2 and all(map(is_number, both))
            if not two or not 0 <= both[0] < both[1] <= 1:
                raise ConfigError(f"method: got TDA({name}={both!r}); allowed is 0 <= low < high <= 1.")
        if self.scale is not None and not (is_number(self.scale) and self.scale > 0):
            raise ConfigError(f"method: got TDA(scale={self.scale!r}); allowed is a number > 0, or None.")
        if self.views is not None and not callable(self.views):
            raise ConfigError(f"method: got TDA(views={self.views!r}); allowed is a callable (x, noise) -> views.")

    def init(self, start: Start) -> State:
        """Empty caches."""
        network: Any = start.network
        rows, classes, size = start.particles, start.num_classes, network.feature_size
        state = {}
        for name, cache in (("positive", self.positive), ("negative", self.negative)):
            shape = (rows, classes, max(1, cache.slots))
            state[f"{name}_keys"] = start.theta.new_zeros(*shape, size)
            state[f"{name}_entropy"] = start.theta.new_full(shape, torch.inf)
        state["negative_probs"] = start.theta.new_zeros(rows, classes, max(1, self.negative.slots), classes)
        return state

    def look(self, context: Context, passes: Sequence[Pass], logits: Tensor, state: State) -> Sight:
        """What the caches say once this image is in them."""
        answer, _ = self._followed(context, passes[0], state)
        return Sight(passes, logits, answer.to(logits.dtype))

    def learn(self, context: Context, passes: Sequence[Pass], state: State) -> Lesson:
        """The caches after the batch."""
        return Lesson(state=self._followed(context, passes[0], state)[1])

    @torch.no_grad()
    def _followed(self, context: Context, seen: Pass, state: State) -> tuple[Tensor, State]:
        """(K, B, C) logits image by image, and the caches after the last."""
        network: Any = context.network
        views = [features_of(seen)]
        if self.views is not None:
            made = self.views(seen.x, context.noise(seen.view))
            views += features_of_views(context, seen, views_like("tda.views", made, seen.x))
        features, logits, probs = self._summed_up(torch.stack(views, dim=2), network)
        unsure = -torch.xlogy(probs, probs).sum(dim=-1)
        answers = []
        for b in range(seen.x.shape[1]):
            key, own, prob, much = features[:, b], logits[:, b], probs[:, b], unsure[:, b]
            label = own.argmax(dim=-1)
            everyone = torch.ones_like(label, dtype=torch.bool)
            state = _stored(state, "positive", label, everyone & (self.positive.slots > 0), much, key)
            relative = much / log2(own.shape[-1])
            medium = (relative > self.entropies[0]) & (relative < self.entropies[1]) & (self.negative.slots > 0)
            state = _stored(state, "negative", label, medium, much, key, prob)
            answers.append(own + self._for(state, key) - self._against(state, key))
        return torch.stack(answers, dim=1), state

    def _summed_up(self, views: Tensor, network: Any) -> tuple[Tensor, Tensor, Tensor]:
        """(K, B, D) features, (K, B, C) logits and probabilities of images from unit features (K, B, V, D)."""
        text = network.class_features.to(views.dtype)
        scale = network.logit_scale.exp().to(views.dtype) if self.scale is None else self.scale
        logits = scale * views @ text.mT
        if views.shape[2] == 1:
            return views[:, :, 0], logits[:, :, 0], logits[:, :, 0].softmax(dim=-1)
        count = max(1, int(SHARE * views.shape[2]))
        kept = entropy(logits).argsort(dim=2)[:, :, :count].unsqueeze(-1)
        features, logits = (one.gather(2, kept.expand(-1, -1, -1, one.shape[-1])) for one in (views, logits))
        return features.mean(dim=2), logits.mean(dim=2), logits.softmax(dim=-1).mean(dim=2)

    def _for(self, state: State, key: Tensor) -> Tensor:
        """(K, C) of the sure images."""
        return self.positive.alpha * _nearness(state, "positive", key, self.positive.beta).sum(dim=-1)

    def _against(self, state: State, key: Tensor) -> Tensor:
        """(K, C) of the unsure ones, for all classes that each is not."""
        near = _nearness(state, "negative", key, self.negative.beta)
        low, high = self.probs
        told = state["negative_probs"]
        mask = ((told > low) & (told < high)).to(near.dtype)
        return self.negative.alpha * torch.einsum("kcs,kcsd->kd", near, mask)


def _nearness(state: State, name: str, key: Tensor, beta: float) -> Tensor:
    """(K, C, S) e^{-β(1-⟨f,f_i⟩)} of what is stored, 0 for empty slots."""
    keys, used = state[f"{name}_keys"].to(key.dtype), state[f"{name}_entropy"].isfinite()
    near = torch.exp(-beta * (1 - torch.einsum("kd,kcsd->kcs", key, keys)))
    return torch.where(used, near, torch.zeros_like(near))


def _stored(
    state: State, name: str, label: Tensor, wanted: Tensor, unsure: Tensor, key: Tensor, probs: Tensor | None = None
) -> State:
    """The caches with an image in the slots of its class, where it is wanted and there is room or a less sure one."""
    rows = torch.arange(label.shape[0], device=label.device)
    stored = state[f"{name}_entropy"]
    own = stored[rows, label]
    fits = wanted & (unsure.to(own.dtype) < own[:, -1])
    # Slots are in the order of entropy; who is equal stays before who comes later.
    entries = torch.cat([own[:, :-1], unsure.to(own.dtype).unsqueeze(1)], dim=1)
    order = entries.argsort(dim=1, stable=True)

    def placed(kept: Tensor, value: Tensor) -> Tensor:
        mine = kept[rows, label]
        fresh = torch.cat([mine[:, :-1], value.to(kept.dtype).unsqueeze(1)], dim=1)
        places = order.reshape(*order.shape, *[1] * (fresh.dim() - 2)).expand_as(fresh)
        chosen = torch.where(fits.reshape(-1, *[1] * (fresh.dim() - 1)), fresh.gather(1, places), mine)
        return kept.index_put((rows, label), chosen)

    after = {**state, f"{name}_keys": placed(state[f"{name}_keys"], key), f"{name}_entropy": placed(stored, unsure)}
    if probs is not None:
        after[f"{name}_probs"] = placed(state[f"{name}_probs"], probs)
    return after
