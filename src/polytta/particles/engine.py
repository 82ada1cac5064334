"""The role of an engine: push K particles through one frozen network."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from polytta.guard import Examiner
from polytta.network.copies import share_structure
from polytta.network.features import tell_features
from polytta.network.layout import Layout
from polytta.network.neighbours import LOOK_AT, Company
from polytta.network.norms import is_batch_norm
from polytta.network.statistics import PSEUDO_IMAGES, Statistics, stores_statistics
from polytta.particles.outputs import check_output, finite_rows, raise_as_input_error
from polytta.particles.precision import (
    Precision,
    arithmetic,
    entering,
    is_convolutional,
    plain_attention,
    prefers_channels_last,
    prepare,
    rounding,
)
from polytta.particles.probe import Findings, probe
from polytta.particles.slices import sliced
from polytta.roles.objective import weighted_sums


class Engine(ABC):
    """Runs the population. Subclasses say how; what comes out must be the same.

    Args:
        model: the source model; never changed.
        layout: which of its parameters differ between particles.
        findings: what the probe learnt about its norm layers.
        statistics: what BatchNorm layers use, for each row of the population or for all of them.
        precision: how exactly the frozen trunk computes.
        at_once: most particles in one pass; None means all.
        wary: whether images too loud for the others in their batch are set aside (``polytta.network.neighbours``).
    """

    name: ClassVar[str]
    static_shapes: ClassVar[bool] = False
    """Whether every pass has the same shapes whatever was selected."""
    fuses_images: ClassVar[bool] = False
    """Whether it has kernels for images laid out channels-last."""
    examiner_class: ClassVar[type[Examiner]] = Examiner
    """What looks at its particles after a step."""

    def __init__(
        self,
        model: nn.Module,
        layout: Layout,
        findings: Findings,
        statistics: Statistics | Sequence[Statistics],
        precision: Precision = "fp32",
        at_once: int | None = None,
        *,
        wary: bool = False,
    ) -> None:
        self.layout = layout
        self.findings = findings
        self.network = share_structure(model)
        self.precision: Precision = precision
        self.at_once = at_once
        self.rounding = rounding(self.network, precision)
        self.convolutional = is_convolutional(self.network)
        self.enters_channels_last = prefers_channels_last(self.network, precision, fused=self.fuses_images)
        self._flattened: dict[int, tuple[Mapping[str, Tensor], Tensor]] = {}
        self.width = findings.num_classes + tell_features(self.network)
        prepare(self.network, precision, channels_last=self.enters_channels_last)
        self.statistics: tuple[Statistics, ...] = (statistics,) if isinstance(statistics, str) else tuple(statistics)
        kinds = set(self.statistics)
        self.statistics_layers = tuple(
            name
            for name, module in self.network.named_modules()
            if is_batch_norm(module) and (kinds != {"source"} or getattr(module, "running_mean", None) is None)
        )
        self.uses_batch_statistics = bool(self.statistics_layers)
        self.wary = wary and self.uses_batch_statistics and stores_statistics(self.network)
        self._look_at = min(LOOK_AT, len(self.statistics_layers) - 1)
        # Rows that are all of one plain kind take the plain way.
        plain = kinds <= {"batch"} or kinds <= {"source"}
        device = next(self.network.parameters()).device
        self.pseudo_images = (
            None
            if plain
            else torch.tensor([PSEUDO_IMAGES[one] for one in self.statistics], dtype=torch.float32, device=device)
        )
        self.by_median = (
            torch.tensor([one == "median" for one in self.statistics], device=device) if "median" in kinds else None
        )
        self._set_up()

    @classmethod
    def examine(cls, network: nn.Module, sample: Tensor, layers: tuple[str, ...]) -> Findings:
        """What the engine must know of a network before it can be made.

        Args:
            network: the source network in evaluation mode.
            sample: one image, (1, ...).
            layers: the norm layers to adapt.
        """
        return probe(network, sample, layers)

    def recorder(self, step: Callable[..., Any]) -> Any:
        """Something to call instead of ``step`` (see ``polytta.engine.session``); None for engines that only run it."""
        return None

    def weighted_sums(self, weights: Tensor, values: Tensor) -> Tensor:
        """Σ_j w_ijb v_jb over particles (``polytta.roles.objective``)."""
        return weighted_sums(weights, values)

    def _set_up(self) -> None:
        """What an engine changes in its own copy of the network."""

    def outputs(
        self,
        theta: Tensor,
        x: Tensor,
        where: Tensor | None = None,
        *,
        twice: bool = False,
        rows: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """What the network says to every particle.

        Args:
            theta: (K, P) parameters.
            x: (K, B, ...) images, usually an expanded view of one batch.
            where: (K, B) booleans; only these (particle, sample) pairs are needed. BatchNorm then sees only them, as if
                each particle had been given just its own samples. The other rows come back as zeros.
            twice: whether the pass will be differentiated twice, which fused kernels do not allow.
            rows: (K,) which rows of the population these are; None means all of them.

        Returns:
            (K, B, C) logits in float32 or better, and (K, B, D) features of networks that tell them, else None.
        """
        if self.at_once is None or self.at_once >= theta.shape[0] or twice:
            found = finite_rows(self._pass(theta, x, where, rows, twice=twice))
        else:
            every = torch.arange(theta.shape[0], device=theta.device) if rows is None else rows
            found = finite_rows(sliced(self._pass, theta, x, where, every, self.at_once))
        if self.width == self.findings.num_classes:
            return found, None
        logits, features = found.split([self.findings.num_classes, self.width - self.findings.num_classes], dim=-1)
        return logits, features

    def _pass(
        self, theta: Tensor, x: Tensor, where: Tensor | None, rows: Tensor | None, *, twice: bool = False
    ) -> Tensor:
        attention = sdpa_kernel([SDPBackend.MATH]) if twice else nullcontext()
        try:
            with plain_attention(), attention, arithmetic(self.precision, x.device.type):
                return self._run(theta, x, where, rows, twice)
        except Exception as error:
            raise_as_input_error(error, x[0])
            raise

    def flatten(self, tensors: Mapping[str, Tensor]) -> Tensor:
        """Named tensors as one vector (P,), on the network's device; kept, since they are the same at every step."""
        if id(tensors) not in self._flattened:
            device = next(self.network.parameters()).device
            # The mapping itself is kept too, so that its id stays its own.
            self._flattened[id(tensors)] = (tensors, self.layout.flatten(tensors).to(device))
        return self._flattened[id(tensors)][1]

    @abstractmethod
    def _run(self, theta: Tensor, x: Tensor, where: Tensor | None, rows: Tensor | None, twice: bool) -> Tensor: ...

    def _row_statistics(self, rows: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
        """(K,) what the stored statistics weigh for these rows, None where all rows are of one plain kind.

        And (K,) who goes by medians, None where nobody does.
        """
        pseudo, by_median = self.pseudo_images, self.by_median
        if rows is None:
            return pseudo, by_median
        return None if pseudo is None else pseudo[rows], None if by_median is None else by_median[rows]

    def _company(self, among: Tensor | None) -> Company | None:
        """Of one pass, in which those marked (K, B) may count for statistics, or all; None where nobody is wary."""
        return Company(among, self._look_at, on_host=not self.static_shapes) if self.wary else None

    def _forward(self, x: Tensor) -> Tensor:
        return self._checked_output(self._call(x), x.shape[0])

    def _checked_output(self, out: Any, batch: int) -> Tensor:
        """A network was looked at with batches of two and three, and may say something else of others."""
        if getattr(out, "shape", None) != (batch, self.width):
            return check_output(out, batch)
        logits: Tensor = out
        return logits

    def _call(self, x: Tensor) -> object:
        """What the network returns."""
        return self.network(self._enter(x))

    def _enter(self, x: Tensor) -> Tensor:
        """The images as the trunk wants them."""
        return entering(x, self.precision, channels_last=self.enters_channels_last)
