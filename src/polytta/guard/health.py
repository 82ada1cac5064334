"""One look at every particle after a step: how it is, and what is done about it.

All of it is made of tensors, so that a recorded step has its guard inside. A particle whose verdict is ok is handed
back as it was, bit for bit. The tensors are small, so that a look costs as much as it has operations: what never
changes is worked out before the first look, and what nobody can need is left out.
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
QUIET_FORGIVES = 1024
"""Healthy steps after which earlier collapses are forgotten."""
SNAPSHOT_WITHIN = 0.125
"""Of the drift allowed: farther away nobody is sure enough to be gone back to."""
_WEIGHED = 40
"""Times as far may go who is weighed by evidence."""
SLOW = 128
"""Steps: who takes longer to get as far as allowed has learnt, not collapsed, and is only kept from going farther."""
GAIN = 0.02
"""Of ln C: less is no gain of balance."""
MOST_STRIKES = 16

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
        slowed: (R,) who of them had a reason to, and learns more slowly from now on.
        memory: what the guard knows after it.
        acts: whether anything but the memory may be other than it was.
    """

    theta: Tensor
    verdict: Tensor
    actions: Tensor
    broken: Tensor
    recovered: Tensor
    slowed: Tensor
    memory: dict[str, Tensor]
    acts: bool = True


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


def warned(verdict: Tensor, gradient: Tensor) -> Tensor:
    """(R,) verdicts, no better than a warning where a gradient of that (R,) length is not finite.

    It moved nothing (``polytta.guard.updates``), so that parameters and answers cannot tell.
    """
    return torch.maximum(verdict, WARN * gradient.isinf())


class Examiner:
    """Looks at the same particles after every step.

    Args:
        policy: what is allowed.
        source: (P,) the parameters they started from.
        learners: (R,) who may learn at all.
        twins: (R,) the row that looks alike and never learns, or its own.
        weighed: (R,) whose answers evidence judges already: they may go farther, since they count for little if wrong.
    """

    def __init__(self, policy: Default, source: Tensor, learners: Tensor, twins: Tensor, weighed: Tensor) -> None:
        self.policy, self.twins = policy, twins
        self._source, self._learners = source, learners
        own_row = torch.arange(twins.shape[0], device=twins.device)
        by_answers = learners & ~weighed
        self._compared = by_answers & (twins != own_row)
        # Read here, once, and never in a step.
        self._compares, self._judges_answers = bool(self._compared.any()), bool(by_answers.any())
        # Relative to the source, and to how far each may go.
        self._most = source.norm().clamp(min=torch.finfo(source.dtype).tiny) * (1 + (_WEIGHED - 1) * weighed)
        self._longest = policy.longest_step * self._most
        rests = [min(policy.rest * 2**strikes, _MOST_REST) for strikes in range(MOST_STRIKES + 1)]
        self._rests = torch.tensor(rests, device=source.device)
        self._bits = torch.tensor(tuple(ACTIONS), device=source.device).unsqueeze(1)
        # As a number of Python's it would be made a tensor by every operation.
        self._nothing = source.new_zeros(())
        self._nobody = torch.zeros_like(learners)

    def __call__(
        self, memory: Memory, before: Tensor, after: Tensor, logits: Tensor, step: Tensor, restarted: Tensor | None
    ) -> Checkup:
        """What is found after a step, and what is done about it.

        Args:
            memory: of the look before.
            before: (R, P) parameters before the step.
            after: (R, P) after it.
            logits: (R, B, C) answers to the batch.
            step: () number of the step just taken, from 1.
            restarted: (R,) who goes on from another, by evidence; None where nobody ever does.
        """
        policy, source, learners = self.policy, self._source, self._learners
        resting = learners & (memory["rest"] > 0)
        # Of marks within others the rest is what differs, by one operation less.
        awake = learners ^ resting

        # Shorten, or stay.
        moved = after - before
        away, was_away = torch.linalg.vector_norm(torch.stack([after, before]) - source, dim=2)
        length = torch.linalg.vector_norm(moved, dim=1)
        stays, steps = (resting, awake) if restarted is None else (resting & ~restarted, awake & ~restarted)
        shortened = steps & (away > was_away) & (length > self._longest)
        theta = torch.where(shortened.unsqueeze(1), before + (self._longest / length).unsqueeze(1) * moved, after)
        theta = torch.where(stays.unsqueeze(1), before, theta)

        # Judge.
        memory, broken = self._with_answers(memory, logits), self._broken(logits)
        drift = torch.linalg.vector_norm(theta - source, dim=1) / self._most
        beyond, near = self._answers_beyond(memory, broken / logits.shape[1])
        far = drift > policy.drift
        collapsed = awake & (beyond | (far & (memory["age"] < SLOW)))
        near = near | (drift > 0.5 * policy.drift)
        # Whoever learns nothing has no way back, but is not to stay silent about it.
        noticed = collapsed | shortened | resting | (learners & near) | (broken > 0)
        verdict = (COLLAPSED - WARN) * collapsed + WARN * noticed

        # Stay near.
        pulled = (awake ^ collapsed) & far
        theta = torch.where(pulled.unsqueeze(1), torch.lerp(source.expand_as(theta), theta, 0.5), theta)

        # Go back.
        due, rolls, resets, recovered, slowed = self._nobody, self._nobody, collapsed, collapsed, collapsed
        if policy.reset_every is not None:
            due = learners & (step % policy.reset_every == 0)
            pulled, resets, recovered = pulled & ~due, collapsed & ~due, collapsed | due
            slowed = recovered & noticed
        if policy.rollback and memory["snapshots"].shape[1]:
            rolls = resets & (memory["kept"] > 0) & (memory["strikes"] == 0)
            resets = resets ^ rolls
            theta = torch.where(rolls.unsqueeze(1), memory["snapshots"][:, 0], theta)
        theta = torch.where((recovered ^ rolls).unsqueeze(1), source, theta)

        done = {SHORTENED: shortened, ROLLED_BACK: rolls, RESET: resets}
        done |= {RESTING: resting, PERIODIC: due, PULLED_BACK: pulled}
        actions = (torch.stack([done[bit] for bit in ACTIONS]) * self._bits).sum(dim=0)
        anew = recovered if restarted is None else recovered | restarted
        kept = self._remembered(memory, theta, drift, noticed, collapsed, anew)
        return Checkup(theta, verdict, actions, broken, recovered, slowed, kept)

    def _with_answers(self, memory: Memory, logits: Tensor) -> Memory:
        """Memory after answers were compared with those of twins."""
        if not self._compares:
            return memory
        return compared(self.policy, memory, logits, logits[self.twins], self._compared)

    def _broken(self, logits: Tensor) -> Tensor:
        """(R,) images without a finite answer, for which there are minus zeros."""
        return ((logits == 0) & logits.signbit()).all(dim=-1).sum(dim=1)

    def _answers_beyond(self, memory: Memory, broken: Tensor) -> tuple[Tensor, Tensor]:
        """(R,) whose answers are past what is allowed, and past half of it."""
        policy = self.policy
        past = [broken > share * policy.broken for share in (1.0, 0.5)]
        if self._judges_answers:
            told = torch.stack([memory["answers"], memory["source_answers"]])
            own, of_source = torch.xlogy(told, told).sum(dim=-1)
            lost = (own - of_source) / log(told.shape[-1])
            turned = (told[0] - told[1]).abs().sum(dim=1) / 2
            judged, gained_none = memory["compared"] >= policy.patience, lost > -GAIN
            past = [
                (judged & ((lost > share * policy.balance) | ((turned > share * policy.turned) & gained_none))) | more
                for share, more in zip((1.0, 0.5), past, strict=True)
            ]
        return past[0], past[1]

    def _remembered(
        self, memory: Memory, theta: Tensor, drift: Tensor, noticed: Tensor, collapsed: Tensor, anew: Tensor
    ) -> dict[str, Tensor]:
        """Memory for the next look."""
        policy, kept, fine = self.policy, dict(memory), ~noticed
        quiet = (memory["quiet"] + 1) * fine
        # A file may say anything.
        rests = self._rests[memory["strikes"].clamp(max=MOST_STRIKES)]
        kept["rest"] = torch.where(collapsed, rests, (memory["rest"] - 1).clamp(min=0))
        # Who has just collapsed was not quiet.
        strikes = memory["strikes"] * (quiet < QUIET_FORGIVES)
        kept["strikes"] = (strikes + collapsed).clamp(max=MOST_STRIKES)
        kept["quiet"] = quiet
        kept["age"] = (memory["age"] + 1) * ~anew
        if self._judges_answers:
            for name in ("answers", "source_answers"):
                kept[name] = torch.where(anew.unsqueeze(1), self._nothing, memory[name])
            kept["compared"] = torch.where(anew, self._nothing, memory["compared"])
        ring = memory["snapshots"]
        if ring.shape[1]:
            due = fine & (quiet % policy.snapshot_every == 0) & (drift <= SNAPSHOT_WITHIN * policy.drift)
            newest = torch.cat([theta.unsqueeze(1), ring[:, :-1]], dim=1)
            kept["snapshots"] = torch.where(due[:, None, None], newest, ring)
            kept["kept"] = (memory["kept"] + due).clamp(max=ring.shape[1])
        return kept
