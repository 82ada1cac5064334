r"""EATA: entropy minimisation on reliable, non-redundant samples, anchored by Fisher information.

    S = {b : H_b < E₀, |cos(p_b, m)| < d},   E₀ = entropy_threshold · ln C
    ℓ = 1/|S| · Σ_{b∈S} exp(E₀ - H_b) H_b  +  α Σ_p F_p (θ_p - θ⁰_p)²
    m ← 0.9 m + 0.1 · mean_{b∈S} p_b

Niu et al., "Efficient Test-Time Model Adaptation without Forgetting", ICML 2022. The weight is held constant. The first
reliable batch sets m and is kept whole. Without ``fisher`` the anchor is absent (the public code's ETA).
"""

from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from polytta.errors import ConfigError
from polytta.methods.base import Method
from polytta.roles import Context, Pass, Selection, Start, State, entropy, masked_mean


@dataclass(frozen=True)
class EATA(Method):
    """Efficient anti-forgetting adaptation.

    Attributes:
        entropy_threshold: E₀ as a fraction of ln C.
        redundancy: largest |cosine| to the running mean prediction that still counts as new.
        fisher: {parameter name: Fisher information} from ``estimate_fisher``, or None for no anchor.
        fisher_weight: α.
        margin: former name of ``entropy_threshold``.
    """

    entropy_threshold: float = 0.4
    redundancy: float = 0.05
    fisher: Mapping[str, Tensor] | None = field(default=None, compare=False, repr=False)
    fisher_weight: float = 2000.0
    margin: InitVar[float | None] = None

    name: ClassVar[str] = "eata"
    filters: ClassVar[tuple[str, ...]] = ("entropy", "redundancy")

    def __post_init__(self, margin: float | None) -> None:
        if margin is not None:
            object.__setattr__(self, "entropy_threshold", margin)

    def validate(self) -> None:
        """Thresholds must be positive, the weight not negative."""
        if not (self.entropy_threshold > 0 and self.redundancy > 0 and self.fisher_weight >= 0):
            raise ConfigError(
                f"method: got {type(self).__name__}(entropy_threshold={self.entropy_threshold}, "
                f"redundancy={self.redundancy}, fisher_weight={self.fisher_weight}); allowed are entropy_threshold and "
                "redundancy > 0, fisher_weight >= 0."
            )

    def init(self, start: Start) -> State:
        """No running prediction yet, which a row of zeros says."""
        return {"mean_probs": start.theta.new_zeros(start.particles, start.num_classes)}

    def select(self, context: Context, forward_pass: Pass, state: State) -> tuple[Selection, State]:
        """Reliable samples that differ from what was seen so far."""
        probs = forward_pass.logits.detach().softmax(dim=-1)
        entropies = entropy(forward_pass.logits.detach())
        threshold = self.entropy_threshold * context.log_classes
        reliable = entropies < threshold
        running = state["mean_probs"].to(probs.dtype)
        started = (running != 0).any(dim=1, keepdim=True)
        similarity = F.cosine_similarity(running.unsqueeze(1), probs, dim=-1)
        kept = reliable & ((similarity.abs() < self.redundancy) | ~started)
        batch_mean = masked_mean(probs.transpose(1, 2), kept.unsqueeze(1))
        moved = torch.where(started, 0.9 * running + 0.1 * batch_mean, batch_mean)
        mean_probs = torch.where(kept.any(dim=1, keepdim=True), moved, running).to(state["mean_probs"].dtype)
        weight = torch.exp(threshold - entropies)
        return Selection.of(reliable, kept, weight=weight), {**state, "mean_probs": mean_probs}

    def penalty(self, context: Context, theta: Tensor) -> Tensor | None:
        """α Σ F (θ - θ⁰)²."""
        if self.fisher is None:
            return None
        importance = context.flatten(self.fisher).to(theta)
        return self.fisher_weight * (importance * (theta - context.source).square()).sum(dim=1)
