"""Groups of cells that run as one batch, and what comes of trying to run one."""

import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from polytta.data.datasets.decode import UnreadableImageError
from polytta.lab.bench.cell import Cell
from polytta.lab.bench.execution import Execution
from polytta.lab.bench.plan import Plan
from polytta.lab.bench.record import Record, canonical_json
from polytta.lab.bench.run import run_group

Group: TypeAlias = tuple[Plan, ...]


@dataclass(frozen=True)
class Failure:
    """A cell that could not be run: why, in one sentence and in full."""

    key: str
    cell: Cell
    sentence: str
    traceback: str
    is_unreadable_image: bool = False


CellOutcome: TypeAlias = Record | Failure


def make_groups(plans: Sequence[Plan], execution: Execution) -> list[Group]:
    """Puts cells together where they may share a batch, the most costly groups first."""
    together: dict[str, list[Plan]] = {}
    for plan in plans:
        together.setdefault(_shared(plan) if execution.folds else plan.key, []).append(plan)
    groups: list[Group] = []
    for members in together.values():
        cell = members[0].cell
        most = max(1, execution.fold_images // (cell.batch_size * members[0].particles))
        groups.extend(tuple(members[start : start + most]) for start in range(0, len(members), most))
    # No process should end with a long group while the others have nothing left.
    return sorted(groups, key=lambda group: -work(group))


def work(group: Iterable[Plan]) -> int:
    """How much there is to do: (particle, image) pairs."""
    return sum(plan.images * plan.particles for plan in group)


def attempt(group: Group, report: Callable[[int], object], execution: Execution) -> list[CellOutcome]:
    """Runs a group; where that fails, each of its cells alone, so that one bad cell costs no other."""
    try:
        return list(run_group(group, report, execution))
    except Exception as error:
        sentence = f"{type(error).__name__}: {' '.join(str(error).split())}"
        is_image = isinstance(error, UnreadableImageError)
        failure = Failure(group[0].key, group[0].cell, sentence, traceback.format_exc(), is_image)
    if len(group) == 1:
        return [failure]
    # Only now: as long as the error is being handled, its traceback keeps the memory of the whole group.
    return [outcome for plan in group for outcome in attempt((plan,), report, execution)]


def _shared(plan: Plan) -> str:
    """Equal for cells that differ in stream, seed and learning rate alone, over streams cut into equal batches."""
    cell = plan.cell.to_dict()
    for name in ("dataset", "corruption", "severity", "scenario", "images", "variant", "seed"):
        del cell[name]
    for name in ("lr", "pace"):
        cell["settings"].pop(name, None)
    # A segment ends with a shorter batch, so equally long streams have equal batches only if their segments match.
    kind, rates = plan.rates
    # Who never learns is what the others are weighed against, and must be so in every cell of a run.
    silent = [rate == 0 for rate in rates]
    return canonical_json([cell, kind, silent, plan.pins["model"], plan.images, plan.pins["stream"]["starts"]])
