"""The guard's look by kernels finds what the plain one finds, whatever happened to the particles."""

from itertools import product
from typing import Any

import pytest
import torch
from tests.gpu.kernels.where import DEVICE, needs_kernels
from torch import Tensor

from polytta.gpu.examiner import FusedExaminer
from polytta.guard import ACTIONS, VERDICTS, Checkup, Default, Examiner, begin

ROWS, CLASSES, IMAGES = 12, 5, 8
SIZES = (7, 5000)
POLICIES: dict[str, dict[str, Any]] = {
    "default": {"snapshot_every": 2, "patience": 8},
    "periodic": {"reset_every": 2, "snapshots": 0},
    "source": {"rollback": False, "snapshots": 1, "snapshot_every": 1, "rest": 2},
}


def some(chance: float) -> Tensor:
    return torch.rand(ROWS, device=DEVICE) < chance


def past(policy: Default, theta: Tensor) -> dict[str, Tensor]:
    """Memory of particles of all fates."""
    memory = begin(policy, theta, CLASSES)
    for name in ("answers", "source_answers"):
        memory[name] = (5 * torch.randn(ROWS, CLASSES, device=DEVICE)).softmax(dim=-1) * some(0.9).unsqueeze(1)
    memory["compared"] = torch.randint(0, 64, (ROWS,), device=DEVICE).float()
    for name, most in (("rest", 3), ("strikes", 17), ("kept", memory["snapshots"].shape[1])):
        memory[name] = torch.randint(0, most + 1, (ROWS,), device=DEVICE) * some(0.4)
    memory["quiet"] = torch.tensor([0, 1, 2, 63, 1023, 5000], device=DEVICE)[torch.randint(0, 6, (ROWS,))]
    memory["age"] = torch.randint(126, 131, (ROWS,), device=DEVICE)
    memory["snapshots"] = torch.randn_like(memory["snapshots"])
    return memory


def looks(seed: int, size: int, settings: dict[str, Any], *, twins: bool, restarts: bool) -> list[Checkup]:
    """By the plain examiner and by that with kernels."""
    torch.manual_seed(seed)
    policy, source = Default(**settings), torch.randn(size, device=DEVICE)
    unit = source.norm() / size**0.5
    before, after = (
        source + unit * 0.02 * torch.rand(ROWS, 1, device=DEVICE) ** 3 * torch.randn(ROWS, size, device=DEVICE)
        for _ in range(2)
    )
    after = torch.where(some(0.5).unsqueeze(1), before + 1e-3 * (after - before), after)
    logits = torch.randn(ROWS, IMAGES, CLASSES, device=DEVICE)
    logits[torch.rand(ROWS, IMAGES, device=DEVICE) < some(0.3).unsqueeze(1) * torch.rand(ROWS, 1, device=DEVICE)] = 0
    own = torch.arange(ROWS, device=DEVICE)
    whose = own // 3 * 3 if twins else own
    given = (past(policy, after), before, after, logits, torch.tensor(seed, device=DEVICE))
    marks, weighed, learners = some(0.2) if restarts else None, some(0.3) & (whose != own), some(0.9)
    return [kind(policy, source, learners, whose, weighed)(*given, marks) for kind in (Examiner, FusedExaminer)]


@needs_kernels
@pytest.mark.parametrize("name", POLICIES)
def test_kernels_find_what_plain_looks_find(name: str) -> None:
    verdicts, actions = set[int](), 0
    cases = list(product(SIZES, (False, True), (False, True)))
    for seed in range(4 * len(cases)):
        size, twins, restarts = cases[seed % len(cases)]
        expected, got = looks(seed, size, POLICIES[name], twins=twins, restarts=restarts)
        for part in ("verdict", "actions", "broken", "recovered", "slowed"):
            assert torch.equal(getattr(got, part), getattr(expected, part)), part
        assert torch.allclose(got.theta, expected.theta, rtol=1e-6, atol=1e-6)
        fine = expected.verdict == 0
        assert torch.equal(got.theta[fine], expected.theta[fine])
        assert got.memory.keys() == expected.memory.keys()
        for key, value in expected.memory.items():
            assert got.memory[key].dtype == value.dtype
            assert torch.allclose(got.memory[key], value, rtol=1e-6, atol=1e-6), key
        verdicts |= set(expected.verdict.tolist())
        actions |= sum(bit for bit in ACTIONS if bool((expected.actions & bit).any()))
    assert verdicts == set(range(len(VERDICTS)))
    wanted = {"default": (1, 2, 4, 8, 32), "periodic": (1, 4, 8, 16, 32), "source": (1, 4, 8, 32)}[name]
    assert actions == sum(wanted), "the test needs everything that can be done"


@needs_kernels
def test_what_kernels_do_not_know_is_looked_at_the_plain_way() -> None:
    policy, source = Default(), torch.ones(4, dtype=torch.float64, device=DEVICE)
    theta, row = source.unsqueeze(0), torch.tensor([True], device=DEVICE)
    look = FusedExaminer(policy, source, row, torch.zeros(1, dtype=torch.int64, device=DEVICE), ~row)
    logits = torch.randn(1, 4, 3, device=DEVICE)
    found = look(begin(policy, theta, 3), theta, theta, logits, torch.tensor(1, device=DEVICE), None)
    assert found.theta.dtype == torch.float64
    assert torch.equal(found.theta, theta)
