"""A look that ends early finds what a whole one does."""

from unittest.mock import patch

import pytest
import torch
from torch import Tensor

import polytta
from polytta.checks.networks import small_model, small_stream
from polytta.guard import Checkup, Default, Examiner, HostExaminer, begin, compared

ROWS, SIZE, CLASSES, IMAGES = 5, 12, 4, 6


def walked(examiner: Examiner, policy: Default, seed: int, source: Tensor) -> list[Checkup]:
    """Looks after steps that are mostly short, now and then long, far, broken, compared or restarted."""
    draw = torch.Generator().manual_seed(seed)
    theta = source.expand(ROWS, -1).clone()
    memory, found = begin(policy, theta, CLASSES), []
    for number in range(1, 160):
        kind = int(torch.randint(0, 200, (), generator=draw))
        length = {0: 0.5, 1: 0.02}.get(kind, 1e-5)
        after = theta + length * torch.randn(ROWS, SIZE, generator=draw)
        logits = torch.randn(ROWS, IMAGES, CLASSES, generator=draw)
        if kind == 2:
            logits[1, :4] = 0
        restarted = torch.zeros(ROWS, dtype=torch.bool)
        restarted[3] = kind == 3
        found.append(examiner(memory, theta, after, logits, torch.tensor(number), restarted))
        theta, memory = found[-1].theta, found[-1].memory
        if number % 8 == 0:
            sure = logits.clone()
            sure[0] = 8 * (kind % 2) * torch.eye(CLASSES)[0]
            memory = compared(policy, memory, sure, logits, torch.ones(ROWS, dtype=torch.bool))
    return found


@pytest.mark.parametrize(
    "policy", [Default(), Default(reset_every=7, snapshot_every=5, patience=8), Default(snapshots=0)]
)
@pytest.mark.parametrize("twins", ["own", "another"])
def test_an_early_end_changes_nothing(policy: Default, twins: str) -> None:
    source = torch.randn(SIZE, generator=torch.Generator().manual_seed(1))
    learners = torch.tensor([True, True, False, True, True])
    rows = torch.arange(ROWS) if twins == "own" else torch.tensor([2, 1, 2, 2, 4])
    weighed = torch.tensor([False, False, False, True, False])
    early = 0
    for seed in range(6):
        both = [kind(policy, source, learners, rows, weighed) for kind in (Examiner, HostExaminer)]
        for whole, short in zip(*(walked(one, policy, seed, source) for one in both), strict=True):
            early += not short.acts
            for name in ("theta", "verdict", "actions", "broken", "recovered", "slowed"):
                one, other = getattr(whole, name), getattr(short, name)
                assert one.dtype == other.dtype
                assert torch.equal(one, other), name
            assert whole.memory.keys() == short.memory.keys()
            assert all(torch.equal(value, short.memory[name]) for name, value in whole.memory.items())
    assert early > 100 if twins == "own" else early == 0


@pytest.mark.parametrize("settings", [{"method": "tent", "particles": 2, "lr": 0.02}, {}], ids=["tent", "population"])
def test_an_adapter_goes_the_same_way(settings: dict[str, object]) -> None:
    batches = small_stream(40, 4)
    with patch("polytta.particles.folded.FoldedEngine.examiner_class", Examiner):
        expected = polytta.adapt(small_model("group"), exclude=None, guard="default", **settings)  # type: ignore[arg-type]
        told = [expected(x) for x in batches]
    adapted = polytta.adapt(small_model("group"), exclude=None, guard="default", **settings)  # type: ignore[arg-type]
    assert all(torch.equal(adapted(x), one) for x, one in zip(batches, told, strict=True))
    assert torch.equal(adapted.theta, expected.theta)
    assert adapted.totals.actions == expected.totals.actions
