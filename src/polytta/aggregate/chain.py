r"""What the classes of the images nearby say of an image: runs of one class, or a mixture of few.

    p_b ∝ p_b π_b / m,   π_b = Σ_k v_k π_bk,   v_k ∝ exp(100 a_k),   s_k = mean_b log(0.9 Σ_c π_bk(c) p_b(c)/m(c) + 0.1)
    a = max(s - s'⁺ - 0.2 c, s - 0.2 c²) of a chain, s - 0.2 c² of a window, 0 of π = m;   c = max(1, ln C / ln 10)

p_b is what a population says of image b, and m the mean of that over a long stream, drawn towards equal shares: what it
would say of an image it has not seen, its own bias included. Each π_bk is what one idea of how classes come expects of
image b *without having seen it*:

- In a chain, the class stays with probability ρ (½, 0.84, 0.95) and is drawn anew otherwise. Messages go along the
  stream from both sides, a ← ρ a e / Σ a e + (1-ρ) / C, where e = 0.8 softmax(log p - log m) + 0.2 / C doubts every
  answer, and π_bk is the product of the two that arrive at b (Rabiner, "A Tutorial on Hidden Markov Models", 1989).
- In a window, the classes of the batch (of small ones, of the last 32 images) are mixed in any order: their shares
  after one round of expectation maximisation (Saerens, Latinne and Decaestecker, "Adjusting the Outputs of a Classifier
  to New a Priori Probabilities", 2002), image b left out. After more rounds it has told the others what to say of it.

An idea is as good as it foretells. Where classes come by chance, neighbours foretell hardly better than m does, and
answers stay as they are. Where they come in runs, or few at a time, s says so after some tens of images, without
labels. A model's bias under a new shift, which m does not know yet, passes for classes that come often. But it
foretells as much in any order: s' is the score of the same chain along the same images of a batch in another order.
What does not depend on order must foretell more, the more so the more classes there are to confuse. Messages reach 16
images, and of the images before a batch what its last ones said.
"""

from collections.abc import Mapping
from math import log

import torch
from torch import Tensor

CHAINS = 3
SHORTEST, GROWTH = 2.0, 10**0.5
"""Images after which the class of the first chain is drawn anew, and how many times as many each next chain goes on."""
DOUBT = 0.2
"""How often an answer is taken to be worth nothing."""
REACH = 16
"""Images that a message goes on for."""
NEAR = 32
"""Images of the window that batches are filled up to."""
LONG = 10_000
"""Images that m is over."""
FLAT_IMAGES = 500.0
"""Images by which m is drawn towards equal shares."""
PSEUDO_IMAGES = 1.0
"""Images by which the shares of a window are drawn towards m."""
SURPRISE = 0.1
"""How often a foretelling may be wrong."""
HORIZON = 500
"""Images that s is over."""
PATIENCE = 128.0
"""Images after which s counts for half."""
SHARPNESS = 100.0
MARGIN = 0.2
"""By how much an idea must foretell more than another among up to ten classes."""
GOLDEN = (5**0.5 - 1) / 2
SMALLEST_PROB = 1e-6
LARGEST_RATIO = 8.0
"""Of p to m, as a logarithm."""

State = Mapping[str, Tensor]


def facts() -> str:
    """The constants that answers depend on."""
    chains, window = (CHAINS, SHORTEST, GROWTH, DOUBT, REACH), (NEAR, LONG, FLAT_IMAGES, PSEUDO_IMAGES)
    return str((*chains, *window, SURPRISE, HORIZON, PATIENCE, SHARPNESS, MARGIN, LARGEST_RATIO))


def begin(rows: int, num_classes: int, like: Tensor) -> dict[str, Tensor]:
    """State before the first image of (G,) populations."""
    return {
        "chain_mean": like.new_zeros(rows, num_classes),
        "chain_recent": like.new_zeros(rows, num_classes),
        "chain_message": like.new_full((rows, CHAINS, num_classes), 1 / num_classes),
        "chain_scores": like.new_zeros(rows, 2 * CHAINS + 1),
        "chain_images": like.new_zeros(rows),
    }


def read(log_probs: Tensor, state: State) -> tuple[Tensor, dict[str, Tensor]]:
    """(G, B, C) answers, given those nearby, and the state after them; ``log_probs`` are before it."""
    told = log_probs.to(state["chain_mean"].dtype)
    (batch, classes), seen = told.shape[1:], state["chain_images"]
    counted = seen[:, None]
    mean = (counted * state["chain_mean"] + FLAT_IMAGES / classes) / (counted + FLAT_IMAGES)
    ratio = told - mean.log().unsqueeze(1)

    # What every idea expects of every image, and chains of the same images in another order.
    windowed = _in_window(ratio, mean.unsqueeze(1), state).unsqueeze(2)
    shuffled = ratio[:, _far_apart(ratio)]
    both, messages = _in_chains(torch.cat([ratio, shuffled]), state["chain_message"].repeat(2, 1, 1))
    (chained, elsewhere), message = both.chunk(2), messages.chunk(2)[0]
    expected = torch.cat([windowed, chained], dim=2)

    # How well they foretold these images, and those before.
    scores = torch.cat([_foretold(expected, ratio), _foretold(elsewhere, shuffled)], dim=1)
    known = (seen + batch).clamp(max=HORIZON).unsqueeze(1)
    scores = torch.lerp(state["chain_scores"], scores, (batch / known).clamp(max=1))
    weights = _weights(scores * known / (known + PATIENCE), classes)[:, None, :, None]
    prior = weights[:, :, 0] * mean.unsqueeze(1) + (weights[:, :, 1:] * expected).sum(dim=2)
    found = (ratio + prior.clamp(min=SMALLEST_PROB).log()).log_softmax(dim=-1)

    images, kept, probs = (seen + batch).clamp(max=LONG), _kept(seen, batch), told.exp().mean(dim=1)
    return found.to(log_probs.dtype), {
        "chain_mean": torch.lerp(state["chain_mean"], probs, (batch / images).clamp(max=1).unsqueeze(1)),
        "chain_recent": torch.lerp(probs, state["chain_recent"], (kept / (kept + batch)).unsqueeze(1)),
        "chain_message": message,
        "chain_scores": scores,
        "chain_images": images,
    }


def _weights(scores: Tensor, classes: int) -> Tensor:
    """(G, 1 + M) how much m counts, and the ideas that foretold so well."""
    window, chains, by_bias = scores.split([1, CHAINS, CHAINS], dim=1)
    size = max(1.0, log(classes) / log(10))
    narrow, wide = MARGIN * size, MARGIN * size**2
    ordered = torch.maximum(chains - by_bias.clamp(min=0) - narrow, chains - wide)
    ahead = torch.cat([torch.zeros_like(window), window - wide, ordered], dim=1)
    return (SHARPNESS * ahead).softmax(dim=1)


def _foretold(expected: Tensor, ratio: Tensor) -> Tensor:
    """(G, M) how well each of the ideas (G, B, M, C) foretold images (G, B, C)."""
    likely = (expected * ratio.clamp(max=LARGEST_RATIO).exp().unsqueeze(2)).sum(dim=-1)
    return (likely * (1 - SURPRISE) + SURPRISE).log().mean(dim=1)


def _far_apart(ratio: Tensor) -> Tensor:
    """(B,) an order in which images that follow one another are far apart: multiples of the golden ratio, sorted."""
    place = torch.arange(ratio.shape[1], device=ratio.device, dtype=torch.float32)
    return (place * GOLDEN).frac().argsort(stable=True)


def _in_window(ratio: Tensor, mean: Tensor, state: State) -> Tensor:
    """(G, B, C) shares of the classes nearby but for the image itself."""
    batch = ratio.shape[1]
    kept = _kept(state["chain_images"], batch)[:, None, None]
    besides = kept * state["chain_recent"].unsqueeze(1) + PSEUDO_IMAGES * mean
    shares = (ratio + mean.log()).exp().sum(dim=1, keepdim=True) + besides
    own = (ratio + shares.log()).softmax(dim=-1)
    others = own.sum(dim=1, keepdim=True) + besides - own
    return others / others.sum(dim=-1, keepdim=True)


def _in_chains(ratio: Tensor, message: Tensor) -> tuple[Tensor, Tensor]:
    """(G, B, M, C) what both messages say where they meet, and (G, M, C) the one to the next batch."""
    batch, classes = ratio.shape[1:]
    heard = torch.lerp(ratio.softmax(dim=-1), torch.full_like(ratio, 1 / classes), DOUBT).unsqueeze(2)
    both = torch.cat([heard, heard.flip(1)])
    # Nothing is known of the images after a batch.
    first = torch.cat([message, torch.full_like(message, 1 / classes)]).unsqueeze(1)
    place = torch.arange(batch, device=ratio.device)
    is_first, last = (place == 0).reshape(-1, 1, 1), (place - 1).clamp(min=0)
    arriving = torch.where(is_first, first, 1 / classes)
    for _ in range(REACH if batch > 1 else 0):
        arriving = torch.where(is_first, first, _passed(arriving, both).index_select(1, last))
    before, after = arriving.chunk(2)
    met = before * after.flip(1)
    return met / met.sum(dim=-1, keepdim=True), _passed(before[:, -1], heard[:, -1])


def _passed(message: Tensor, heard: Tensor) -> Tensor:
    """What a message says of the next image, once an image was heard."""
    told = message * heard
    return torch.lerp(told / told.sum(dim=-1, keepdim=True), torch.full_like(told, 1 / told.shape[-1]), _moves(told))


def _moves(like: Tensor) -> Tensor:
    """(M, 1) how likely the class of each chain is drawn anew."""
    number = torch.arange(CHAINS, dtype=like.dtype, device=like.device).unsqueeze(1)
    return GROWTH**-number / SHORTEST


def _kept(seen: Tensor, batch: int) -> Tensor:
    """(G,) images before the batch that are in its window."""
    return seen.clamp(max=max(0, NEAR - batch))
