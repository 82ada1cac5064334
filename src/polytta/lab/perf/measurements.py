"""What was measured, in memory and in a file."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from polytta.errors import InputError
from polytta.lab.perf.goals import LABELS
from polytta.system.files import write_whole
from polytta.system.json_text import parsed


@dataclass(frozen=True)
class Measurement:
    """One measured variant.

    Attributes:
        model: its id.
        batch: images per step (of each population).
        variant: "forward", "reference", "second derivative", or a diversity.
        particles: K.
        engine: of ``polytta.adapt``; "eager" for the model alone, "plain" for the public way to adapt it.
        precision: of the arithmetic.
        particles_at_once: most particles in one pass; None for all of them.
        populations: G.
        milliseconds: of a step, once per repeat.
        memory: MiB.
        flops: floating-point operations of a step.
    """

    model: str
    batch: int
    variant: str
    particles: int
    engine: str
    precision: str
    particles_at_once: int | None
    populations: int
    milliseconds: list[float]
    memory: float
    flops: float

    @property
    def place(self) -> tuple[object, ...]:
        """What was measured; the engine of a reference has changed."""
        engine = None if self.variant == "reference" else self.engine
        kind = (self.variant, self.particles, engine, self.precision, self.particles_at_once, self.populations)
        return (self.model, self.batch, *kind)

    @property
    def median(self) -> float:
        """Over the repeats, in milliseconds."""
        return sorted(self.milliseconds)[len(self.milliseconds) // 2]


@dataclass(frozen=True)
class Measurements:
    """Everything measured in one run.

    Attributes:
        device: its name.
        torch: its version.
        matmul: floating-point operations per second of a large matrix product there.
        measured: one after the other.
        runs: processes they come from; the newest measured the goals again.
    """

    device: str
    torch: str
    matmul: float
    measured: list[Measurement]
    runs: int = 1

    def renewed(self, newer: "Measurements") -> "Measurements":
        """These with what is newer in the place of what it measured again, or beside it."""
        again = {m.place for m in newer.measured}
        kept = [m for m in self.measured if m.place not in again]
        return Measurements(newer.device, newer.torch, newer.matmul, [*newer.measured, *kept], self.runs + 1)

    def find(self, model: str, batch: int, variant: str, particles: int, populations: int = 1) -> Measurement:
        """The measurement of a variant at its fastest with all particles at once, or the only one there is."""
        wanted = (model, batch, variant, particles, populations, None)
        found = [
            m
            for m in self.measured
            if (m.model, m.batch, m.variant, m.particles, m.populations, m.particles_at_once) == wanted
        ]
        if not found:
            raise InputError(
                f"--show: got no {variant} with {particles} particles on {LABELS[model]} at batch {batch}; "
                "allowed is a performance.json of this version of polytta perf."
            )
        return min(found, key=lambda m: (m.engine != "graph", m.precision == "fp32"))

    def find_default(self, model: str, batch: int) -> Measurement | None:
        """Three particles with Grad in the default precision; None of runs that did not measure it."""
        wanted = (model, batch, "grad", 3, "fp32", 1, None)
        for m in self.measured:
            found = (m.model, m.batch, m.variant, m.particles, m.precision, m.populations, m.particles_at_once)
            if found == wanted and m.engine != "loop":
                return m
        return None

    def roofline(self, measurement: Measurement) -> float:
        """Rate of a step's arithmetic as a share of that of the matrix product."""
        return measurement.flops / (measurement.median / 1000) / self.matmul

    def save(self, path: Path) -> None:
        """Writes JSON."""
        write_whole(path, (json.dumps(asdict(self), indent=1) + "\n").encode())

    @classmethod
    def load(cls, path: Path, option: str = "--show") -> "Measurements":
        """Reads what ``save`` wrote."""
        try:
            stored = parsed(path.read_text())
            return cls(**{**stored, "measured": [Measurement(**one) for one in stored["measured"]]})
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise InputError(f"{option}: got {path}; allowed is a performance.json of polytta perf.") from error
