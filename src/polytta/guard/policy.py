r"""What the guard may do, as one object: ``guard="default" | "off" | "strict"``, a table, or one of these.

Adaptation without labels can fail without a sign: entropy and loss look *better* while a particle collapses. So every
particle that learns is compared with the model it started from, which costs no labels:

    drift     |θ - θ⁰| / |θ⁰|                                  0.0003 on healthy streams, above 0.04 all had collapsed
    balance   (H(m⁰) - H(m)) / ln C                            m, m⁰: mean answers of late, on the same images
    turned    1/2 Σ |m - m⁰|, where balance was not gained     answers of other classes than the source's
    broken    share of images with answers that are not finite

Compared on the same images, honest streams of one class raise no alarm: the source's answers are of one class as well.
Populations with particles that never learn have the source's answers for nothing; for others the source is asked about
a few images now and then.
"""

from dataclasses import dataclass
from math import inf
from typing import ClassVar

from polytta.errors import ConfigError
from polytta.roles.registry import Registry


@dataclass(frozen=True)
class Guard:
    """Base of all guards. Subclasses are frozen dataclasses with a ``name``; most change values of ``Default``."""

    name: ClassVar[str]
    active: ClassVar[bool] = True
    """Whether anything is watched."""

    def validate(self) -> None:
        """Raises ConfigError when a field has a value that is not allowed."""


@dataclass(frozen=True)
class Off(Guard):
    """Nothing is watched, nothing is undone."""

    name: ClassVar[str] = "off"
    active: ClassVar[bool] = False


@dataclass(frozen=True)
class Default(Guard):
    """Undoes collapse, and leaves healthy streams as they are, bit for bit.

    Attributes:
        drift: relative distance to the source that a particle never exceeds; who gets there within 128 steps has
            collapsed, who takes longer is pulled back half the way.
        longest_step: most that one step may move, relative to the source; longer ones are shortened.
        clip: largest norm of a gradient; None leaves them as they are.
        balance: entropy of the mean answer lost against the source, in units of ln C, at which one has collapsed.
        turned: share of answers that moved to other classes than the source's, without gain of balance, likewise.
        broken: share of images of a batch with answers that are not finite, likewise.
        window: images that mean answers are over.
        patience: images that must have been compared before answers are judged.
        rest: steps a particle learns nothing after it has collapsed, twice as many every time; meanwhile it answers as
            the state it went back to.
        slowdown: factor on its learning rate afterwards.
        rollback: whether it goes back to its last good snapshot the first time, or always to the source.
        snapshot_every: healthy steps between two snapshots.
        snapshots: kept of every particle.
        snapshot_bytes: most memory that they may take; with none left it goes back to the source.
        reset_every: steps after which everybody starts over anyway (RDumb); None is never.
        statistics: whether BatchNorm layers that go by the batch go by stored statistics while batches are of one
            class, which those of the batch would hide (``polytta.network.one_sided``), and leave out images that would
            bend them for the others (``polytta.network.neighbours``).
    """

    drift: float = 0.012
    longest_step: float = 0.004
    clip: float | None = None
    balance: float = 0.15
    turned: float = 0.35
    broken: float = 0.5
    window: int = 128
    patience: int = 32
    rest: int = 32
    slowdown: float = 0.1
    rollback: bool = True
    snapshot_every: int = 64
    snapshots: int = 2
    snapshot_bytes: int = 2**26
    reset_every: int | None = None
    statistics: bool = True

    name: ClassVar[str] = "default"

    def validate(self) -> None:
        """Raises ConfigError when a field has a value that is not allowed."""
        for name in ("drift", "longest_step", "balance", "turned", "broken", "slowdown"):
            self._require(name, 0 < getattr(self, name) < inf, "a finite number > 0")
        self._require("slowdown", self.slowdown <= 1, "a number in (0, 1]")
        self._require("clip", self.clip is None or 0 < self.clip < inf, "a finite number > 0, or None")
        for name, least in (("window", 1), ("patience", 1), ("rest", 0), ("snapshot_every", 1), ("snapshots", 0)):
            self._require_whole(name, getattr(self, name), least)
        self._require_whole("snapshot_bytes", self.snapshot_bytes, 0)
        if self.reset_every is not None:
            self._require_whole("reset_every", self.reset_every, 1)
        for name in ("rollback", "statistics"):
            self._require(name, isinstance(getattr(self, name), bool), "True or False")

    def _require_whole(self, name: str, value: object, least: int) -> None:
        whole = isinstance(value, int) and not isinstance(value, bool) and value >= least
        self._require(name, whole, f"a whole number >= {least}")

    def _require(self, name: str, fine: bool, allowed: str) -> None:
        if not fine:
            raise ConfigError(f"guard: got {name}={getattr(self, name)!r}; allowed is {allowed}.")


@dataclass(frozen=True)
class Strict(Default):
    """Alarms earlier, and always goes back to the source."""

    drift: float = 0.006
    longest_step: float = 0.002
    balance: float = 0.08
    turned: float = 0.2
    broken: float = 0.1
    rollback: bool = False

    name: ClassVar[str] = "strict"


GUARDS = Registry("guard", Guard, (Off, Default, Strict))


UNLESS_SAID = "default"
"""What guards where nobody says anything."""


def resolve_guard(spec: object) -> Guard:
    """A guard object."""
    return GUARDS.make(UNLESS_SAID if spec is None else spec)
