r"""Parameter level: particles that repel each other where they are (Stein variational gradient descent).

    p̃(θ) ∝ exp(-ℓ(X; θ)) · exp(-γ/2 ‖θ - θ⁰‖²)
    φ(θᵢ) = 1/K · Σⱼ [κ(θⱼ, θᵢ) ∇ log p̃(θⱼ) + ∇_{θⱼ} κ(θⱼ, θᵢ)],   descend -K φ

Liu and Wang 2016; equations 5-7 of the multi-hypothesis paper. -φ goes to each particle's own optimizer. The factor K
keeps one particle equal to plain descent. With the paper's bandwidth 0.01 and norm parameters in their thousands,
particles at a distance near 0.01 are thrown apart by forces of order 1/h, after which the kernel is the identity and
they no longer feel each other: look at ``report.kernel``, and prefer ``bandwidth="median"``, which adapts to the
distances there are. Particles that start at one point all feel the mean of their gradients, so different random numbers
alone never part them: they need different learning rates.
"""

from dataclasses import dataclass
from math import inf, log
from typing import ClassVar, Literal

import torch
from torch import Tensor

from polytta.diversity.base import Diversifier
from polytta.errors import ConfigError
from polytta.roles import Objective


@dataclass(frozen=True)
class SVGD(Diversifier):
    """Stein variational gradient descent on the pseudo-posterior.

    Attributes:
        bandwidth: h, or "median" for h² = median(d²) / (2 ln(K + 1)) at every step.
        kernel: "rbf" is exp(-d²/2h²), "over_h" is exp(-d²/h).
        distance: d² is the "sum" of squared differences, or their "mean" over parameters.
        anchor: γ, strength of the Gaussian prior around the source.
    """

    bandwidth: float | Literal["median"] = 0.01
    kernel: Literal["rbf", "over_h"] = "rbf"
    distance: Literal["sum", "mean"] = "sum"
    anchor: float = 0.0

    name: ClassVar[str] = "svgd"

    def validate(self) -> None:
        """The bandwidth must be positive, the anchor not negative."""
        numeric = isinstance(self.bandwidth, int | float) and not isinstance(self.bandwidth, bool)
        if not (0 < self.bandwidth < inf if numeric else self.bandwidth == "median"):  # type: ignore[operator]
            raise ConfigError(
                f"diversity: got SVGD(bandwidth={self.bandwidth!r}); allowed are finite numbers > 0 and 'median'."
            )
        if self.kernel not in ("rbf", "over_h") or self.distance not in ("sum", "mean"):
            raise ConfigError(
                f"diversity: got SVGD(kernel={self.kernel!r}, distance={self.distance!r}); "
                "allowed are kernel 'rbf' or 'over_h' and distance 'sum' or 'mean'."
            )
        if not self.anchor >= 0:
            raise ConfigError(f"diversity: got SVGD(anchor={self.anchor}); allowed is anchor >= 0.")

    def direction(self, objective: Objective, losses: Tensor) -> Tensor:
        """-K φ."""
        theta = objective.theta.detach()
        active = objective.learners.unsqueeze(1)
        log_gradient = -objective.gradient(losses.sum()) - self.anchor * (theta - objective.source)
        log_gradient = torch.where(active, log_gradient, torch.zeros_like(log_gradient))
        phi = self.phi(objective.by_population(theta), objective.by_population(log_gradient))
        return -objective.particles * phi.flatten(0, 1)

    def phi(self, theta: Tensor, log_gradient: Tensor) -> Tensor:
        """(..., K, P) Stein direction: ascent on log p̃."""
        kernel, slope = self._kernel(theta)
        attraction = kernel @ log_gradient
        repulsion = slope * (theta * kernel.sum(dim=-1, keepdim=True) - kernel @ theta)
        return (attraction + repulsion) / theta.shape[-2]

    def kernel_matrix(self, theta: Tensor) -> Tensor:
        """(..., K, K) κ(θᵢ, θⱼ)."""
        return self._kernel(theta)[0]

    def _kernel(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        """The kernel matrix, and s in ∇_{θⱼ} κ = s κ (θᵢ - θⱼ)."""
        scale = theta.shape[-1] if self.distance == "mean" else 1
        squared = (theta.unsqueeze(-3) - theta.unsqueeze(-2)).square().sum(dim=-1) / scale
        if self.bandwidth == "median":
            rule = 0.5 * squared.flatten(-2).quantile(0.5, dim=-1) / log(theta.shape[-2] + 1)
            # Coincident particles have no scale of their own, and no repulsion whatever the scale.
            h_squared = torch.where(rule > 0, rule, torch.ones_like(rule))[..., None, None]
        else:
            h_squared = torch.full_like(squared[..., :1, :1], self.bandwidth**2)
        twice = 2 * h_squared if self.kernel == "rbf" else h_squared.sqrt()
        return torch.exp(-squared / twice), 2 / twice / scale
