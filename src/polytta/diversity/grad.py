r"""Input-gradient level: particles whose losses depend on the image in different ways.

    g_ib = ∂/∂x_b Σ_b' w_ib' ℓ(x_b'; θᵢ) over the samples i kept
    D_ij = mean over samples both kept of ⟨g_ib, g_jb⟩   ("dot"; or their cosine, or -‖g_ib - g_jb‖² for "l2")
    Ω_Grad = + 1/(K(K-1)) · Σ_{i≠j} D_ij,    minimise Σᵢ ℓᵢ + K λ Ω_Grad

Where particles look through different lenses, ℓ(x; θᵢ) is the loss at lensᵢ(x): gradients are those by the image they
share, and comparable. Images that a method makes of what a particle sees (MEMO's copies) are taken as they are.

Equation 8 of the multi-hypothesis paper, λ = 0.3, which prints a minus but says and needs the plus: alignment is
penalised (``sign="literal"`` takes the minus at its word). Gradients are per sample, so λ does not depend on the batch
size. Nor does the printed form have a scale: the dot product grows with the square of the input gradient, and λ = 0.3
found on 224-pixel models destroys 32-pixel ones. By default the repulsion of each particle is therefore rescaled to λ
times the length of its own loss gradient; ``scale="literal"`` keeps the printed form.

Two solvers. "exact" differentiates twice. "fast" uses that with u = ∂Ω/∂g held fixed,

    ∂Ω/∂θᵢ = ∂/∂θᵢ ⟨gᵢ, uᵢ⟩ = lim_{ε→0} [∇_θ L(x + ε uᵢ; θᵢ) - ∇_θ L(x; θᵢ)] / ε,

one more forward and backward pass at a shifted image, which fused attention kernels can do and second derivatives
cannot. On networks with kinks (ReLU) the two are different quantities: second derivatives do not see the kinks, a
difference does.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import ClassVar, Literal

import torch
from torch import Tensor

from polytta.diversity.base import Diversifier
from polytta.diversity.input_gradients import alignment, mean_cosine, products, through_products
from polytta.errors import ConfigError
from polytta.roles import Objective, Term


@dataclass(frozen=True)
class Grad(Diversifier):
    """Alignment of input gradients, penalised. No effect on a single particle.

    Attributes:
        weight: λ.
        form: "dot", "l2" or "cosine".
        scale: "share" rescales the term to λ times each particle's loss gradient, "literal" leaves it as printed.
        sign: "penalise" alignment, or the "literal" sign of the paper, which rewards it.
        solver: "exact", "fast", or "auto": fast, but exact in half precision, where differences lose all digits.
    """

    weight: float = 0.3
    form: Literal["dot", "l2", "cosine"] = "dot"
    scale: Literal["share", "literal"] = "share"
    sign: Literal["penalise", "literal"] = "penalise"
    solver: Literal["auto", "exact", "fast"] = "auto"

    name: ClassVar[str] = "grad"
    needs_input_gradient: ClassVar[bool] = True

    def validate(self) -> None:
        """λ must not be negative and the choices be known."""
        if not 0 <= self.weight < inf:
            raise ConfigError(f"diversity: got Grad(weight={self.weight}); allowed is a finite weight >= 0.")
        for field, allowed in (
            ("form", ("dot", "l2", "cosine")),
            ("scale", ("share", "literal")),
            ("sign", ("penalise", "literal")),
            ("solver", ("auto", "exact", "fast")),
        ):
            if getattr(self, field) not in allowed:
                raise ConfigError(
                    f"diversity: got Grad({field}={getattr(self, field)!r}); allowed are {list(allowed)}."
                )

    def differentiates_twice(self, x: Tensor) -> bool:
        """Whether passes over ``x`` need a second derivative."""
        half = x.dtype in (torch.float16, torch.bfloat16) or torch.is_autocast_enabled(x.device.type)
        return self.solver == "exact" or (self.solver == "auto" and half)

    def direction(self, objective: Objective, losses: Tensor) -> Tensor:
        """Loss gradient plus repulsion."""
        if objective.particles == 1:
            return objective.gradient(losses.sum())
        solve = self._exact if self.differentiates_twice(objective.terms[0].passes[0].x) else self._fast
        descent = torch.zeros_like(objective.theta)
        repulsion = torch.zeros_like(objective.theta)
        for term in objective.terms:
            if not any(one.logits.requires_grad for one in term.passes):
                continue  # no particle needed anything of it
            own, apart = solve(objective, term)
            descent, repulsion = descent + own, repulsion + apart
        if objective.penalty is not None:
            descent = descent + objective.gradient(objective.penalty.sum())
        repulsion = repulsion * (objective.particles * self.weight * (1 if self.sign == "penalise" else -1))
        if self.scale == "share":
            lengths = repulsion.norm(dim=1, keepdim=True)
            wanted = self.weight * descent.norm(dim=1, keepdim=True)
            repulsion = torch.where(lengths > 0, repulsion / lengths.clamp(min=1e-30) * wanted, repulsion)
        return descent + repulsion

    def _exact(self, objective: Objective, term: Term) -> tuple[Tensor, Tensor]:
        """(∇ℓ, ∂Ω/∂θ) of one term by double backward."""
        per_particle = objective.weighted(term).sum(dim=1)
        counts = term.selection.mask.sum(dim=1).clamp(min=1)
        descent = objective.gradient((per_particle / counts).sum(), retain_graph=True)
        images = [one.images for one in term.passes]
        gradients = _side_by_side(torch.autograd.grad(per_particle.sum(), images, create_graph=True))
        omega = self._omega(objective, gradients, term)
        return descent, torch.autograd.grad(omega, objective.theta)[0]

    def _fast(self, objective: Objective, term: Term) -> tuple[Tensor, Tensor]:
        """(∇ℓ, ∂Ω/∂θ) of one term by one more pass at shifted images."""
        mask = term.selection.mask
        per_particle = objective.weighted(term).sum(dim=1)
        retain = objective.penalty is not None
        images = [one.images for one in term.passes]
        base, *slopes = torch.autograd.grad(per_particle.sum(), (objective.theta, *images), retain_graph=retain)
        towards = self._slope(objective, _side_by_side(slopes), term)
        step = _step_size(_side_by_side([one.detach() for one in images]), towards, objective.rounding)
        shifted = [
            objective.again(one, torch.addcmul(one.images.detach(), step, part), mask)
            for one, part in zip(term.passes, towards.unbind(dim=2), strict=True)
        ]
        counts = mask.sum(dim=1, keepdim=True).clamp(min=1)
        if not any(one.logits.requires_grad for one in shifted):  # no particle kept anything of this term
            return base / counts, torch.zeros_like(base)
        moved = objective.gradient(objective.weighted(term, shifted).sum())
        epsilon = step.reshape(-1, 1)
        return base / counts, torch.where(epsilon > 0, (moved - base) / epsilon.clamp(min=1e-30), 0.0)

    def _omega(self, objective: Objective, gradients: Tensor, term: Term) -> Tensor:
        """Ω_Grad summed over populations."""
        mask = objective.by_population(term.selection.mask)
        dots = products(objective.by_population(gradients), mask)
        _note(objective, dots, mask)
        return alignment(dots, mask, self.form).sum()

    def _slope(self, objective: Objective, gradients: Tensor, term: Term) -> Tensor:
        """∂Ω_Grad by the input gradients."""
        mask, grouped = objective.by_population(term.selection.mask), objective.by_population(gradients)
        with torch.enable_grad():
            dots = products(grouped, mask).requires_grad_()
            slope = torch.autograd.grad(alignment(dots, mask, self.form).sum(), dots)[0]
        _note(objective, dots, mask)
        return through_products(slope, grouped, mask, objective.weighted_sums).reshape(gradients.shape)


def _side_by_side(images: Sequence[Tensor]) -> Tensor:
    """(K, B, V, ...) the images of V passes; without copying where there is one."""
    return images[0].unsqueeze(2) if len(images) == 1 else torch.stack(list(images), dim=2)


def _note(objective: Objective, dots: Tensor, mask: Tensor) -> None:
    """Remembers, for the report, how alike the particles' input gradients are; terms are averaged."""
    cosine = mean_cosine(dots.detach(), mask) / len(objective.terms)
    measures = objective.measures
    measures["input_gradient_cosine"] = measures.get("input_gradient_cosine", torch.zeros_like(cosine)) + cosine


def _step_size(x: Tensor, towards: Tensor, rounding: float) -> Tensor:
    """(K, 1, ...) ε that moves a particle's images (K, B, V, ...) by a fixed share of their size, or 0.

    The share balances what a difference loses to curvature (too far) and to rounding (too near). In
    bfloat16 a step ten times as long is needed to rise above the rounding.
    """
    share = 1e-3 if rounding > 2**-9 else 1e-4 if rounding > 2**-24 else 1e-8
    largest = towards.flatten(2).norm(dim=2).amax(dim=1)
    pixels = x[0, 0].numel()
    size = x.detach().flatten(2).norm(dim=2).mean(dim=1).clamp(min=0.1 * pixels**0.5)  # a flat image has no size
    epsilon = torch.where(largest > 0, share * size / largest.clamp(min=1e-30), torch.zeros_like(size))
    return epsilon.reshape(-1, *[1] * (x.dim() - 2))
