r"""ROID: certain and diverse samples learn from a likelihood ratio and an augmented copy, and drift back to source.

    d_b = 1 - cos(q, p_b), c_b = -H(p_b), both scaled to 0..1 over the batch;   S = {b : d_b >= mean d}
    w_b = exp(d_b c_b / T),   q ← m q + (1-m) · mean_b p_b
    ℓ = 1/D · Σ_{b∈S} w_b · [SLR(p_b) + ½ CE(p_b, p'_b) + ½ CE(p'_b, p_b)],   p' of an augmented copy of S
    SLR(p) = -Σ_c p_c log(p_c / (1-p_c) + 1e-5),  p at most 0.99;   θ ← M θ + (1-M) θ⁰  after each step
    answer: logits · (p̄ + s) / (1 + s C),   p̄ = mean_b p_b,  s = max(1/B, 1/C) / max p̄

Marsden, Döbler and Yang, "Universal Test-time Adaptation through Weight Ensembling, Diversity Weighting, and Prior
Correction", WACV 2024. Weights and q are held constant, gradients flow through both outputs. The corrected answer ranks
classes; its probabilities are flat, about 1/C of the logits. In a batch of one image, or of images that are all alike,
there is nothing to scale by; the public code turns every parameter into NaN there, here such a batch moves q and
nothing else. It moves by SGD with Nesterov momentum (``SGD(nesterov=True)``) on ImageNet and Adam on CIFAR.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from polytta.errors import ConfigError
from polytta.methods.base import Method
from polytta.methods.roid_augment import Augment, Bound, augmented, in_unit_range, require_range
from polytta.methods.schedule import Schedule
from polytta.roles import Context, Lesson, Pass, Selection, Sight, Start, State, Term, entropy

# Differences of distances and entropies below this are rounding.
_SAME = 1e-6


@dataclass(frozen=True)
class ROID(Method):
    """Robust online adaptation by weighting, consistency, weight ensembling and prior correction.

    Attributes:
        temperature: T.
        momentum_probs: m.
        momentum_src: M; 1 never drifts back.
        use_weighting: weights and S as above; else every sample at weight 1, and q stays uniform.
        use_consistency: the two cross-entropies.
        use_prior_correction: of the answer.
        divisor: D, the configured batch size in the public code (1 with a window); None means the images learnt from.
        window: single images to collect before they are learnt from together (``polytta.methods.schedule``).
        reset_every: batches, or full windows, after which particles and q start over; 0 is never.
        value_range: (black, white) as the network gets them, one value or one per channel each; None means each
            channel's extremes in the batch.
        augment: "jitter", or a callable ``(x, noise) -> x'`` over images in 0..1 (``polytta.methods.roid_augment``).
    """

    temperature: float = 1 / 3
    momentum_probs: float = 0.9
    momentum_src: float = 0.99
    use_weighting: bool = True
    use_consistency: bool = True
    use_prior_correction: bool = True
    divisor: int | None = None
    window: int = 1
    reset_every: int = 0
    value_range: tuple[Bound, Bound] | None = None
    augment: Literal["jitter"] | Augment = "jitter"

    name: ClassVar[str] = "roid"
    filters: ClassVar[tuple[str, ...]] = ("diverse",)

    def validate(self) -> None:
        """Rates within 0..1, counts of at least one, a range that is one."""
        self._schedule.validate("ROID")
        if not (self.temperature > 0 and 0 <= self.momentum_probs <= 1 and 0 <= self.momentum_src <= 1):
            raise ConfigError(
                f"method: got ROID(temperature={self.temperature}, momentum_probs={self.momentum_probs}, "
                f"momentum_src={self.momentum_src}); allowed are temperature > 0 and momenta within 0..1."
            )
        if self.divisor is not None and not self.divisor > 0:
            raise ConfigError(f"method: got ROID(divisor={self.divisor!r}); allowed are numbers > 0, or None.")
        require_range(self.value_range)
        if self.augment != "jitter" and not callable(self.augment):
            raise ConfigError(f"method: got ROID(augment={self.augment!r}); allowed are 'jitter' and a callable.")

    def init(self, start: Start) -> State:
        """Every class as likely as any other."""
        return {**self._uniform(start), **self._schedule.init(start)}

    def answer(self, logits: Tensor) -> Tensor:
        """Times the smoothed prior of the batch."""
        if not self.use_prior_correction:
            return logits
        batch, classes = logits.shape[1:]
        prior = logits.softmax(dim=-1).mean(dim=1, keepdim=True)
        smoothing = max(1 / batch, 1 / classes) / prior.amax(dim=-1, keepdim=True)
        return logits * ((prior + smoothing) / (1 + smoothing * classes))

    def look(self, context: Context, passes: Sequence[Pass], logits: Tensor, state: State) -> Sight:
        """The window in place of a single image."""
        return self._schedule.look(self.answer, context, passes, logits, state)

    def select(self, context: Context, forward_pass: Pass, state: State) -> tuple[Selection, State]:
        """Samples unlike the running mean prediction, the sure ones at more weight."""
        logits = forward_pass.logits.detach()
        probs, running = logits.softmax(dim=-1), state["mean_probs"]
        kept = self._schedule.due(context, state).unsqueeze(1).expand(logits.shape[:2])
        weight, after = torch.ones_like(probs[..., 0]), running
        if self.use_weighting:
            old = running.to(probs.dtype)
            diverse, some = _scaled(1 - F.cosine_similarity(old.unsqueeze(1), probs, dim=-1))
            certain, sure = _scaled(-entropy(logits))
            kept = kept & some & sure & (diverse >= diverse.mean(dim=1, keepdim=True))
            weight = torch.exp(diverse * certain / self.temperature)
            after = torch.lerp(probs.mean(dim=1), old, self.momentum_probs).to(running.dtype)
        # A term is a mean over what was kept.
        share = kept.sum(dim=1, keepdim=True) / (self.divisor or logits.shape[1])
        return Selection.of(kept, weight=weight * share), {**state, "mean_probs": after}

    def learn(self, context: Context, passes: Sequence[Pass], state: State) -> Lesson:
        """One term per view, over it and its augmented copy; after the step a little of the source."""
        terms, after = [], state
        for seen in passes:
            selection, after = self.select(context, seen, after)
            looked = [seen]
            if self.use_consistency:
                change = augmented if self.augment == "jitter" else self.augment
                images = in_unit_range(change, seen.x.detach(), context.noise(seen.view), self.value_range)
                looked.append(context.forward(seen, x=images, where=selection.mask, grad=True))
            terms.append(Term(looked, selection, _losses))
        lesson = self._schedule.scheduled(context, passes, Lesson(terms, after), state, self._uniform(context))
        drifts = lesson.learners if lesson.resets is None else lesson.learners & ~lesson.resets

        def drifted(theta: Tensor) -> tuple[Tensor, State]:
            # Not torch.lerp: the public form's rounding, a hundred times over, is more than recordings are compared by.
            near = self.momentum_src * theta + (1 - self.momentum_src) * context.source
            return torch.where(drifts.unsqueeze(1), near, theta), {}

        return replace(lesson, after_step=drifted)

    def _uniform(self, start: Start) -> State:
        return {"mean_probs": start.theta.new_full((start.particles, start.num_classes), 1 / start.num_classes)}

    @property
    def _schedule(self) -> Schedule:
        return Schedule(self.window, self.reset_every)


def soft_likelihood_ratio(logits: Tensor) -> Tensor:
    """(K, B) -Σ p log(p / (1-p)), without a gradient where p is cut."""
    probs = logits.softmax(dim=-1).clamp(max=0.99)
    return -(probs * torch.log(probs / (1 - probs) + 1e-5)).sum(dim=-1)


def symmetric_cross_entropy(one: Tensor, other: Tensor) -> Tensor:
    """(K, B) half of each cross-entropy, from logits."""
    there = one.softmax(dim=-1) * other.log_softmax(dim=-1)
    back = other.softmax(dim=-1) * one.log_softmax(dim=-1)
    return -0.5 * (there + back).sum(dim=-1)


def _losses(passes: Sequence[Pass]) -> Tensor:
    losses = soft_likelihood_ratio(passes[0].logits)
    return losses + symmetric_cross_entropy(passes[0].logits, passes[1].logits) if len(passes) > 1 else losses


def _scaled(values: Tensor) -> tuple[Tensor, Tensor]:
    """(K, B) values from 0 to 1 within each row, and (K, 1) whether they differ at all."""
    low = values.amin(dim=1, keepdim=True)
    span = values.amax(dim=1, keepdim=True) - low
    return (values - low) / span.clamp(min=_SAME), span > _SAME
