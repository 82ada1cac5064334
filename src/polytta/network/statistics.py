r"""What a BatchNorm layer normalizes by: stored statistics, those of the batch, a blend of both, or robust ones.

    μ = (n μ_batch + N μ_stored) / (n + N),   σ² = (n σ²_batch + N σ²_stored) / (n + N)

n is the number of images at hand and N how many images the stored statistics count for: none ("batch"), infinitely many
("source"), or sixteen ("blend"), the prior of Schneider et al., "Improving robustness against common corruptions by
covariate shift adaptation", NeurIPS 2020. A blend is nearly the stored statistics for a single image and nearly those
of the batch for sixty-four. Where strangers share batches, "median" takes those of the batch as medians over its images
(``polytta.network.medians``), N = 0.

Statistics of few images are ruinous, so methods that go by the batch blend there unless they are told what to use.
"""

import warnings
from collections.abc import Callable
from math import inf
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from polytta.errors import PolyttaWarning
from polytta.network.medians import medians, row_moments
from polytta.network.neighbours import CurrentCompany

FEWEST_IMAGES = 16
"""Of a batch whose own statistics are used where nobody asked for them (``benchmarks/small_batches.py``)."""

Statistics = Literal["batch", "source", "blend", "median"]
PSEUDO_IMAGES: dict[Statistics, float] = {"batch": 0.0, "source": inf, "blend": 16.0, "median": 0.0}
"""N."""


def blended(of_batch: Tensor, stored: Tensor, images: Tensor | float, pseudo_images: Tensor | float) -> Tensor:
    """One of the statistics: all of the batch's where nothing stored counts."""
    share = images / (images + pseudo_images)
    return share * of_batch + (1 - share) * stored


def _moved_input(name: str, kind: Statistics, current: CurrentCompany) -> Callable[[nn.Module, tuple[Tensor]], Any]:
    """A hook that gives a layer an input which stored statistics normalize to what others would make of its own."""
    pseudo = PSEUDO_IMAGES[kind]

    def moved(layer: nn.Module, inputs: tuple[Tensor]) -> tuple[Tensor]:
        (x,) = inputs
        shape = [1, -1, *[1] * (x.dim() - 2)]
        assert isinstance(layer, _BatchNorm)
        stored_mean, stored_var, eps = layer.running_mean, layer.running_var, layer.eps
        assert stored_mean is not None
        assert stored_var is not None
        counted = current.counted(name, x)
        among = x if counted is None else x[counted]
        if kind == "median":
            mean, var = (one[0] for one in medians(*(one.unsqueeze(0) for one in row_moments(among))))
        else:
            var, mean = torch.var_mean(among, dim=[dim for dim in range(x.dim()) if dim != 1], correction=0)
        images = among.shape[0]
        mean, var = blended(mean, stored_mean, images, pseudo), blended(var, stored_var, images, pseudo)
        scale = torch.sqrt((stored_var + eps) / (var + eps))
        return ((x - mean.reshape(shape)) * scale.reshape(shape) + stored_mean.reshape(shape),)

    return moved


def _looked_at(name: str, current: CurrentCompany) -> Callable[[nn.Module, tuple[Tensor]], None]:
    """A hook that only tells of a layer's input."""

    def look(layer: nn.Module, inputs: tuple[Tensor]) -> None:
        current.counted(name, inputs[0])

    return look


class FewImages:
    """Says once that there were too few images."""

    def __init__(self) -> None:
        self._said = False

    def said(self) -> None:
        """Warns the first time."""
        if not self._said:
            self._said = True
            warnings.warn(
                f"a batch of fewer than {FEWEST_IMAGES} images has no statistics for BatchNorm to go by alone, so they "
                "are blended with the stored ones; statistics='blend', 'source' or 'batch' says what to use.",
                PolyttaWarning,
                stacklevel=6,
            )


def stores_statistics(network: nn.Module) -> bool:
    """Whether there are BatchNorm layers, all with stored statistics."""
    found = [module for module in network.modules() if isinstance(module, _BatchNorm)]
    return bool(found) and all(module.running_mean is not None for module in found)


def use_statistics(
    network: nn.Module, kind: Statistics, current: CurrentCompany | None = None, *, counted_only: bool = False
) -> None:
    """Makes every BatchNorm layer of a shared copy use these; without stored statistics it goes by the batch anyway.

    Args:
        network: the copy.
        kind: what to use.
        current: tells layers who counts (``polytta.network.neighbours``); None means everybody always does.
        counted_only: whether those of the batch are to be of those who count, which takes another way through a layer.
    """
    current = CurrentCompany() if current is None else current
    for name, module in network.named_modules():
        if not isinstance(module, _BatchNorm) or kind == "source" or module.running_mean is None:
            continue
        if kind in ("blend", "median") or counted_only:
            # Before the layer and not in its place: what else a layer does (an activation, say) it goes on doing.
            module.register_forward_pre_hook(_moved_input(name, kind, current))
            continue
        module.register_forward_pre_hook(_looked_at(name, current))
        module.track_running_stats = False
        module.running_mean = None
        module.running_var = None
