"""What the guard did, for people and for machines: a warning of the ``polytta`` logger, and a line of an audit log.

Both are told once per event, when a verdict changes or something is done, not at every step that it lasts.
"""

import json
import logging
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


class Events:
    """Tells of changes in the particles' health.

    Attributes:
        audit: the file that every event is a line of; None for none.
    """

    def __init__(self) -> None:
        self.audit: Path | None = None
        self._known: dict[int, str] = {}

    def tell(self, report: StepReport) -> None:
        """Compares a step with what is known."""
        for row, health in enumerate(report.health):
            done = [name for name in report.actions[row] if name != _LASTING]
            known = self._known.get(row, "ok")
            if health == known and not set(done) - _ROUTINE:
                continue
            self._known[row] = health
            if health == known == "ok" and not done:
                continue
            self._write(report, row, health, done)

    def _write(self, report: StepReport, row: int, health: str, done: list[str]) -> None:
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
        what = f"; {', '.join(done)}" if done else ""
        lost = f", {report.broken[row]} answers not finite" if report.broken[row] else ""
        level = logging.INFO if health == "ok" else logging.WARNING
        LOGGER.log(level, "step %d: particle %d is %s%s%s", report.step, row, health, lost, what)
        if self.audit is not None:
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


def _number(value: float) -> float | None:
    """JSON has no word for what is not finite."""
    return value if isfinite(value) else None
