"""The role of an engine: push K particles through one frozen network."""

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from polytta.particles.layout import Layout
from polytta.particles.norms import is_batch_norm
from polytta.particles.probe import Findings, check_output, model_errors_as_input_errors, plain_attention
from polytta.particles.sharing import share_structure

Statistics = Literal["batch", "source"]


class Engine(ABC):
    """Runs the population. Subclasses say how; what comes out must be the same.

    Args:
        model: the source model; never changed.
        layout: which of its parameters differ between particles.
        findings: what the probe learnt about its norm layers.
        statistics: whether BatchNorm layers use the statistics of the batch or the stored ones.
    """

    name: ClassVar[str]
    static_shapes: ClassVar[bool] = False
    """Whether every pass has the same shapes whatever was selected."""

    def __init__(self, model: nn.Module, layout: Layout, findings: Findings, statistics: Statistics) -> None:
        self.layout = layout
        self.findings = findings
        self.network = share_structure(model)
        self.statistics_layers = tuple(
            name
            for name, module in self.network.named_modules()
            if is_batch_norm(module) and (statistics == "batch" or getattr(module, "running_mean", None) is None)
        )
        self.uses_batch_statistics = bool(self.statistics_layers)

    def logits(self, theta: Tensor, x: Tensor, where: Tensor | None = None) -> Tensor:
        """Class logits of every particle.

        Args:
            theta: (K, P) parameters.
            x: (K, B, ...) images, usually an expanded view of one batch.
            where: (K, B) booleans; only these (particle, sample) pairs are needed. BatchNorm then sees only them, as if
                each particle had been given just its own samples. The other rows come back as zeros.

        Returns:
            (K, B, C) logits in float32 or better.
        """
        with plain_attention(), model_errors_as_input_errors(x[0]):
            out = self._run(theta, x, where)
        return out if out.dtype == torch.float64 else out.float()

    @abstractmethod
    def _run(self, theta: Tensor, x: Tensor, where: Tensor | None) -> Tensor: ...

    def _forward(self, x: Tensor) -> Tensor:
        return check_output(self.network(x), x.shape[0])
