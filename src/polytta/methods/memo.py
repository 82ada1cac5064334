r"""MEMO: one answer for all augmented copies of an image, and a sure one.

    p̄_b(θ) = 1/N · Σ_a p_θ(a(x_b)),   ℓ(X; θ) = 1/B · Σ_b H(p̄_b(θ))

Zhang, Levine and Finn, "MEMO: Test Time Robustness via Adaptation and Augmentation", NeurIPS 2022. Low entropy of the
*mean* asks two things at once: that copies agree, and that they are sure. As published every batch (there: every image)
starts from the source model, and is answered after the step; ``form="online"`` keeps what was learnt and answers first,
like the other methods here. Three things differ from the public code: norm parameters adapt, not all; BatchNorm uses
its stored statistics; and copies are random crops, flips, turns and shears, each particle its own, without AugMix's
operations on colours, which need the bytes that a normalized batch no longer has.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, pi
from typing import ClassVar, Literal

import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

from polytta.errors import ConfigError
from polytta.guard.images import require_images
from polytta.methods.base import Method
from polytta.roles import Context, Lesson, Noise, Pass, Selection, State, Term


@dataclass(frozen=True)
class MEMO(Method):
    """Marginal entropy minimisation over augmented copies.

    Attributes:
        copies: N, augmented copies of each image; the public code takes 32 on CIFAR and 64 on ImageNet.
        form: "episodic" as published, or "online".
        strength: how far copies are from the image; 0 leaves it as it is, 1 crops to half, turns by 30 degrees.
    """

    copies: int = 32
    form: Literal["episodic", "online"] = "episodic"
    strength: float = 0.5

    name: ClassVar[str] = "memo"
    filters: ClassVar[tuple[str, ...]] = ("all",)
    statistics: ClassVar[str] = "source"

    @property
    def episodic(self) -> bool:
        """As published."""
        return self.form == "episodic"

    def validate(self) -> None:
        """At least one copy, a known form, a strength that keeps something of the image."""
        if not isinstance(self.copies, int) or isinstance(self.copies, bool) or self.copies < 1:
            raise ConfigError(f"method: got MEMO(copies={self.copies!r}); allowed is a whole number >= 1.")
        if self.form not in ("episodic", "online"):
            raise ConfigError(f"method: got MEMO(form={self.form!r}); allowed are 'episodic' and 'online'.")
        if not 0 <= self.strength <= 1:
            raise ConfigError(f"method: got MEMO(strength={self.strength!r}); allowed is 0 to 1.")

    def learn(self, context: Context, passes: Sequence[Pass], state: State) -> Lesson:
        """One term per view, over all copies of it."""
        terms = []
        for seen in passes:
            noise, images = context.noise(seen.view), seen.x.detach()
            copies = [
                context.forward(seen, x=augmented(images, noise, self.strength), grad=True) for _ in range(self.copies)
            ]
            terms.append(Term(copies, Selection.everything(seen), marginal_entropy))
        return Lesson(terms, state)


def marginal_entropy(passes: Sequence[Pass]) -> Tensor:
    """(K, B) entropy of the mean prediction over passes."""
    log_probs = torch.stack([one.logits.log_softmax(dim=-1) for one in passes])
    mean = log_probs.logsumexp(dim=0) - log(len(passes))
    return -(mean.exp() * mean).sum(dim=-1)


def augmented(x: Tensor, noise: Noise, strength: float) -> Tensor:
    """A random copy of each image (K, B, C, H, W): flipped or not, cropped, turned, sheared and shifted."""
    images = x.flatten(0, 1)
    require_images("MEMO", images)
    exact = torch.float32 if x.dtype in (torch.float16, torch.bfloat16) else x.dtype
    numbers = noise.uniform(x.shape[1], 6).flatten(0, 1).to(exact)
    flip, crop, turn, shear, right, down = (numbers[:, place] for place in range(6))
    mirrored = torch.where(flip < 0.5, 1.0, -1.0)
    size = 1 - 0.5 * strength * crop
    angle = (2 * turn - 1) * strength * pi / 6
    skew = (2 * shear - 1) * strength * 0.3
    # A crop is moved by as much as it leaves free.
    across, along = (2 * right - 1) * (1 - size), (2 * down - 1) * (1 - size)
    rows = (
        torch.stack([mirrored * size * angle.cos(), size * (skew - angle.sin()), across], dim=-1),
        torch.stack([mirrored * size * angle.sin(), size * angle.cos(), along], dim=-1),
    )
    grid = affine_grid(torch.stack(rows, dim=1), list(images.shape), align_corners=False)
    moved = grid_sample(images.to(exact), grid, padding_mode="reflection", align_corners=False)
    return moved.to(x.dtype).reshape(x.shape)
