r"""Label-free evidence: trust the particles that are sure of themselves *and* still use all their classes.

    sᵢ = b H(m₀) - h₀  +  2 (H(mᵢ) - H(m₀)) + 0.6 (aᵢ - a₀),     b = 2 H(m)⁴
    wᵢ ∝ exp(30 sᵢ),   p ∝ Π pᵢ^wᵢ

mᵢ is the mean of particle i's answers over the stream, hᵢ their mean entropy, and aᵢ how much they agree with those of
particles that look in another way and learn nothing; 0 marks the one that looks in the same way and learns nothing (its
*anchor*; a particle without one is its own), and m is the mean answer of all anchors. Entropies are shares of ln C, so
that being sure is worth the same among ten classes and among a thousand. A gain of balance counts b, a loss counts 2.

The first half says how well a way of looking suits the stream: sure of single images, and balanced among classes over
all of them. Balance counts for little while the whole population has seen few classes, because on a stream sorted by
class it is the worst lens that spreads its answers. The second half says what learning has done. There balance counts
in full on every stream, for the anchor has seen the same classes; sureness does not count at all, because it is what
learning is trained to show; and whoever has learnt something true comes closer to what others see, where who has been
led astray goes elsewhere. A particle that has collapsed loses all its weight, however hot its rate.

Shifts may be mixed, and what suits a noisy image does not suit a blurred one. So the means are kept once for all images
and once for those of like detail (``polytta.views.fineness``), on a grid with linear interpolation; where few images of
that detail have been seen the former counts. The weighted geometric mean lets whoever is sure of *this* image speak
louder; probabilities count as at least 10⁻⁶, so that nobody has a veto. The means cover about the last 1,000 images,
those of the batch to be answered among them: nothing else is known of the first one. What the images nearby say of an
image's class is taken into account as far as it is seen to foretell it (``polytta.aggregate.chain``).

A particle that falls far behind what it was before it learnt has collapsed. It starts over from the best of those that
were the same, at half its rate. One that has had no weight for long, for images of any detail, stops learning, and
wakes when evidence turns. Before there is evidence, anchors are trusted more than others.

Where classes come in turn, BatchNorm statistics of a batch are those of a class, and whoever learns learns that there
is one class. ``polytta.aggregate.turns`` sees it without labels, as a number t from 0 to 1. Particles that go by the
batch are one more way to look where t is 0, with the one that goes by it and learns nothing as their anchor (*twin*);
where t is 1, or not known yet, their anchor goes by stored statistics:

    sᵢ = (1-t') sᵢ(twin) + t' sᵢ(anchor) - t 1[by the batch],     t' = t + (1-t) 128 / (128 + images)

Paces shrink by (1-t)². Anchors tell t, by what was before the batch and as far as they are trusted: a shift that leaves
one of them few classes to name must not pass for classes in turn.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import log
from typing import ClassVar

import torch
from torch import Tensor

from polytta.aggregate import chain, turns
from polytta.aggregate.base import Aggregate, Restart

HORIZON = 1000
SHARPNESS = 30.0
SMALLEST_PROB = 1e-6
FORMULA = (
    "b H(m0) - h0 + 2 dH + 0.6 da in shares of ln C, by fineness, by twin and anchor as classes come, with the batch, "
    "geometric, with the images nearby"
)
"""Goes with ``scores``, ``observe`` and ``combine``: results made with another one are other results."""
FINENESS = (-3.0, 1.5, 19)
"""First and last point of the grid of fineness, and how many there are."""
SHRINKAGE = 5.0
"""Images of like detail that count as much as all images."""
PATIENCE = 64.0
"""Images after which evidence counts for half."""
AGREEMENT = 0.6
"""What agreement counts, of 1 where all agree."""
DOUBT = 3.0
"""How much, as a logarithm, anchors are trusted more before there is evidence."""
CAUTION = 128.0
"""Images after which classes that come by chance are half believed to."""
COLLAPSE = 0.25
"""How far behind what it was before it learnt a particle has collapsed."""

NO_WEIGHT, SOME_WEIGHT = 0.003, 0.01
"""Below the first a particle counts as idle, above the second it does not."""
SLEEP_AFTER = 500
"""Images without weight after which a particle stops learning."""
SLEEP_EVERY = 64
"""Steps between two looks at who sleeps."""

State = Mapping[str, Tensor]


def begin(rows: int, num_classes: int, like: Tensor, *, by_fineness: bool = False) -> dict[str, Tensor]:
    """State before the first image."""
    zeros, points = like.new_zeros, FINENESS[2]
    state = {"mean_probs": zeros(rows, num_classes), "mean_entropy": zeros(rows), "images": zeros(())}
    if by_fineness:
        state |= {"agreement": zeros(rows), **turns.begin(rows, num_classes, like)}
        state |= chain.begin(rows, num_classes, like)
        state["fine_probs"] = zeros(rows, points, num_classes)
        for name in ("fine_entropy", "fine_agreement", "fine_images"):
            state[name] = zeros(rows, points)
        state["idle"], state["asleep"] = zeros(rows), zeros(rows)
    return state


def num_classes(state: State) -> int:
    """C of a state, 0 of an empty one."""
    return state["mean_probs"].shape[1] if state else 0


def observe(state: State, logits: Tensor, fineness: Tensor) -> dict[str, Tensor]:
    """State (with anchors) after a batch of (G·K, B, C) logits on images of that (G, B) fineness."""
    log_probs = logits.detach().log_softmax(dim=-1).to(state["mean_probs"].dtype)
    probs = log_probs.exp()
    entropies = -(probs * log_probs).sum(dim=-1)
    images = (state["images"] + logits.shape[1]).clamp(max=HORIZON)
    rate = (logits.shape[1] / images).clamp(max=1.0)
    seen = {
        "mean_probs": torch.lerp(state["mean_probs"], probs.mean(dim=1), rate),
        "mean_entropy": torch.lerp(state["mean_entropy"], entropies.mean(dim=1), rate),
        "images": images,
    }
    if "fine_images" in state:
        agreements = (probs * _told_by_others(probs, anchors(state), fineness.shape[0])).sum(dim=-1)
        seen["agreement"] = torch.lerp(state["agreement"], agreements.mean(dim=1), rate)
        seen |= turns.observe(state, probs)
        shares = _on_grid(fineness).to(probs.dtype).repeat_interleave(logits.shape[0] // fineness.shape[0], dim=0)
        mass = shares.sum(dim=1)
        known = (state["fine_images"] + mass).clamp(max=HORIZON)
        fine_rate = (mass / known.clamp(min=SMALLEST_PROB)).clamp(max=1.0)
        each = shares / mass.clamp(min=SMALLEST_PROB).unsqueeze(1)
        seen["fine_probs"] = torch.lerp(state["fine_probs"], each.mT @ probs, fine_rate.unsqueeze(-1))
        for name, values in (("fine_entropy", entropies), ("fine_agreement", agreements)):
            seen[name] = torch.lerp(state[name], (each * values.unsqueeze(-1)).sum(dim=1), fine_rate)
        seen["fine_images"] = known
        seen |= {name: value for name, value in state.items() if name in ("idle", "asleep") or _is_of_chain(name)}
    return seen


def with_anchors(state: State, anchors: Tensor, twins: Tensor | None = None) -> State:
    """A state as ``scores`` and aggregates want it.

    With ``anchor`` (R,), the row of each particle's anchor, and ``twin`` (R,), the row of the one that is as it was
    before it learnt: the anchor, unless that has other BatchNorm statistics.
    """
    return {**state, "anchor": anchors, "twin": anchors if twins is None else twins} if state else state


def with_batch(known: State, seen: State) -> State:
    """What a batch is answered by: a state (with anchors) before it, and all that it says but for how classes come."""
    return {name: value if name.startswith("turn_") else seen.get(name, value) for name, value in known.items()}


def scores(state: State, populations: int = 1) -> Tensor:
    """(R,) sᵢ over all images; every particle its own anchor where the state names none."""
    looking, learning = _overall(state, populations)
    return looking + learning


def anchors(state: State) -> Tensor:
    """(R,) the row of each particle's anchor."""
    rows = state["mean_probs"].shape[0]
    return state["anchor"] if "anchor" in state else torch.arange(rows, device=state["mean_probs"].device)


def weights(state: State, fineness: Tensor) -> Tensor:
    """(G, B, K) of the particles for images of that (G, B) fineness."""
    own = _by_fineness(state, fineness.shape[0])
    here = torch.einsum("gbm,gkm->gbk", _on_grid(fineness).to(own.dtype), own)
    return here.softmax(dim=-1)


def standing(state: State, populations: int = 1) -> Tensor:
    """(G, K) weights on images like those of late, whatever their detail."""
    seen = state["fine_images"].unflatten(0, (populations, -1))[:, :1]
    seen = seen / seen.sum(dim=-1, keepdim=True).clamp(min=SMALLEST_PROB)
    return (_by_fineness(state, populations).softmax(dim=1) * seen).sum(dim=-1)


def sameness(state: State, populations: int = 1) -> Tensor:
    """(R,) how alike in class images near one another are (``polytta.aggregate.turns``), one number per population.

    Anchors tell it, as far as they are trusted: where a shift leaves one of them few classes to name, what it says of
    images that follow one another is always alike.
    """
    if "turn_near" not in state:
        return torch.zeros_like(state["mean_entropy"])
    anchor = anchors(state)
    looking, _ = _scores(state["mean_probs"], state["mean_entropy"], state["agreement"], anchor, populations)
    is_anchor = anchor == torch.arange(anchor.shape[0], device=anchor.device)
    trusted = torch.where(is_anchor, SHARPNESS * _patience(state) * looking, -torch.inf)
    trusted = trusted.unflatten(0, (populations, -1)).softmax(dim=1)
    told = (trusted * turns.sameness(state).unflatten(0, (populations, -1))).sum(dim=1, keepdim=True)
    return told.expand_as(trusted).flatten()


def rested(state: State, images: int, step: Tensor, populations: int) -> dict[str, Tensor]:
    """For how many images each particle has had no weight, and at every 64th step who sleeps for it."""
    most = _by_fineness(state, populations).softmax(dim=1).amax(dim=2).flatten()
    idle = torch.where(most < NO_WEIGHT, state["idle"] + images, state["idle"])
    idle = torch.where(most > SOME_WEIGHT, 0.0, idle)
    asleep = torch.where(step % SLEEP_EVERY == 0, (idle >= SLEEP_AFTER).to(idle.dtype), state["asleep"])
    return {"idle": idle, "asleep": asleep}


def _by_fineness(state: State, populations: int) -> Tensor:
    """(G, K, M) logarithms of the particles' weights at the points of the grid."""
    anchor = anchors(state)
    same = sameness(state, populations)
    overall, fine = (
        torch.add(*_both_ways(state, names, same, populations))
        for names in (
            ("mean_probs", "mean_entropy", "agreement"),
            ("fine_probs", "fine_entropy", "fine_agreement"),
        )
    )
    known = state["fine_images"] / (state["fine_images"] + SHRINKAGE)
    own = torch.lerp(overall.unsqueeze(-1).expand_as(fine), fine, known).unflatten(0, (populations, -1))
    patience = _patience(state)
    changed = (anchor != torch.arange(anchor.shape[0], device=anchor.device)).unflatten(0, (populations, -1))
    return SHARPNESS * patience * own - DOUBT * (1 - patience) ** 2 * changed.unsqueeze(-1)


def _told_by_others(probs: Tensor, anchor: Tensor, populations: int) -> Tensor:
    """(R, B, C) mean answer of the anchors of particles that look in another way; of all of them where none does."""
    told, own = (rows.unflatten(0, (populations, -1)) for rows in (probs[anchor], anchor))
    others = (own.unsqueeze(2) != own.unsqueeze(1)).to(probs.dtype)
    others = torch.where(others.any(dim=2, keepdim=True), others, torch.ones_like(others))
    others = others / others.sum(dim=2, keepdim=True)
    return torch.einsum("gij,gjbc->gibc", others, told).flatten(0, 1)


def _overall(state: State, populations: int) -> tuple[Tensor, Tensor]:
    same = sameness(state, populations)
    return _both_ways(state, ("mean_probs", "mean_entropy", "agreement"), same, populations)


def _both_ways(state: State, names: tuple[str, str, str], same: Tensor, populations: int) -> tuple[Tensor, Tensor]:
    """(R, ...) what looking and what learning is worth.

    Who goes by the statistics of batches is judged as one more way to look, and the more classes come in turn (R,), or
    the less is known of that, the more by the anchor on stored statistics.
    """
    probs, entropies, agreements = (state.get(name, torch.zeros_like(state["mean_entropy"])) for name in names)
    anchor = anchors(state)
    twin = state.get("twin", anchor)
    stored = _scores(probs, entropies, agreements, anchor, populations)
    if twin is anchor:
        return stored
    own = _scores(probs, entropies, agreements, twin, populations)
    unknown = CAUTION / (CAUTION + state["turn_images"]) if "turn_images" in state else torch.ones_like(same)
    distrust, misled = (
        rows.reshape(-1, *[1] * (entropies.dim() - 1)).expand_as(entropies)
        for rows in (same + (1 - same) * unknown, same * (anchor != twin))
    )
    looking, learning = (
        torch.lerp(by_twin, by_anchor, distrust) for by_twin, by_anchor in zip(own, stored, strict=True)
    )
    return looking, learning - misled


def _patience(state: State) -> Tensor:
    """() how much evidence counts for, of 1."""
    return state["images"] / (state["images"] + PATIENCE)


def _scores(
    probs: Tensor, entropies: Tensor, agreements: Tensor, anchor: Tensor, populations: int
) -> tuple[Tensor, Tensor]:
    """(R, ...) what looking and what learning is worth, from mean answers (R, ..., C) and entropies (R, ...)."""
    most = log(probs.shape[-1])
    balance, unsure = _entropy(probs) / most, entropies / most
    unlearnt = balance[anchor]
    every = _entropy(probs[anchor].unflatten(0, (populations, -1)).mean(dim=1)) / most
    counts = (2 * every**4).repeat_interleave(anchor.shape[0] // populations, dim=0)
    agreed, gained = agreements - agreements[anchor], balance - unlearnt
    return counts * unlearnt - unsure[anchor], torch.where(gained > 0, counts, 2) * gained + AGREEMENT * agreed


def _is_of_chain(name: str) -> bool:
    return name.startswith("chain_")


def _entropy(probs: Tensor) -> Tensor:
    return -torch.xlogy(probs, probs).sum(dim=-1)


def _on_grid(fineness: Tensor) -> Tensor:
    """(..., M) shares of the two nearest points."""
    first, last, points = FINENESS
    place = ((fineness.clamp(first, last) - first) * (points - 1) / (last - first)).unsqueeze(-1)
    return (1 - (place - torch.arange(points, device=fineness.device)).abs()).clamp(min=0)


@dataclass(frozen=True)
class Evidence(Aggregate):
    """The weighted geometric mean; anchors have equal weights before anything is known of the particles.

    Attributes:
        restart: whether particles that have collapsed start over.
        sleep: whether particles without weight stop learning until they have some.
        nearby: whether the images nearby tell of an image's class; better not where strangers share batches.
    """

    restart: bool = True
    sleep: bool = True
    nearby: bool = True

    name: ClassVar[str] = "evidence"
    by_fineness: ClassVar[bool] = True

    def facts(self) -> dict[str, float | str]:
        """Formula and constants of the weights."""
        return {
            "formula": FORMULA,
            "horizon": HORIZON,
            "sharpness": SHARPNESS,
            "smallest_prob": SMALLEST_PROB,
            "shrinkage": SHRINKAGE,
            "patience": PATIENCE,
            "agreement": AGREEMENT,
            "doubt": DOUBT,
            "caution": CAUTION,
            "collapse": COLLAPSE,
            "turns": turns.facts(),
            "chain": chain.facts(),
            "fineness": str(FINENESS),
            "sleep": str((NO_WEIGHT, SOME_WEIGHT, SLEEP_AFTER, SLEEP_EVERY)),
        }

    def combine(self, logits: Tensor, evidence: State, fineness: Tensor) -> Tensor:
        """log softmax Σ wᵢ log pᵢ, given the images nearby."""
        return self.answer(logits, evidence, fineness)[0]

    def answer(self, logits: Tensor, evidence: State, fineness: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """The same, and what it says of the next images."""
        told, particles = logits.log_softmax(dim=-1), logits.shape[-3]
        if particles == 1:
            return told.squeeze(-3), {}
        told = told.clamp(min=log(SMALLEST_PROB))
        if not evidence:
            return told.mean(dim=-3).log_softmax(dim=-1), {}
        by_image = weights(evidence, fineness).transpose(-1, -2).to(told.dtype)
        joined = (by_image.unsqueeze(-1) * told).sum(dim=-3).log_softmax(dim=-1)
        if not self.nearby:
            return joined, {}
        nearby = {name: value[::particles] for name, value in evidence.items() if _is_of_chain(name)}
        answer, after = chain.read(joined, nearby)
        return answer, {name: value.repeat_interleave(particles, dim=0) for name, value in after.items()}

    def weights(self, evidence: State, fineness: Tensor, particles: int) -> Tensor:
        """Those of ``combine``."""
        return weights(evidence, fineness) if evidence else super().weights(evidence, fineness, particles)

    def slowing(self, evidence: State, populations: int) -> Tensor | None:
        """(R,) factors on paces: the less, the more a batch is of one class."""
        return (1 - sameness(evidence, populations)).square() if evidence else None

    def after_step(self, evidence: State, images: int, step: Tensor, populations: int) -> dict[str, Tensor]:
        """Who sleeps."""
        return rested(evidence, images, step, populations) if self.sleep else {}

    def restarts(self, evidence: State, populations: int) -> Restart | None:
        """Those far behind what they were before they learnt go on from the best that was the same."""
        if not self.restart:
            return None
        twin = evidence["twin"]
        _, learning = _overall(evidence, populations)
        collapsed = (evidence["images"] >= PATIENCE) & (learning - learning[twin] < -COLLAPSE)
        alike = twin.unsqueeze(1) == twin.unsqueeze(0)
        best = torch.where(alike, learning.unsqueeze(0), -torch.inf).argmax(dim=1)
        return Restart(collapsed, best)
