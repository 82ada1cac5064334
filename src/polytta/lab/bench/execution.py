"""Where and how cells run."""

from dataclasses import dataclass
from typing import Literal

import torch

from polytta.errors import ConfigError


@dataclass(frozen=True)
class Execution:
    """Where and how cells run; none of it changes what they compute.

    Attributes:
        device: "cpu", "cuda", "cuda:1" ..., or "auto" for a CUDA device if there is one.
        engine: the engine of ``polytta.adapt``.
        fold: whether cells that can share a batch do: "auto" does on a CUDA device, where it pays.
        fold_images: most images in a folded batch, over all cells and particles.
        cache_folder: where corrupted images are kept and shared; None keeps them in memory.
    """

    device: str = "auto"
    engine: str = "auto"
    fold: Literal["auto", "always", "never"] = "auto"
    fold_images: int = 1024
    cache_folder: str | None = None

    @property
    def torch_device(self) -> str:
        """The device as torch names it."""
        if self.device != "auto":
            return self.device
        return "cuda" if torch.cuda.is_available() else "cpu"

    def require_device(self) -> None:
        """Refuses a device that is not on this machine, before every cell finds out for itself."""
        try:
            torch.empty(0, device=self.torch_device)
        except (RuntimeError, AssertionError) as error:
            there = [f"cuda:{number}" for number in range(torch.cuda.device_count())]
            raise ConfigError(
                f"--device: got {self.device!r}, which is not here; allowed are {', '.join(['auto', 'cpu', *there])}."
            ) from error

    @property
    def on_gpu(self) -> bool:
        """Whether the device is a CUDA device."""
        return self.torch_device.startswith("cuda")

    @property
    def folds(self) -> bool:
        """Whether cells share batches."""
        return self.fold == "always" or (self.fold == "auto" and self.on_gpu)
