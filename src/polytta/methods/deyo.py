r"""DeYO: learn from confident samples whose prediction depends on the object's shape.

    S₁ = {b : H_b < τ_H},  PLPD_b = p(ŷ|x_b) - p(ŷ|shuffle(x_b)),  S₂ = {b ∈ S₁ : PLPD_b > τ_PLPD}
    ℓ = 1/|S₂| · Σ_{b∈S₂} [exp(E₀ - H_b) + exp(PLPD_b)] H_b

Lee et al., "Entropy is not Enough for Test-Time Adaptation", ICLR 2024. The bracket is held constant. A particle that
kept nothing does not move. The shuffled images of S₁ are a batch of their own, so BatchNorm takes statistics of them.
"""

from dataclasses import InitVar, dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from polytta.errors import ConfigError
from polytta.methods.base import Method
from polytta.methods.shuffles import SHUFFLES, Shuffle
from polytta.roles import Context, Noise, Pass, Selection, State, entropy


@dataclass(frozen=True)
class DeYO(Method):
    """Entropy minimisation on samples with low entropy and high pseudo-label probability difference.

    Attributes:
        entropy_threshold: τ_H as a fraction of ln C.
        plpd_threshold: τ_PLPD.
        reference_entropy: E₀ as a fraction of ln C: where exp(E₀ - H) is 1.
        shuffle: "patch", "pixel", "occlusion", or a callable ``(x, noise) -> x'`` (``polytta.methods.shuffles``).
        reweight: whether sample losses carry the bracket above; False gives plain selected entropy.
        margin: former name of ``reference_entropy``.
    """

    entropy_threshold: float = 0.5
    plpd_threshold: float = 0.2
    reference_entropy: float = 0.4
    shuffle: Literal["patch", "pixel", "occlusion"] | Shuffle = "patch"
    reweight: bool = True
    margin: InitVar[float | None] = None

    name: ClassVar[str] = "deyo"
    filters: ClassVar[tuple[str, ...]] = ("entropy", "plpd")
    single_image_lr_factor: ClassVar[float] = 2.0

    def __post_init__(self, margin: float | None) -> None:
        if margin is not None:
            object.__setattr__(self, "reference_entropy", margin)

    def validate(self) -> None:
        """Thresholds must make sense and the shuffle be known."""
        if not (self.entropy_threshold > 0 and self.reference_entropy > 0 and -1 <= self.plpd_threshold <= 1):
            raise ConfigError(
                f"method: got DeYO(entropy_threshold={self.entropy_threshold}, plpd_threshold={self.plpd_threshold}, "
                f"reference_entropy={self.reference_entropy}); allowed are entropy_threshold and reference_entropy > 0 "
                "and plpd_threshold within -1..1."
            )
        if not callable(self.shuffle) and self.shuffle not in SHUFFLES:
            raise ConfigError(
                f"method: got DeYO(shuffle={self.shuffle!r}); allowed are {sorted(SHUFFLES)} or a callable."
            )

    def select(self, context: Context, forward_pass: Pass, state: State) -> tuple[Selection, State]:
        """Confident first, then shape-dependent."""
        logits = forward_pass.logits.detach()
        entropies = entropy(logits)
        confident = entropies < self.entropy_threshold * context.log_classes
        images = self._shuffled(forward_pass.x.detach(), context.noise(forward_pass.view))
        shuffled = context.forward(forward_pass, x=images, where=confident)
        label = logits.argmax(dim=-1, keepdim=True)
        before = logits.softmax(dim=-1).gather(-1, label).squeeze(-1)
        after = shuffled.logits.softmax(dim=-1).gather(-1, label).squeeze(-1)
        plpd = before - after
        kept = confident & (plpd > self.plpd_threshold)
        weight = None
        if self.reweight:
            weight = torch.exp(self.reference_entropy * context.log_classes - entropies) + torch.exp(plpd)
        return Selection.of(confident, kept, weight=weight), state

    def _shuffled(self, images: Tensor, noise: Noise) -> Tensor:
        shuffle = self.shuffle if callable(self.shuffle) else SHUFFLES[self.shuffle]()
        moved = shuffle(images, noise)
        if moved.shape != images.shape:
            raise ConfigError(
                f"method: got a shuffle for DeYO that turns {tuple(images.shape)} into {tuple(moved.shape)}; "
                "allowed is the same shape."
            )
        return moved
