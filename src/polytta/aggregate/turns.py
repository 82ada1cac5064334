r"""Classes that come in turn: noticed without labels, and used.

    s = 2 (E⟨p_b, p_c⟩ - E⟨p_b, m⟩) / (E|p_b|² - E⟨p_b, m⟩), at most 1        b and c images near one another
    p_b ∝ p_b (π / m)^f(s),   π = (Σ_b p_b + 10 m) / (n + 10)     over the n images of late; summed four times

m is the mean of a particle's answers over all of a long stream, that is what it would say of an image it has not seen,
its own bias included. If images near one another are more alike in class than those far apart, the classes around an
image tell of its own: Bayes' rule with the local frequencies π in place of m, which Saerens, Latinne and Decaestecker
("Adjusting the Outputs of a Classifier to New a Priori Probabilities", 2002) find by expectation maximisation. Products
of different images have no bias for any number of classes or images, so that s is 0 but for noise where classes come by
chance. Shifts that come in turn, each with a bias of its own, make it a little more than that, so f is 0 up to s = 0.1;
from 0.2 on it is 1, since π says itself how mixed classes are. What is near is the batch, and of smaller ones the last
32 images.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

NEAR = 32
"""Images of late that count as near."""
LONG = 10_000
"""Images that m is over."""
HORIZON = 1_000
"""Images that s is over."""
PSEUDO_IMAGES = 10.0
"""Images by which π is drawn towards m."""
FLAT_IMAGES = 100.0
"""Images by which m is drawn towards equal shares."""
ROUNDS = 4
"""Of expectation maximisation."""
NOTHING, FULLY = 0.1, 0.2
"""Of s: up to the first, shifts that come in turn may be the reason, from the second on it must be classes."""
SMALLEST_GAP = 0.05

State = Mapping[str, Tensor]


def facts() -> str:
    """The constants that answers depend on."""
    return str((NEAR, LONG, PSEUDO_IMAGES, FLAT_IMAGES, ROUNDS, NOTHING, FULLY))


def begin(rows: int, num_classes: int, like: Tensor) -> dict[str, Tensor]:
    """State before the first image of (R,) particles."""
    zeros = like.new_zeros
    vectors = {name: zeros(rows, num_classes) for name in ("turn_mean", "turn_recent")}
    return {**vectors, **{name: zeros(rows) for name in ("turn_near", "turn_far", "turn_self", "turn_images")}}


def observe(state: State, probs: Tensor) -> dict[str, Tensor]:
    """State after a batch of (R, B, C) probabilities."""
    seen, batch = state["turn_images"], probs.shape[1]
    total, own = probs.sum(dim=1), probs.square().sum(dim=(1, 2))
    kept = _kept(seen, batch)
    pairs = batch * (batch - 1) + 2 * batch * kept
    near = (total.square().sum(dim=1) - own + 2 * kept * (total * state["turn_recent"]).sum(dim=1)) / pairs.clamp(min=1)
    far = (total * state["turn_mean"]).sum(dim=1) / batch
    images = (seen + batch).clamp(max=LONG)
    # The first batch has nothing far from it.
    rate = torch.where(seen > 0, (batch / (images - batch).clamp(min=batch, max=HORIZON)).clamp(max=1), 0.0)
    after = {
        "turn_mean": torch.lerp(state["turn_mean"], probs.mean(dim=1), (batch / images).clamp(max=1).unsqueeze(1)),
        "turn_recent": torch.lerp(probs.mean(dim=1), state["turn_recent"], (kept / (kept + batch)).unsqueeze(1)),
        "turn_images": images,
    }
    for name, value in (("turn_near", near), ("turn_far", far), ("turn_self", own / batch)):
        after[name] = torch.lerp(state[name], value, rate)
    return after


def sameness(state: State) -> Tensor:
    """(R,) s."""
    far = state["turn_far"]
    return (2 * (state["turn_near"] - far) / (state["turn_self"] - far).clamp(min=SMALLEST_GAP)).clamp(0, 1)


def corrected(log_probs: Tensor, state: State, same: Tensor) -> Tensor:
    """(R, B, C) answers, given what classes there are around them, as far as those are the ``same`` (R,)."""
    seen, (batch, classes) = state["turn_images"], log_probs.shape[1:]
    mean = torch.lerp(
        state["turn_mean"],
        torch.full_like(state["turn_mean"], 1 / classes),
        (FLAT_IMAGES / (seen + FLAT_IMAGES))[:, None],
    ).unsqueeze(1)
    kept = _kept(seen, batch).reshape(-1, 1, 1)
    before = kept * state["turn_recent"].unsqueeze(1)
    strength = ((same - NOTHING) / (FULLY - NOTHING)).clamp(0, 1).reshape(-1, 1, 1)
    found = log_probs
    for _ in range(ROUNDS):
        local = found.exp().sum(dim=1, keepdim=True).to(mean.dtype) + before + PSEUDO_IMAGES * mean
        ratio = local.log() - (batch + kept + PSEUDO_IMAGES).log() - mean.log()
        found = (log_probs + (strength * ratio).to(log_probs.dtype)).log_softmax(dim=-1)
    return found


def _kept(seen: Tensor, batch: int) -> Tensor:
    """(R,) images before the batch that count as near."""
    return seen.clamp(max=max(0, NEAR - batch))
