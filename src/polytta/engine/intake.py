"""From what a user hands over to images as the network wants them: the first thing that happens to a batch."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from polytta.errors import ConfigError, InputError
from polytta.network.calling import IMAGES

Make = Callable[[Any], Any]
_BYTES = (1.0, 1 / 255)
"""What bytes may count: themselves, or shares of white."""
_ONE_INPUT = "a model of several inputs has to be wrapped in one of images alone"


class Intake:
    """Makes images of batches.

    Args:
        network: what they are for.
        given: a function from a batch to images (or to a mapping that holds them), or the name that a network's images
            have in mappings; None for the usual ones.
    """

    def __init__(self, network: nn.Module, given: Make | str | None) -> None:
        if given is not None and not (callable(given) or isinstance(given, str)):
            raise ConfigError(
                f"input: got {given!r}; allowed are a function from a batch to images, and the keyword that the model "
                "takes these by."
            )
        self._network = network
        self._make = given if callable(given) else None
        self.keyword = given if isinstance(given, str) else None
        self._bytes: float | None = None

    def of(self, network: nn.Module) -> "Intake":
        """The same for a copy of the network."""
        twin = Intake(network, self._make or self.keyword)
        twin._bytes = self._bytes
        return twin

    def images(self, batch: object) -> object:
        """A floating-point tensor, or what ``polytta.guard.admit`` will refuse."""
        x = batch if self._make is None else self._make(batch)
        if isinstance(x, Mapping):
            x = self._named(x)
        if isinstance(x, tuple | list):
            raise InputError(
                f"x: got a {type(x).__name__} of {len(x)}; allowed are floating-point images (B, ...), which input= of "
                f"polytta.adapt picks ({_ONE_INPUT})."
            )
        if isinstance(x, Tensor) and x.dtype == torch.uint8 and x.numel():
            return self._of_bytes(x)
        if not isinstance(x, Tensor) or not x.is_floating_point():
            got = x.dtype if isinstance(x, Tensor) else type(x).__name__
            raise InputError(
                f"x: got {got}; allowed are floating-point images (B, ...), normalized as the model expects, or input= "
                "of polytta.adapt, which makes them."
            )
        return x

    def _named(self, batch: Mapping[str, Any]) -> object:
        """The images among other things, labels say."""
        if self.keyword is None:
            self._require_one_input(batch)
        for name in (self.keyword, IMAGES):
            if name is not None and name in batch:
                return batch[name]
        tensors = [one for one in batch.values() if isinstance(one, Tensor) and one.dim() > 2]
        if len(tensors) != 1:
            raise InputError(
                f"x: got a mapping of {sorted(map(str, batch))}; allowed is one that holds {IMAGES!r} or a single "
                "tensor of images, or input= of polytta.adapt, which picks them."
            )
        return tensors[0]

    def _require_one_input(self, batch: Mapping[str, Any]) -> None:
        """Refuses what the model would take beside its images: without it, it would be another model."""
        try:
            inputs = [name for name in inspect.signature(self._network.forward).parameters if name in batch]
        except (TypeError, ValueError):
            return
        # Models of Hugging Face take labels too, for a loss that nobody needs here.
        inputs = [name for name in inputs if not name.startswith("label")]
        if len(inputs) > 1:
            raise InputError(
                f"x: got a mapping of {inputs}, all of which {type(self._network).__name__} takes; allowed are images "
                f"alone ({_ONE_INPUT}), or input= of polytta.adapt with their keyword, for a model that needs no more."
            )

    def _of_bytes(self, x: Tensor) -> Tensor:
        """Bytes of a network that takes them, as numbers that it takes for the same."""
        like = next(self._network.parameters())
        if self._bytes is None:
            self._bytes = self._what_bytes_count(x.reshape(-1, *x.shape[-3:])[:2].to(like.device), like.dtype)
        return x.to(like.dtype) * self._bytes

    @torch.no_grad()
    def _what_bytes_count(self, x: Tensor, dtype: torch.dtype) -> float:
        try:
            told = self._network(x)
        except Exception as error:
            raise InputError(
                "x: got torch.uint8, which the model does not take; allowed are floating-point images, normalized as "
                "the model expects, or input= of polytta.adapt, which makes them."
            ) from error
        for share in _BYTES:
            if torch.allclose(self._network(x.to(dtype) * share), told, rtol=1e-3, atol=1e-3):
                return share
        raise InputError(
            "x: got torch.uint8, of which the model makes something else than of the same numbers; allowed are "
            "floating-point images, or input= of polytta.adapt, which makes them."
        )
