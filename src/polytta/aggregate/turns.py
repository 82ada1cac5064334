r"""Classes that come in turn: noticed without labels.

    s = 2 (E⟨p_b, p_c⟩ - E⟨p_b, m⟩) / (E|p_b|² - E⟨p_b, m⟩), at most 1        b and c images near one another

m is the mean of a particle's answers over all of a long stream, that is what it would say of an image it has not seen,
its own bias included. If images near one another are more alike in class than those far apart, the statistics of a
batch are those of a class, and whoever learns from it learns that there is one. Products of different images have no
bias for any number of classes or images, so that s is 0 but for noise where classes come by chance. What is near is the
batch, and of smaller ones the last 32 images. What such classes say of an image is told by ``polytta.aggregate.chain``.
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
SMALLEST_GAP = 0.05

State = Mapping[str, Tensor]


def facts() -> str:
    """The constants that answers depend on."""
    return str((NEAR, LONG, HORIZON))


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


def _kept(seen: Tensor, batch: int) -> Tensor:
    """(R,) images before the batch that count as near."""
    return seen.clamp(max=max(0, NEAR - batch))
