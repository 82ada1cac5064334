"""The guard's look at every particle (``polytta.guard.health``) in three launches instead of a hundred.

Each is one pass over the parameters: how far a step went, how far from the source it leads once it is no longer than
allowed, and what becomes of everybody. What is decided about a particle is decided by every program that has some of
its parameters, since that takes less time than telling them.
"""

from collections.abc import Mapping
from math import log

import torch
import triton
import triton.language as tl
from torch import Tensor

from polytta.guard import health
from polytta.guard.policy import Default

_VALUES = 2048
"""Of a particle that a program has."""
_SUMS = 4
"""Of squares, that a program leaves to others: distances to the source after and before the step, its length, drift."""


@triton.jit
def _total(sums, row, blocks, which, NP: tl.constexpr, SUMS: tl.constexpr):
    at = tl.arange(0, NP)
    found = tl.load(sums + (row * blocks + at) * SUMS + which, mask=at < blocks, other=0.0)
    return tl.sqrt(tl.sum(found, axis=0))


@triton.jit
def _stepped(sums, row, blocks, longest, learners, restarted, rest, NP: tl.constexpr, SUMS: tl.constexpr):
    away, was_away = _total(sums, row, blocks, 0, NP, SUMS), _total(sums, row, blocks, 1, NP, SUMS)
    length, allowed = _total(sums, row, blocks, 2, NP, SUMS), tl.load(longest + row)
    learns = tl.load(learners + row) != 0
    resting = learns & (tl.load(rest + row) > 0)
    awake = learns & ~resting
    goes_on = tl.load(restarted + row) != 0
    shortened = awake & ~goes_on & (away > was_away) & (length > allowed)
    return learns, resting, awake, goes_on, shortened, allowed / tl.where(shortened, length, 1.0)


@triton.jit
def _taken(before, after, at, there, stays, shortened, factor):
    old, new = tl.load(before + at, mask=there, other=0.0), tl.load(after + at, mask=there, other=0.0)
    return tl.where(stays, old, tl.where(shortened, old + factor * (new - old), new))


@triton.jit
def _measure_step(before, after, source, sums, size, NB: tl.constexpr, SUMS: tl.constexpr):
    row, block = tl.program_id(0), tl.program_id(1)
    at = block * NB + tl.arange(0, NB)
    there = at < size
    origin = tl.load(source + at, mask=there, other=0.0)
    old = tl.load(before + row * size + at, mask=there, other=0.0)
    new = tl.load(after + row * size + at, mask=there, other=0.0)
    out = sums + (row * tl.num_programs(1) + block) * SUMS
    tl.store(out, tl.sum((new - origin) * (new - origin), axis=0))
    tl.store(out + 1, tl.sum((old - origin) * (old - origin), axis=0))
    tl.store(out + 2, tl.sum((new - old) * (new - old), axis=0))


@triton.jit
def _measure_drift(
    before, after, source, sums, size, longest, learners, restarted, rest,
    NB: tl.constexpr, NP: tl.constexpr, SUMS: tl.constexpr,
):  # fmt: skip
    row, block, blocks = tl.program_id(0), tl.program_id(1), tl.num_programs(1)
    _, resting, _, goes_on, shortened, factor = _stepped(
        sums, row, blocks, longest, learners, restarted, rest, NP, SUMS
    )
    at = block * NB + tl.arange(0, NB)
    there = at < size
    theta = _taken(before, after, row * size + at, there, resting & ~goes_on, shortened, factor)
    away = theta - tl.load(source + at, mask=there, other=0.0)
    tl.store(sums + (row * blocks + block) * SUMS + 3, tl.sum(tl.where(there, away * away, 0.0), axis=0))


@triton.jit
def _decide(
    before, after, source, sums, size, longest, learners, restarted, rest,
    most, rests, broken, images, step, strikes, quiet, kept, age, answers, source_answers, compared, ring,
    theta_out, verdict_out, actions_out, recovered_out, slowed_out, rest_out, strikes_out, quiet_out, kept_out, age_out,
    answers_out, source_answers_out, compared_out, ring_out,
    classes, log_classes, drift_allowed, balance, turned_allowed, broken_allowed, patience, within, gain,
    JUDGES: tl.constexpr, ROLLS: tl.constexpr, SLOTS: tl.constexpr, RESET_EVERY: tl.constexpr,
    SNAPSHOT_EVERY: tl.constexpr, SLOW: tl.constexpr, FORGIVES: tl.constexpr, MOST_STRIKES: tl.constexpr,
    NB: tl.constexpr, NP: tl.constexpr, NC: tl.constexpr, SUMS: tl.constexpr,
):  # fmt: skip
    row, block, blocks = tl.program_id(0), tl.program_id(1), tl.num_programs(1)
    learns, resting, awake, goes_on, shortened, factor = _stepped(
        sums, row, blocks, longest, learners, restarted, rest, NP, SUMS
    )

    # Judge.
    drift = _total(sums, row, blocks, 3, NP, SUMS) / tl.load(most + row)
    lacking = tl.load(broken + row)
    share = lacking.to(tl.float32) / images
    beyond, near = share > broken_allowed, share > 0.5 * broken_allowed
    at_class = tl.arange(0, NC)
    some = at_class < classes
    if JUDGES:
        own = tl.load(answers + row * classes + at_class, mask=some, other=0.0)
        of_source = tl.load(source_answers + row * classes + at_class, mask=some, other=0.0)
        known = tl.load(compared + row)
        # 0 ln 0 is 0.
        told = tl.sum(own * tl.log(tl.where(own > 0, own, 1.0)), axis=0)
        source_told = tl.sum(of_source * tl.log(tl.where(of_source > 0, of_source, 1.0)), axis=0)
        lost, turned = (told - source_told) / log_classes, tl.sum(tl.abs(own - of_source), axis=0) / 2
        judged, gained_none = known >= patience, lost > -gain
        beyond = beyond | (judged & ((lost > balance) | ((turned > turned_allowed) & gained_none)))
        near = near | (judged & ((lost > 0.5 * balance) | ((turned > 0.5 * turned_allowed) & gained_none)))
    far, years = drift > drift_allowed, tl.load(age + row)
    collapsed = awake & (beyond | (far & (years < SLOW)))
    near = near | (drift > 0.5 * drift_allowed)
    noticed = collapsed | shortened | resting | (learns & near) | (lacking > 0)
    pulled = awake & ~collapsed & far

    # Go back.
    never = learns & ~learns
    due, rolls = never, never
    if RESET_EVERY > 0:
        due = learns & (tl.load(step) % RESET_EVERY == 0)
    struck, held = tl.load(strikes + row), tl.load(kept + row)
    if ROLLS:
        rolls = collapsed & ~due & (held > 0) & (struck == 0)
    recovered = collapsed | due
    anew = recovered | goes_on

    # Remember.
    now_quiet = tl.where(noticed, 0, tl.load(quiet + row) + 1)
    snaps = ~noticed & (now_quiet % SNAPSHOT_EVERY == 0) & (drift <= within)
    at = block * NB + tl.arange(0, NB)
    there = at < size
    origin = tl.load(source + at, mask=there, other=0.0)
    theta = _taken(before, after, row * size + at, there, resting & ~goes_on, shortened, factor)
    theta = tl.where(pulled, theta - (theta - origin) * 0.5, theta)
    if ROLLS:
        good = tl.load(ring + row * SLOTS * size + at, mask=there, other=0.0)
        theta = tl.where(rolls, good, theta)
    theta = tl.where(recovered & ~rolls, origin, theta)
    tl.store(theta_out + row * size + at, theta, mask=there)
    newer = theta
    for slot in tl.static_range(SLOTS):
        own_slot = tl.load(ring + (row * SLOTS + slot) * size + at, mask=there, other=0.0)
        tl.store(ring_out + (row * SLOTS + slot) * size + at, tl.where(snaps, newer, own_slot), mask=there)
        newer = own_slot

    if block == 0:
        tl.store(verdict_out + row, noticed.to(tl.int64) + collapsed.to(tl.int64))
        actions = shortened.to(tl.int64) + 2 * rolls.to(tl.int64) + 4 * (collapsed & ~due & ~rolls).to(tl.int64)
        actions += 8 * resting.to(tl.int64) + 16 * due.to(tl.int64) + 32 * (pulled & ~due).to(tl.int64)
        tl.store(actions_out + row, actions)
        tl.store(recovered_out + row, recovered.to(tl.int8))
        tl.store(slowed_out + row, (recovered & noticed).to(tl.int8))
        rested = tl.load(rests + tl.minimum(struck, MOST_STRIKES))
        tl.store(rest_out + row, tl.where(collapsed, rested, tl.maximum(tl.load(rest + row) - 1, 0)))
        struck = tl.where(now_quiet >= FORGIVES, 0, struck) + collapsed.to(tl.int64)
        tl.store(strikes_out + row, tl.minimum(struck, MOST_STRIKES))
        tl.store(quiet_out + row, now_quiet)
        tl.store(age_out + row, tl.where(anew, 0, years + 1))
        if SLOTS > 0:
            tl.store(kept_out + row, tl.minimum(held + snaps.to(tl.int64), SLOTS))
        if JUDGES:
            tl.store(answers_out + row * classes + at_class, tl.where(anew, 0.0, own), mask=some)
            tl.store(source_answers_out + row * classes + at_class, tl.where(anew, 0.0, of_source), mask=some)
            tl.store(compared_out + row, tl.where(anew, 0.0, known))


def examine(
    memory: Mapping[str, Tensor],
    before: Tensor,
    after: Tensor,
    source: Tensor,
    broken: Tensor,
    images: int,
    step: Tensor,
    restarted: Tensor,
    *,
    policy: Default,
    learners: Tensor,
    most: Tensor,
    longest: Tensor,
    rests: Tensor,
    judges: bool,
) -> health.Checkup:
    """What ``polytta.guard.Examiner`` finds, of float32 particles.

    Args:
        memory: of the look before, with the answers to this batch compared.
        before: (R, P) parameters before the step, contiguous as everything here.
        after: (R, P) after it.
        source: (P,).
        broken: (R,) images without a finite answer.
        images: B.
        step: () number of the step just taken.
        restarted: (R,) who goes on from another.
        policy: what is allowed.
        learners: (R,) who may learn at all.
        most: (R,) distance to the source that counts as one.
        longest: (R,) step allowed.
        rests: steps to rest after so many collapses.
        judges: whether anybody is judged by answers.
    """
    (rows, size), slots, classes = after.shape, memory["snapshots"].shape[1], memory["answers"].shape[1]
    blocks = int(triton.cdiv(size, _VALUES))
    sums = after.new_empty(rows, blocks, _SUMS)
    theta, verdict, actions = torch.empty_like(after), torch.empty_like(broken), torch.empty_like(broken)
    recovered, slowed = torch.empty_like(learners), torch.empty_like(learners)
    changed = ["rest", "strikes", "quiet", "age"]
    changed += ["answers", "source_answers", "compared"] if judges else []
    changed += ["snapshots", "kept"] if slots else []
    kept = {**memory, **{name: torch.empty_like(memory[name]) for name in changed}}
    tiles = {"NB": _VALUES, "NP": triton.next_power_of_2(blocks), "SUMS": _SUMS}
    grid = (rows, blocks)
    _measure_step[grid](before, after, source, sums, size, NB=_VALUES, SUMS=_SUMS)
    marks = (one.view(torch.int8) for one in (learners, restarted))
    taken = (before, after, source, sums, size, longest, *marks, memory["rest"])
    _measure_drift[grid](*taken, **tiles)
    of_answers, of_steps = ("answers", "source_answers", "compared", "snapshots"), ("strikes", "quiet", "kept", "age")
    _decide[grid](
        *(*taken, most, rests, broken, images, step),
        *(memory[name] for name in (*of_steps, *of_answers)),
        *(theta, verdict, actions, recovered.view(torch.int8), slowed.view(torch.int8)),
        *(kept[name] for name in ("rest", *of_steps, *of_answers)),
        *(classes, log(classes), policy.drift, policy.balance, policy.turned, policy.broken, float(policy.patience)),
        *(health.SNAPSHOT_WITHIN * policy.drift, health.GAIN),
        JUDGES=judges, ROLLS=policy.rollback and slots > 0, SLOTS=slots,
        RESET_EVERY=policy.reset_every or 0, SNAPSHOT_EVERY=policy.snapshot_every,
        SLOW=health.SLOW, FORGIVES=health.QUIET_FORGIVES, MOST_STRIKES=health.MOST_STRIKES,
        NC=triton.next_power_of_2(classes), **tiles,
    )  # fmt: skip
    return health.Checkup(theta, verdict, actions, broken, recovered, slowed, kept)
