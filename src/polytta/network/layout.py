"""Where each adapted tensor lives in the flat parameter vector of a particle.

A population is one tensor ``theta`` of shape (K, P): optimizers, distances, kernels and files all work on it directly,
and ``split`` turns it into named (K, *shape) tensors whose gradients come back as one concatenation.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor, nn

from polytta.errors import ModelError


@dataclass(frozen=True)
class Slot:
    """One adapted tensor: ``layer`` + ``kind`` ("weight" or "bias") and its shape."""

    layer: str
    kind: str
    shape: tuple[int, ...]
    dtype: torch.dtype

    @property
    def name(self) -> str:
        """Full parameter name in the source model."""
        return f"{self.layer}.{self.kind}" if self.layer else self.kind


@dataclass(frozen=True)
class Layout:
    """Order and shapes of the adapted tensors."""

    slots: tuple[Slot, ...]

    @classmethod
    def of(cls, network: nn.Module, layers: tuple[str, ...]) -> "Layout":
        """Collects weight and bias of the named layers, in the order given."""
        slots = []
        owners: dict[int, str] = {}
        for layer in layers:
            module = network.get_submodule(layer)
            for kind in ("weight", "bias"):
                parameter = getattr(module, kind, None)
                if isinstance(parameter, nn.Parameter):
                    if id(parameter) in owners:
                        raise ModelError(
                            f"model: got norm layers {owners[id(parameter)]!r} and {layer!r} with one parameter; "
                            f"allowed are layers of their own. Leave one out with exclude={layer!r}."
                        )
                    owners[id(parameter)] = layer
                    slots.append(Slot(layer, kind, tuple(parameter.shape), parameter.dtype))
        return cls(tuple(slots))

    @property
    def sizes(self) -> list[int]:
        """Number of scalars per slot."""
        return [prod(slot.shape) for slot in self.slots]

    @property
    def total(self) -> int:
        """Number of scalars of one particle."""
        return sum(self.sizes)

    @property
    def dtype(self) -> torch.dtype:
        """Working precision of particles: float32 unless the model itself is more precise."""
        dtype = torch.float32
        for slot in self.slots:
            dtype = torch.promote_types(dtype, slot.dtype)
        return dtype

    def flatten(self, tensors: Mapping[str, Tensor]) -> Tensor:
        """Named tensors (names of the source model) to one vector (P,)."""
        missing = [slot.name for slot in self.slots if slot.name not in tensors]
        if missing:
            raise ModelError(f"parameters: got no value for {missing[0]!r}; allowed are all adapted parameters.")
        return torch.cat([tensors[slot.name].detach().reshape(-1).to(self.dtype) for slot in self.slots])

    def split(self, theta: Tensor) -> list[Tensor]:
        """(K, P) to one (K, *shape) tensor per slot."""
        parts = theta.split(self.sizes, dim=1)
        return [part.reshape(-1, *slot.shape) for part, slot in zip(parts, self.slots, strict=True)]

    def named(self, vector: Tensor) -> dict[str, Tensor]:
        """(P,) to {name: tensor} in the source model's shapes and dtypes."""
        parts = self.split(vector.unsqueeze(0))
        return {slot.name: part[0].to(slot.dtype) for slot, part in zip(self.slots, parts, strict=True)}
