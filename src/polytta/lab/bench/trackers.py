"""Where the progress of a benchmark is told besides its folder: lines of JSON always, other trackers on demand.

Trackers are told what happened; they decide nothing, and records do not depend on them.
"""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from polytta.errors import ConfigError
from polytta.lab.bench.groups import Failure
from polytta.lab.bench.record import Record

SCORES = ("accuracy", "top5", "ece", "nll", "brier", "worst_group", "entropy", "disagreement")
CURVES = ("accuracy", "entropy", "disagreement")


class Tracker(ABC):
    """Is told of every cell when it is done."""

    @abstractmethod
    def finished(self, record: Record) -> None:
        """A cell has a record."""

    def failed(self, failure: Failure) -> None:
        """A cell could not be run."""

    def close(self) -> None:
        """Nothing more will happen."""


class JsonLines(Tracker):
    """``DIR/events.jsonl``: one line per event, appended, so that the story of all runs in a folder stays."""

    def __init__(self, folder: Path) -> None:
        self._file = (folder / "events.jsonl").open("a", encoding="utf-8")

    def started(self, cells: int, finished: int) -> None:
        """A run begins, with so many cells in all and so many of them finished before."""
        self._write("started", cells=cells, finished=finished)

    def finished(self, record: Record) -> None:
        """Its key, what it was, and its accuracy."""
        seconds = round(record.times.wall_seconds, 3)
        self._write("finished", key=record.key, cell=record.cell.words, accuracy=record.results.accuracy, s=seconds)

    def failed(self, failure: Failure) -> None:
        """Its key, what it was, and why."""
        self._write("failed", key=failure.key, cell=failure.cell.words, why=failure.sentence)

    def close(self) -> None:
        """The end of the run."""
        self._write("ended")
        self._file.close()

    def _write(self, event: str, **facts: Any) -> None:
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        self._file.write(json.dumps({"time": now, "event": event, **facts}) + "\n")
        self._file.flush()


class TensorBoard(Tracker):
    """``DIR/tensorboard``: one run per cell with its curves over the stream and its final scores."""

    def __init__(self, folder: Path) -> None:
        _require("tensorboard", "TensorBoard")
        self._folder = folder / "tensorboard"
        self._writer = import_module("torch.utils.tensorboard").SummaryWriter

    def finished(self, record: Record) -> None:
        """Writes the cell's run."""
        with self._writer(str(self._folder / f"{as_name(record.cell.words)}-{record.key[:8]}")) as writer:
            for name, position, value in _points(record):
                writer.add_scalar(f"stream/{name}", value, position)
            for name, value in _scores(record).items():
                writer.add_scalar(f"final/{name}", value, record.results.images)


class MLflow(Tracker):
    """One MLflow run per cell, in the experiment "polytta" of the store MLFLOW_TRACKING_URI names."""

    def __init__(self, folder: Path) -> None:
        _require("mlflow", "MLflow")
        self._mlflow = import_module("mlflow")
        self._mlflow.set_experiment("polytta")

    def finished(self, record: Record) -> None:
        """Writes the cell's run."""
        with self._mlflow.start_run(run_name=record.cell.words):
            self._mlflow.log_params({"key": record.key, **record.cell.flat()})
            for name, position, value in _points(record):
                self._mlflow.log_metric(f"stream_{name}", value, step=position)
            self._mlflow.log_metrics(_scores(record))


TRACKERS: dict[str, type[TensorBoard] | type[MLflow]] = {"tensorboard": TensorBoard, "mlflow": MLflow}


def as_name(words: str) -> str:
    """Words as the name of one folder: a row may be called anything, and must not lead elsewhere."""
    return re.sub(r"[^\w.+=,-]", "-", words).lstrip(".")[:150]


def open_trackers(names: Sequence[str], folder: Path) -> list[Tracker]:
    """Trackers by name."""
    unknown = [name for name in names if name not in TRACKERS]
    if unknown:
        raise ConfigError(f"--trackers: got {unknown[0]!r}; allowed are {', '.join(TRACKERS)}.")
    return [TRACKERS[name](folder) for name in names]


def _points(record: Record) -> Iterator[tuple[str, int, float]]:
    for name in CURVES:
        yield from ((name, *point) for point in zip(record.curves.position, getattr(record.curves, name), strict=True))


def _scores(record: Record) -> dict[str, float]:
    values = {name: getattr(record.results, name) for name in SCORES}
    return {name: value for name, value in values.items() if value is not None}


def _require(module: str, name: str) -> None:
    if find_spec(module) is None:
        raise ConfigError(
            f"--trackers: got {name}, which is not installed; allowed after pip install 'polytta[trackers]'."
        )
