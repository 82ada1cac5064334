r"""BatchNorm statistics that few images of a batch cannot bend: medians over images in place of means.

    μ_c  = median_b μ_bc
    σ²_c = median_b (σ²_bc + (μ_bc - μ_c)²)

μ_bc and σ²_bc are mean and variance of channel c in image b. Whoever sends fewer than half of the images moves neither
beyond what others' images have, however loud his are. The idea is that of MedBN (Park et al., "MedBN: Robust Test-Time
Adaptation against Malicious Test Samples", CVPR 2024). Medians are lower ones, found by sorting, the first of equals:
the same on every device and in every engine, and differentiable as often as anybody likes, by the image in the middle.
"""

from typing import NamedTuple

import torch
from torch import Tensor


def row_moments(x: Tensor) -> tuple[Tensor, Tensor]:
    """(R, C) mean and variance of each row of (R, C, ...), in one pass."""
    if x.dim() == 2:
        return x, torch.zeros_like(x)
    var, mean = torch.var_mean(x, dim=list(range(2, x.dim())), correction=0)
    return mean, var


def medians(means: Tensor, variances: Tensor, among: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """(K, C) μ and σ² of the rows marked (K, N), by their moments (K, N, C); None marks all."""
    if means.shape[1] == 0:
        return means.sum(dim=1), variances.sum(dim=1)
    where = None if among is None else Middle.of(among)
    mean = median(means, where)
    return mean.squeeze(1), median(variances + (means - mean).square(), where).squeeze(1)


class Middle(NamedTuple):
    """Where the middle of marked rows is.

    Attributes:
        absent: (K, N, 1) who is not among them; nobody where there would be none.
        place: (K, 1, 1) of the lower median, once they are sorted.
    """

    absent: Tensor
    place: Tensor

    @classmethod
    def of(cls, among: Tensor) -> "Middle":
        """Of the rows marked (K, N)."""
        count = among.sum(dim=1, keepdim=True)
        return cls((~among & (count > 0)).unsqueeze(-1), ((count - 1).clamp(min=0) // 2).unsqueeze(-1))


def median(values: Tensor, where: Middle | None = None) -> Tensor:
    """(K, 1, C) the lower median of some rows of (K, N, C), or of all."""
    if where is None:
        middle = (values.shape[1] - 1) // 2
        return values.sort(dim=1, stable=True).values[:, middle : middle + 1]
    placed = values.masked_fill(where.absent, torch.inf).sort(dim=1, stable=True).values
    return placed.gather(1, where.place.expand(-1, 1, values.shape[2]))
