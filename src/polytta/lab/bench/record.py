"""The record of a cell: what was run, everything that pins it, what came out, and where and how fast.

One JSON file. Its key is a hash over ``cell`` and ``pins`` alone, that is over everything that decides the numbers;
``environment`` and ``times`` are the only parts in which two runs of one cell may differ.
"""

import base64
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from polytta.errors import StateError
from polytta.lab.bench import older
from polytta.lab.bench.cell import Cell, listed
from polytta.lab.scores import Reliability
from polytta.roles.registry import as_tuples
from polytta.system.files import write_whole
from polytta.system.json_text import parsed

FORMAT = "polytta-record-2"
KEY_DIGITS = 24

Numbers = tuple[float, ...]
T = TypeVar("T")


@dataclass(frozen=True)
class CellResults:
    """What came out, over the whole stream. Predictions are those made before learning from an image.

    Attributes:
        accuracy: percent.
        top5: percent; None with five classes or fewer.
        per_class: accuracy of each class in percent; None for a class that never came.
        ece: expected calibration error, 15 bins, 0 to 1.
        nll: mean negative log-likelihood in nats.
        brier: mean squared distance between probabilities and truth, 0 to 2.
        worst_group: accuracy of the worst group in percent; None without groups.
        entropy: mean entropy of the particles' predictions in nats.
        disagreement: share of images on which two particles predict different classes, averaged over pairs.
        drift: distance of each particle from the source parameters at the end.
        selected: {filter: samples left after it, per particle}.
        stepped: steps in which each particle moved.
        resets: times each particle returned to source.
        forward_samples: (particle, image) pairs whose logits were needed.
        backward_samples: (particle, image) pairs whose loss was differentiated.
        images: length of the stream.
        last_answers: classes predicted for the last few images, for pages that show them.
        per_corruption: percent on each corruption of a stream of several, as the cell lists them; none in older ones.
        aurc: area under the risk of the most confident answers over their share, 0 to 1; None in older records.
    """

    accuracy: float
    top5: float | None
    per_class: tuple[float | None, ...]
    ece: float
    nll: float
    brier: float
    worst_group: float | None
    entropy: float
    disagreement: float
    drift: Numbers
    selected: Mapping[str, tuple[int, ...]]
    stepped: tuple[int, ...]
    resets: tuple[int, ...]
    forward_samples: int
    backward_samples: int
    images: int
    last_answers: tuple[int, ...]
    per_corruption: Numbers = ()
    aurc: float | None = None


@dataclass(frozen=True)
class Curves:
    """The stream in about 50 windows; ``position`` counts the images seen at the end of each.

    Accuracy (percent), entropy and disagreement are means within the window; drift is per particle at its end, and so
    are weights, which older records and populations that evidence does not weigh have none of.
    """

    position: tuple[int, ...]
    accuracy: Numbers
    entropy: Numbers
    disagreement: Numbers
    drift: tuple[Numbers, ...]
    weights: tuple[Numbers, ...] = ()


@dataclass(frozen=True)
class SelectiveRisk:
    """Share wrong among the most confident answers, at 20 shares of the images; nothing in older records."""

    coverage: Numbers = ()
    risk: Numbers = ()


@dataclass(frozen=True)
class DisagreementVsError:
    """Share wrong and number of images at each level of disagreement that occurred, or in 15 bins if it had many."""

    disagreement: Numbers
    error: Numbers
    count: tuple[int, ...]


@dataclass(frozen=True)
class Particles:
    """Where the particles went.

    Attributes:
        projection: (x, y) of each particle at about 20 checkpoints, on the two directions in which they moved most;
            the source is at the origin.
        pairwise: final distances between particles.
        kernel: final similarity of particles; None unless the diversifier has a kernel.
        names: what makes each of them different, in words; none in older records, and where evidence weighs nobody.
        weights: how much each is trusted at the end.
    """

    projection: tuple[tuple[tuple[float, float], ...], ...]
    pairwise: tuple[Numbers, ...]
    kernel: tuple[Numbers, ...] | None
    names: tuple[str, ...] = ()
    weights: Numbers = ()


@dataclass(frozen=True)
class Times:
    """What the run cost here. Of cells that ran folded into one batch, each has its share of the time.

    Attributes:
        wall_seconds: prediction and learning, without reading, preprocessing and moving images.
        images_per_second: of that.
        peak_memory_mb: most memory held: allocated on a CUDA device, of the process otherwise.
        started: date and time, UTC.
        folded_cells: cells that shared the batch, this one included.
        processor_seconds: processor time of the same, which what else the machine is doing does not change; None in
            records of an older format.
    """

    wall_seconds: float
    images_per_second: float
    peak_memory_mb: float
    started: str
    folded_cells: int = 1
    processor_seconds: float | None = None


@dataclass(frozen=True, eq=False)
class Record:
    """One finished cell.

    Attributes:
        cell: what was asked for.
        pins: everything that decides the numbers.
        results: what came out over the whole stream.
        curves: along the stream.
        reliability: confidence against accuracy.
        disagreement_vs_error: of the particles, against the share wrong.
        particles: where they went.
        selective_risk: what is wrong of the answers it is surest of.
        correct: which images were right, in the order of the stream.
        environment: versions and device.
        times: what it cost.
        older_key: its name, where an older format gave it another than its cell and pins would have now.
    """

    cell: Cell
    pins: Mapping[str, Any]
    results: CellResults
    curves: Curves
    reliability: Reliability
    disagreement_vs_error: DisagreementVsError
    particles: Particles
    selective_risk: SelectiveRisk
    correct: NDArray[np.bool_]
    environment: Mapping[str, Any]
    times: Times
    older_key: str | None = None

    @property
    def key(self) -> str:
        """Name of the record: a hash of what decides its numbers."""
        return self.older_key or key_of(self.cell, self.pins)

    @property
    def particle_count(self) -> int:
        """K."""
        return int(self.pins["settings"]["particles"])

    def flat_cell(self) -> dict[str, Any]:
        """The cell as single entries of a table, with the number of particles that its model made of it."""
        entries = self.cell.flat()
        if entries["particles"] is None:
            entries["particles"] = self.particle_count
        return entries

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON, with a checksum of all of them."""
        plain: dict[str, Any] = {"format": FORMAT, "key": self.key, "cell": self.cell.to_dict()}
        plain["pins"] = listed(self.pins)
        for name in _TYPED:
            plain[name] = listed(vars(getattr(self, name)))
        plain["correct"] = base64.b64encode(np.packbits(self.correct).tobytes()).decode("ascii")
        plain["environment"] = listed(self.environment)
        return {**plain, "sha256": _sha256(plain)}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> "Record":
        """A record from plain values; StateError in one sentence when they are not one."""
        if not isinstance(stored, Mapping) or stored.get("format") not in (FORMAT, older.FORMAT):
            raise StateError(f"record: got another format; allowed are {FORMAT} and {older.FORMAT}.")
        whole = {name: value for name, value in stored.items() if name != "sha256"}
        try:
            same = stored.get("sha256") == _sha256(whole)
        except ValueError:
            # Numbers that are not finite, which no record has.
            same = False
        if not same:
            raise StateError(
                "record: got contents that do not match their checksum; allowed is the file as it was written."
            )
        try:
            is_older = stored["format"] == older.FORMAT
            record = cls._of(older.upgraded(stored) if is_older else stored, stored["key"] if is_older else None)
        except (KeyError, TypeError, ValueError) as error:
            raise StateError(f"record: got one that is incomplete ({error}); allowed is a whole one.") from error
        seen, images = record.curves.position[-1:], record.results.images
        if seen != (images,):
            raise StateError(
                f"record: got curves that end after {seen[0] if seen else 0} of {images} images; allowed is all."
            )
        if record.key != stored["key"]:
            raise StateError(f"record: got the key {stored['key']!r}; allowed is {record.key!r}, of its cell and pins.")
        return record

    @classmethod
    def _of(cls, plain: Mapping[str, Any], older_key: str | None) -> "Record":
        parts: dict[str, Any] = {name: _typed(kind, plain.get(name, {})) for name, kind in _TYPED.items()}
        bits = np.frombuffer(base64.b64decode(plain["correct"], validate=True), np.uint8)
        return cls(
            cell=Cell.from_dict(plain["cell"]),
            pins=plain["pins"],
            correct=np.unpackbits(bits, count=parts["results"].images).astype(np.bool_),
            environment=plain["environment"],
            older_key=older_key,
            **parts,
        )

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "Record":
        """The record in a file."""
        try:
            stored = parsed(Path(path).read_bytes())
        except ValueError as error:
            raise StateError(
                f"{path}: record: got no JSON ({error}); allowed is a file that `polytta bench` wrote."
            ) from error
        try:
            return cls.from_dict(stored)
        except StateError as error:
            raise StateError(f"{path}: {error}") from error

    def write(self, folder: str | os.PathLike[str]) -> Path:
        """Writes ``folder/<key>.json``, whole or not at all; returns its path."""
        if self.older_key is not None:
            raise StateError(f"record: got {self.key} in an older format; allowed is to keep the file it came from.")
        path = Path(folder) / f"{self.key}.json"
        write_whole(path, (json.dumps(self.to_dict(), allow_nan=False, indent=1) + "\n").encode())
        return path


_TYPED: dict[str, type[Any]] = {
    "results": CellResults,
    "curves": Curves,
    "reliability": Reliability,
    "disagreement_vs_error": DisagreementVsError,
    "particles": Particles,
    "selective_risk": SelectiveRisk,
    "times": Times,
}


def canonical_json(value: Any) -> str:
    """One text for equal values: keys sorted, no spaces, tuples as lists, nothing that is not a finite number."""
    return json.dumps(listed(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def key_of(cell: Cell, pins: Mapping[str, Any]) -> str:
    """The key a record of this cell with these pins has, known before it is run."""
    return _sha256({"cell": cell.to_dict(), "pins": pins})[:KEY_DIGITS]


def _sha256(value: Any) -> str:
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def _typed(kind: type[T], stored: Mapping[str, Any]) -> T:
    names = {f.name for f in fields(kind)}  # type: ignore[arg-type]
    # What a newer version has added has a default.
    newer = {f.name for f in fields(kind) if f.default is not MISSING}  # type: ignore[arg-type]
    wrong = sorted((stored.keys() ^ names) - (newer - stored.keys()))
    if wrong:
        raise KeyError(f"{kind.__name__}: {wrong[0]}")
    return kind(**{name: as_tuples(value) for name, value in stored.items()})
