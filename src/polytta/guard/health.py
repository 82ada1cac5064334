"""One look at every particle after a step: how it is, and what is done about it.

All of it is made of tensors, so that a recorded step has its guard inside. A particle whose verdict is ok is handed
back as it was, bit for bit.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import log

import torch
from torch import Tensor

from polytta.guard.policy import Default

OK, WARN, COLLAPSED = 0, 1, 2
VERDICTS = ("ok", "warn", "collapsed")
SHORTENED, ROLLED_BACK, RESET, RESTING, PERIODIC, PULLED_BACK = 1, 2, 4, 8, 16, 32
ACTIONS = {
    SHORTENED: "shortened",
    ROLLED_BACK: "rolled back",
    RESET: "reset",
    RESTING: "rests",
    PERIODIC: "reset on time",
    PULLED_BACK: "pulled back",
}
"""What was done to a particle, as bits of one number, in words."""

_MOST_REST = 1024
_QUIET_FORGIVES = 1024
"""Healthy steps after which earlier collapses are forgotten."""
_SNAPSHOT_WITHIN = 0.125
"""Of the drift allowed: farther away nobody is sure enough to be gone back to."""
_WEIGHED = 40
"""Times as far may go who is weighed by evidence."""
_SLOW = 128
"""Steps: who takes longer to get as far as allowed has learnt, not collapsed, and is only kept from going farther."""
_GAIN = 0.02
"""Of ln C: less is no gain of balance."""

Memory = Mapping[str, Tensor]


@dataclass(frozen=True)
class Checkup:
    """What one look found.

    Attributes:
        theta: (R, P) the particles as they go on.
        verdict: (R,) OK, WARN or COLLAPSED.
        actions: (R,) sums of what was done.
        broken: (R,) images without a finite answer.
        recovered: (R,) who went back to a snapshot or to the source, and starts anew with everything else.
        memory: what the guard knows after it.
    """

    theta: Tensor
    verdict: Tensor
    actions: Tensor
    broken: Tensor
    recovered: Tensor
    memory: dict[str, Tensor]


def begin(policy: Default, theta: Tensor, num_classes: int) -> dict[str, Tensor]:
    """Memory before the first batch of (R, P) particles."""
    rows, size = theta.shape
    kept = min(policy.snapshots, policy.snapshot_bytes // max(1, rows * size * theta.element_size()))
    found = {name: theta.new_zeros(rows, num_classes) for name in ("answers", "source_answers")}
    found["compared"] = theta.new_zeros(rows)
    for name in ("rest", "strikes", "quiet", "kept", "age"):
        found[name] = torch.zeros(rows, dtype=torch.int64, device=theta.device)
    found["snapshots"] = theta.new_zeros(rows, kept, size)
    # How long batches have been of one class, by population at most: see ``polytta.engine.session``.
    found["one_sided"] = torch.zeros(rows, dtype=torch.int64, device=theta.device)
    return found


def compared(policy: Default, memory: Memory, logits: Tensor, source_logits: Tensor, rows: Tensor) -> dict[str, Tensor]:
    """Memory after (R, B, C) answers were compared with the source's on the same images, of the rows (R,) marked."""
    images = logits.shape[1]
    known = (memory["compared"] + images).clamp(max=policy.window)
    rate = (images / known).clamp(max=1.0).unsqueeze(1)
    after = dict(memory)
    for name, told in (("answers", logits), ("source_answers", source_logits)):
        mean = told.detach().softmax(dim=-1).mean(dim=1).to(known.dtype)
        after[name] = torch.where(rows.unsqueeze(1), torch.lerp(memory[name], mean, rate), memory[name])
    after["compared"] = torch.where(rows, known, memory["compared"])
    return after


def examined(
    policy: Default,
    memory: Memory,
    before: Tensor,
    after: Tensor,
    source: Tensor,
    logits: Tensor,
    step: Tensor,
    *,
    learners: Tensor,
    twins: Tensor,
    weighed: Tensor,
    restarted: Tensor,
) -> Checkup:
    """Looks at the particles after a step.

    Args:
        policy: what is allowed.
        memory: of the look before.
        before: (R, P) parameters before the step.
        after: (R, P) after it.
        source: (P,).
        logits: (R, B, C) answers to the batch.
        step: () number of the step just taken, from 1.
        learners: (R,) who may learn at all.
        twins: (R,) the row that looks alike and never learns, or its own.
        weighed: (R,) whose answers evidence judges already: they may go farther, since they count for little if wrong.
        restarted: (R,) who goes on from another, by evidence.
    """
    # Relative to the source, and to how far each may go.
    most = source.norm().clamp(min=torch.finfo(source.dtype).tiny) * (1 + (_WEIGHED - 1) * weighed)
    away = _distance(after, source)
    resting = learners & (memory["rest"] > 0)

    # Shorten, or stay.
    length = _distance(after, before)
    leads_away = learners & ~restarted & (away > _distance(before, source))
    shortened = leads_away & ~resting & (length > policy.longest_step * most)
    factor = (policy.longest_step * most / length.clamp(min=torch.finfo(source.dtype).tiny)).unsqueeze(1)
    theta = torch.where(shortened.unsqueeze(1), before + factor * (after - before), after)
    theta = torch.where((resting & ~restarted).unsqueeze(1), before, theta)

    # Judge.
    own_row = torch.arange(twins.shape[0], device=twins.device)
    memory = compared(policy, memory, logits, logits[twins], learners & ~weighed & (twins != own_row))
    drift = _distance(theta, source) / most
    broken = (logits == 0).all(dim=-1).sum(dim=1)
    share = broken / logits.shape[1]
    far, slow = drift > policy.drift, memory["age"] >= _SLOW
    collapsed = learners & ~resting & (_answers_beyond(policy, memory, share, 1.0) | (far & ~slow))
    near = (drift > 0.5 * policy.drift) | _answers_beyond(policy, memory, share, 0.5)
    warned = shortened | resting | (learners & near)
    # Whoever learns nothing has no way back, but is not to stay silent about it.
    verdict = COLLAPSED * collapsed + WARN * ((warned | (broken > 0)) & ~collapsed)

    # Stay near.
    pulled = learners & ~resting & far & ~collapsed
    theta = torch.where(pulled.unsqueeze(1), torch.lerp(source.expand_as(theta), theta, 0.5), theta)

    # Go back.
    due = torch.zeros_like(collapsed)
    if policy.reset_every is not None:
        due = learners & (step % policy.reset_every == 0)
    rolls = collapsed & ~due & (memory["kept"] > 0) & (memory["strikes"] == 0)
    if not policy.rollback or memory["snapshots"].shape[1] == 0:
        rolls = torch.zeros_like(rolls)
    else:
        theta = torch.where(rolls.unsqueeze(1), memory["snapshots"][:, 0], theta)
    resets = (collapsed & ~rolls) | due
    theta = torch.where(resets.unsqueeze(1), source, theta)
    recovered = collapsed | due

    actions = SHORTENED * shortened + ROLLED_BACK * rolls + RESET * (resets & ~due) + RESTING * resting + PERIODIC * due
    actions = actions + PULLED_BACK * (pulled & ~due)
    kept = _remembered(policy, memory, theta, drift, verdict, collapsed, recovered | restarted)
    return Checkup(theta, verdict, actions, broken, recovered, kept)


def _distance(left: Tensor, right: Tensor) -> Tensor:
    return (left - right).norm(dim=1)


def _answers_beyond(policy: Default, memory: Memory, broken: Tensor, share: float) -> Tensor:
    """(R,) whose answers are past that share of what is allowed."""
    most = log(memory["answers"].shape[1])
    lost = (_entropy(memory["source_answers"]) - _entropy(memory["answers"])) / most
    turned = (memory["answers"] - memory["source_answers"]).abs().sum(dim=1) / 2
    judged = memory["compared"] >= policy.patience
    by_answers = (lost > share * policy.balance) | ((turned > share * policy.turned) & (lost > -_GAIN))
    return (judged & by_answers) | (broken > share * policy.broken)


def _remembered(
    policy: Default,
    memory: Memory,
    theta: Tensor,
    drift: Tensor,
    verdict: Tensor,
    collapsed: Tensor,
    anew: Tensor,
) -> dict[str, Tensor]:
    """Memory for the next look."""
    kept = dict(memory)
    quiet = torch.where(verdict == OK, memory["quiet"] + 1, 0)
    rest = (policy.rest * 2 ** memory["strikes"]).clamp(max=_MOST_REST)
    kept["rest"] = torch.where(collapsed, rest, (memory["rest"] - 1).clamp(min=0))
    strikes = torch.where(quiet >= _QUIET_FORGIVES, 0, memory["strikes"])
    kept["strikes"] = torch.where(collapsed, (strikes + 1).clamp(max=16), strikes)
    kept["quiet"] = quiet
    kept["age"] = torch.where(anew, 0, memory["age"] + 1)
    for name in ("answers", "source_answers"):
        kept[name] = torch.where(anew.unsqueeze(1), 0.0, memory[name])
    kept["compared"] = torch.where(anew, 0.0, memory["compared"])
    ring = memory["snapshots"]
    if ring.shape[1]:
        due = (quiet > 0) & (quiet % policy.snapshot_every == 0) & (drift <= _SNAPSHOT_WITHIN * policy.drift)
        newest = torch.cat([theta.unsqueeze(1), ring[:, :-1]], dim=1)
        kept["snapshots"] = torch.where(due[:, None, None], newest, ring)
        kept["kept"] = torch.where(due, (memory["kept"] + 1).clamp(max=ring.shape[1]), memory["kept"])
    return kept


def _entropy(probs: Tensor) -> Tensor:
    return -torch.xlogy(probs, probs).sum(dim=-1)
