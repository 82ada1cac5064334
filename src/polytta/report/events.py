"""What the guard did, for people and for machines: a warning of the ``polytta`` logger, and a line of an audit log.

Both are told once per event, when a verdict changes or something is done, not at every step that it lasts.
"""

import json
import logging
from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from polytta.errors import ConfigError
from polytta.report.step import StepReport
from polytta.system.files import open_to_append

LOGGER = logging.getLogger("polytta")
_LASTING = "rests"
_ROUTINE = {"shortened", "pulled back"}
"""Done again and again to who learns fast or long; told with the verdict, when that changes."""

_VERDICTS = {
    "ok": ("is well", "are well"),
    "warn": ("is close to collapse (warn)", "are close to collapse (warn)"),
    "collapsed": ("has collapsed", "have collapsed"),
}
_REASONS = {
    "ok": "",
    "warn": "parameters or answers are far from the source's",
    "collapsed": "parameters or answers went too far from the source's",
}
_ACTIONS = {
    "shortened": "a step was too long, and was shortened",
    "rolled back": "back to the last good state",
    "reset": "back to the source",
    "reset on time": "back to the source, as every so many steps",
    "rests": "rests after a collapse",
    "pulled back": "pulled half the way back to the source",
}


class Events:
    """Tells of changes in the particles' health.

    Attributes:
        audit: the file that every event is a line of; None for none.
    """

    def __init__(self) -> None:
        self.audit: Path | None = None
        self._known: dict[int, str] = {}

    def tell(self, report: StepReport) -> None:
        """Compares a step with what is known; particles that fare alike are told of together."""
        alike: dict[tuple[object, ...], list[int]] = {}
        size = len(report.health) // report.populations
        for row, health in enumerate(report.health):
            done = [name for name in report.actions[row] if name != _LASTING]
            known = self._known.get(row, "ok")
            if health == known and not set(done) - _ROUTINE:
                continue
            self._known[row] = health
            if health == known == "ok" and not done:
                continue
            fate = (row // size, health, report.actions[row], report.broken[row])
            alike.setdefault(fate, []).append(row)
            self._write(report, row, health, done)
        for rows in alike.values():
            level = logging.INFO if report.health[rows[0]] == "ok" else logging.WARNING
            LOGGER.log(level, "step %d: %s", report.step, _in_words(report, rows))

    def _write(self, report: StepReport, row: int, health: str, done: list[str]) -> None:
        if self.audit is None:
            return
        size = len(report.health) // report.populations
        event: dict[str, Any] = {
            "step": report.step,
            "population": row // size,
            "particle": row % size,
            "health": health,
            "actions": list(done),
            "broken": report.broken[row],
            "loss": _number(report.loss[row]),
            "gradient_norm": _number(report.gradient_norm[row]),
            "selected_share": report.selected_share[row],
        }
        try:
            with open_to_append(self.audit) as file:
                file.write(json.dumps(event, allow_nan=False) + "\n")
        except OSError as error:  # a full disk must not cost a step
            LOGGER.warning("audit: %s cannot be written any more (%s)", self.audit, error)
            self.audit = None

    def write_to(self, path: Path | None) -> None:
        """Writes every event from now on to a file as well, at its end; None writes to none."""
        if path is not None:
            try:
                open_to_append(path).close()
            except OSError as error:
                raise ConfigError(f"audit: got {str(path)!r} ({error}); allowed is a file to append to.") from error
        self.audit = path

    def copy(self) -> "Events":
        """Of a copy of the adapter, which writes to no file that another one writes to."""
        twin = Events()
        twin._known = dict(self._known)
        return twin


def _in_words(report: StepReport, rows: Sequence[int]) -> str:
    """What became of particles that fared alike, and why."""
    size, first = len(report.health) // report.populations, rows[0]
    health, actions, broken = report.health[first], report.actions[first], report.broken[first]
    numbers = ", ".join(str(row % size) for row in rows)
    where = f" of population {first // size}" if report.populations > 1 else ""
    several = len(rows) > 1
    who = f"particle{'s' * several} {numbers}{where} {_VERDICTS[health][several]}"
    told = [_ACTIONS.get(name, name) for name in actions]
    reasons = [f"{broken} answers not finite"] if broken else []
    # What was shortened or rests is close to collapse for that.
    if not broken and not (health == "warn" and {"shortened", _LASTING} & set(actions)):
        reasons = [_REASONS[health]] if _REASONS[health] else []
    return f"{who}: {'; '.join([*reasons, *told])}" if reasons or told else who


def _number(value: float) -> float | None:
    """JSON has no word for what is not finite."""
    return value if isfinite(value) else None
