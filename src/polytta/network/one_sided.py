r"""Batches of one class, seen by what stored BatchNorm statistics make of them, before anybody answers.

Statistics of a batch take out what its images have in common. That is the shift where classes are mixed, and the class
itself where there is only one. Both move the means of a layer's inputs; but a shift of the images is strongest near
them and fades, while a class is hardly seen there and comes out in the layers on top:

    d_l = mean over channels of (μ_batch - μ_stored)² / σ²_stored, less what chance explains
    one-sided:  d_late > 1.5 d_early  and  d_late > 0.6 (variance between images / σ²_stored)_late

The first quarter of the layers after the very first are early, the last quarter late. Eight images tell. A shift that
leaves means alone (low contrast, blur) may look like a class; but it makes the network unsure, and statistics of the
batch make it surer again, where those of a batch of one class leave it little to tell classes by:

    one-sided only if  mean_b H(p_b by stored statistics) < 1.25 mean_b H(p_b by those of the batch)
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from polytta.network.copies import share_structure
from polytta.network.statistics import use_statistics
from polytta.roles.measures import entropy

IMAGES = 8
"""Looked at, or half of a smaller batch."""
_ASKED = 2 * IMAGES
"""Whose answers are compared."""
_FEWEST_LAYERS = 4
_DEPTH = 1.5
_SPREAD = 0.6
_UNSURE = 1.25


class OneSided:
    """Tells whether images are of one class, for a network with BatchNorm layers.

    Args:
        network: the source network; two more trees over its weights are made.
    """

    def __init__(self, network: nn.Module) -> None:
        self._network, self._by_batch = share_structure(network), share_structure(network)
        use_statistics(self._by_batch, "batch")
        layers = [m for m in self._network.modules() if isinstance(m, _BatchNorm) and m.running_mean is not None]
        self.knows = len(layers) >= _FEWEST_LAYERS
        quarter = max(1, len(layers) // 4)
        first = len(layers) // 8
        self._early, self._late = layers[first : first + quarter], layers[-quarter:]

    @torch.no_grad()
    def __call__(self, x: Tensor) -> bool:
        """Whether images (B, ...) are all on one side of what the network knows."""
        return self._moved_late(_some(x, min(IMAGES, len(x) // 2))) and self._surer_by_stored(_some(x, _ASKED))

    def _surer_by_stored(self, x: Tensor) -> bool:
        stored, of_batch = (entropy(network(x).float()).mean() for network in (self._network, self._by_batch))
        return bool(stored < _UNSURE * of_batch)

    def _moved_late(self, x: Tensor) -> bool:
        found: dict[int, tuple[Tensor, Tensor]] = {}
        watched = {id(layer): layer for layer in (*self._early, *self._late)}
        handles = [layer.register_forward_pre_hook(_moments(len(x), found)) for layer in watched.values()]
        try:
            self._network(x)
        finally:
            for handle in handles:
                handle.remove()
        if len(found) < len(watched):  # a layer that this input does not reach
            return False
        (early, _), (late, between) = (
            tuple(torch.stack([found[id(layer)][n] for layer in layers]).mean() for n in (0, 1))
            for layers in (self._early, self._late)
        )
        return bool((late > _DEPTH * early.clamp(min=0)) & (late > _SPREAD * between))


def _some(x: Tensor, images: int) -> Tensor:
    """At most so many images, from all over a batch."""
    return x[:: max(1, len(x) // images)][:images]


def _moments(images: int, found: dict[int, tuple[Tensor, Tensor]]) -> Callable[[nn.Module, Any], None]:
    """A hook that puts d and the variance between images of a layer's input into ``found``."""

    def look(layer: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        x = inputs[0].detach().float()
        if not isinstance(layer, _BatchNorm) or layer.running_mean is None or layer.running_var is None:
            return
        if x.dim() > 2:
            x = x.flatten(2).mean(dim=2)
        if x.shape[0] % images:
            return
        each = x.reshape(images, -1, x.shape[1]).mean(dim=1)
        spread = layer.running_var.float() + layer.eps
        halves = each[0::2].mean(dim=0) - each[1::2].mean(dim=0)
        apart = (each.mean(dim=0) - layer.running_mean.float()).square() - halves.square() / 4
        found[id(layer)] = ((apart / spread).mean(), (each.var(dim=0) / spread).mean())

    return look
