r"""What a BatchNorm layer normalizes by: stored statistics, those of the batch, or a blend of both.

    μ = (n μ_batch + N μ_stored) / (n + N),   σ² = (n σ²_batch + N σ²_stored) / (n + N)

n is the number of images at hand and N how many images the stored statistics count for: none ("batch"), infinitely many
("source"), or sixteen ("blend"), the prior of Schneider et al., "Improving robustness against common corruptions by
covariate shift adaptation", NeurIPS 2020. A blend is nearly the stored statistics for a single image and nearly those
of the batch for sixty-four.

Statistics of few images are ruinous, so methods that go by the batch blend there unless they are told what to use.
"""

import warnings
from math import inf
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from polytta.errors import PolyttaWarning

FEWEST_IMAGES = 16
"""Of a batch whose own statistics are used where nobody asked for them (``benchmarks/small_batches.py``)."""

Statistics = Literal["batch", "source", "blend"]
PSEUDO_IMAGES: dict[Statistics, float] = {"batch": 0.0, "source": inf, "blend": 16.0}
"""N."""


def blended(of_batch: Tensor, stored: Tensor, images: Tensor | float, pseudo_images: Tensor | float) -> Tensor:
    """One of the statistics: all of the batch's where nothing stored counts."""
    share = images / (images + pseudo_images)
    return share * of_batch + (1 - share) * stored


def _moved_input(layer: nn.Module, inputs: tuple[Tensor]) -> tuple[Tensor]:
    """An input that stored statistics normalize to what the blend would make of the one given."""
    (x,) = inputs
    shape = [1, -1, *[1] * (x.dim() - 2)]
    assert isinstance(layer, _BatchNorm)
    stored_mean, stored_var, eps = layer.running_mean, layer.running_var, layer.eps
    assert stored_mean is not None
    assert stored_var is not None
    var, mean = torch.var_mean(x, dim=[dim for dim in range(x.dim()) if dim != 1], correction=0)
    pseudo = PSEUDO_IMAGES["blend"]
    mean, var = blended(mean, stored_mean, x.shape[0], pseudo), blended(var, stored_var, x.shape[0], pseudo)
    scale = torch.sqrt((stored_var + eps) / (var + eps))
    return ((x - mean.reshape(shape)) * scale.reshape(shape) + stored_mean.reshape(shape),)


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


def use_statistics(network: nn.Module, kind: Statistics) -> None:
    """Makes every BatchNorm layer of a shared copy use these; without stored statistics it goes by the batch anyway."""
    for module in network.modules():
        if not isinstance(module, _BatchNorm) or kind == "source" or module.running_mean is None:
            continue
        if kind == "blend":
            # Before the layer and not in its place: what else a layer does (an activation, say) it goes on doing.
            module.register_forward_pre_hook(_moved_input)
            continue
        module.track_running_stats = False
        module.running_mean = None
        module.running_var = None
