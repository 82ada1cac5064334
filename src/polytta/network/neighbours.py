r"""Images that would bend the BatchNorm statistics of a batch for all others in it, set aside before they do.

Whoever has some images in a batch has a say in its statistics, and so in the answers to the others (Wu et al.,
"Uncovering Adversarial Risks of Test-Time Adaptation", ICML 2023). To outweigh the others, his images must be loud:

    p_bc = σ²_bc + (μ_bc - median_b μ_bc)²     what image b adds to the variance of channel c
    s_b  = mean_c (p_bc / median_b p_bc)       how loud it is; 1 is the middle of the batch
    b counts for the statistics of this layer and all after it where s_b <= 6

since medians do not care about few loud images. ``statistics="median"`` takes medians for the statistics themselves, in
every layer (``polytta.network.medians``); here statistics stay those of the batch, computed as ever, where nobody is
loud. Whoever is, is seen once, at the third BatchNorm layer: the first two see contrast and colour, in which honest
images differ as much. Many loud images pull the middle of the batch towards themselves, so that some pass: where
anybody is loud, a second look is taken among those left. What is set aside is answered like the rest.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from polytta.network.medians import Middle, median

LOOK_AT = 2
"""The layer, in the order of their calls."""
FEWEST = 8
"""Images whose middle means something."""
LOUD = 6.0
"""More than honest images are among one another, less than crafted ones must be: docs/guard.md has both."""
_SIDE = 8
"""So many pixels by as many, spread over an image, say enough of it."""

Seen = tuple[Tensor, Tensor, Tensor | None]
"""A layer's moments (K, B, C), and who is there (K, B): None is everybody."""


def moments(x: Tensor) -> tuple[Tensor, Tensor]:
    """(R, C) mean and variance of each row of a layer's input (R, C, ...)."""
    x = x.detach()
    if x.dim() == 2:
        return x.float(), torch.zeros_like(x, dtype=torch.float32)
    if x.dim() == 4:
        x = x[:, :, :: max(1, x.shape[2] // _SIDE), :: max(1, x.shape[3] // _SIDE)]
    var, mean = torch.var_mean(x.float().flatten(2), dim=2, correction=0)
    return mean, var


def quiet(mean: Tensor, var: Tensor, among: Tensor | None) -> Tensor:
    """(K, B) who of those marked (K, B) is no louder than allowed, by moments (K, B, C); None marks at least eight."""
    loud = loudness_of(mean, var, among) > LOUD
    if among is None:
        return ~loud
    enough = among.sum(dim=1, keepdim=True) >= FEWEST
    return among & ~(enough & loud)


def loudness_of(mean: Tensor, var: Tensor, among: Tensor | None) -> Tensor:
    """(K, B) s, by moments (K, B, C) and medians over those marked (K, B); None marks all."""
    where = None if among is None else Middle.of(among)
    power = var + (mean - median(mean, where)).square()
    return (power / median(power, where).clamp(min=torch.finfo(power.dtype).tiny)).mean(dim=-1)


class Company:
    """Who counts for batch statistics along one pass.

    Args:
        among: (K, B) who may count; None means all.
        look_at: the layer at which to look, in the order of their calls.
        on_host: whether the result may be read, so that nothing changes where nobody is loud.
    """

    def __init__(self, among: Tensor | None, look_at: int, *, on_host: bool) -> None:
        self._counted, self._look_at, self._on_host = among, look_at, on_host
        # A layer that is run again (by activation checkpointing, say) must find what it found.
        self._known: dict[str, Tensor | None] = {}
        self.sets_aside = False

    def counted(self, layer: str, look: Callable[[], Seen | None]) -> Tensor | None:
        """(K, B) who counts at a layer, None for all; ``look`` gives what is seen there."""
        if layer not in self._known:
            if len(self._known) == self._look_at and (seen := look()) is not None:
                self._counted = self._after(*seen)
            self._known[layer] = self._counted
        return self._known[layer]

    def _after(self, mean: Tensor, var: Tensor, among: Tensor | None) -> Tensor | None:
        if mean.shape[1] < FEWEST:
            return self._counted
        found = quiet(mean, var, among)
        if self._on_host:
            self.sets_aside = not (bool(found.all()) if among is None else torch.equal(found, among))
            if not self.sets_aside:
                return self._counted
        return quiet(mean, var, found)


class CurrentCompany:
    """The company that this thread's pass is in; each thread has its own."""

    def __init__(self) -> None:
        self._own = threading.local()

    @property
    def company(self) -> Company | None:
        """None outside of passes."""
        return getattr(self._own, "company", None)

    @contextmanager
    def during(self, company: Company | None) -> Iterator[None]:
        """Makes layers that are called inside belong to a pass."""
        self._own.company = company
        try:
            yield
        finally:
            del self._own.company

    def counted(self, layer: str, x: Tensor) -> Tensor | None:
        """(B,) who counts of the input of a layer that sees one particle; None for all."""
        if self.company is None:
            return None
        images = len(x)

        def look() -> Seen:
            mean, var = moments(x)
            return mean.unsqueeze(0), var.unsqueeze(0), None

        found = self.company.counted(layer, look)
        return None if found is None or found.shape[1] != images else found[0]

    def __reduce__(self) -> tuple[type["CurrentCompany"], tuple[()]]:
        """A copy of a network is in no pass."""
        return CurrentCompany, ()
