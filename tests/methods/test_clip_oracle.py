"""Text methods against a plain oracle, in settings that nobody recorded."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from tests.clip.tiny_clip import BOOK, VECTORS, TinyClip, as_input, cut, tiny_clip, tokenize
from tests.methods import clip_oracle as oracle
from torch import Tensor

import polytta
from polytta.clip import zero_shot
from polytta.methods import TDA, TPT, WATTP, WATTS, CLIPArTT, DiffTPT
from polytta.methods.tda import Cache

CLASSES = BOOK["classes"]
TEMPLATES = ("a photo of a {}", "a sketch of the {}", "my small {}.", "a toy {}.")
EQUAL = 1e-9


def clip(seed: int) -> TinyClip:
    """The toy CLIP with other weights and another scale."""
    model, draw = tiny_clip(torch.float64), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.numel() > 1:
                weight.add_(0.05 * weight.std() * torch.randn(weight.shape, generator=draw, dtype=torch.float64))
        model.logit_scale.fill_(3.0 + seed % 3 * 0.8)
    return model


def images(count: int, seed: int) -> Tensor:
    stored = np.load(VECTORS / "inputs.npz")["batch"]
    draw = torch.Generator().manual_seed(seed)
    chosen = torch.randperm(len(stored), generator=draw)[:count]
    return as_input(stored[chosen.numpy()]).double()


def views(count: int, seed: int) -> Tensor:
    """An image and crops of it."""
    draw = np.random.default_rng(seed)
    sides = draw.integers(16, 33, count - 1)
    rows = [(draw.integers(0, 33 - side), draw.integers(0, 33 - side), side, draw.integers(0, 2)) for side in sides]
    stored = np.load(VECTORS / "inputs.npz")["view_image"]
    return as_input(cut(stored[seed % len(stored)], np.array([(0, 0, 32, 0), *rows]))).double()


def answers(adapted: polytta.adapter.Adapted, x: Tensor) -> Tensor:
    adapted(x)
    assert adapted.last_logits is not None
    return adapted.last_logits


def same(found: Tensor, wanted: Tensor) -> None:
    for particle in found:
        assert float((particle - wanted).abs().max()) <= EQUAL


@pytest.mark.parametrize("number", range(8))
def test_watt(number: int) -> None:
    parallel, optimizer = bool(number % 2), ("adam", "sgd")[number // 2 % 2]
    particles, engine = (1, 3)[number // 4], ("loop", "folded", "static")[number % 3]
    lr, steps, rounds = (1e-3, 4e-3, 2e-4)[number % 3], 1 + number % 3, 1 + number % 2
    model, classes = clip(number), CLASSES[: (10, 4)[number % 2]]
    templates = TEMPLATES[: 1 + number % 4]
    method = (WATTP if parallel else WATTS)(steps=steps, rounds=rounds)
    adapted = polytta.adapt(
        zero_shot(model, tokenize, classes, templates), method, particles=particles, optimizer=optimizer,
        lr=[lr] * particles, exclude=None, engine=engine,
    )  # fmt: skip
    for call, batch in enumerate((7, 3)):
        x = images(batch, 10 * number + call)
        wanted = oracle.watt(
            model, x, classes, templates, parallel=parallel, steps=steps, rounds=rounds, optimizer=optimizer, lr=lr
        )
        same(answers(adapted, x), wanted)


@pytest.mark.parametrize("number", range(6))
def test_clipartt(number: int) -> None:
    target, optimizer = oracle.TARGETS[number % 4], ("adam", "sgd")[number % 2]
    particles, engine = (1, 3)[number % 2], ("loop", "folded", "static")[number % 3]
    named, steps, lr = 1 + number % 4, 1 + 2 * (number % 3), (1e-3, 3e-3)[number % 2]
    model, classes = clip(number), CLASSES[: 10 - number]
    adapted = polytta.adapt(
        zero_shot(model, tokenize, classes, "photo"), CLIPArTT(named, steps, target), particles=particles,
        optimizer=optimizer, lr=[lr] * particles, exclude=None, engine=engine,
    )  # fmt: skip
    for call, batch in enumerate((5, 1)):
        x = images(batch, 10 * number + call)
        wanted = oracle.clipartt(model, x, classes, named=named, steps=steps, target=target, optimizer=optimizer, lr=lr)
        same(answers(adapted, x), wanted)


def test_sentences_of_all_classes_are_those_of_each() -> None:
    network = zero_shot(clip(0), tokenize, CLASSES[:4], "photo")
    every = CLIPArTT(classes=2).every_sentence(network, torch.zeros(1, dtype=torch.float64))
    assert every.shape == (4, 4, 24)
    for first, second in ((0, 3), (3, 0), (2, 1)):
        asked = f"a photo of a {CLASSES[first]} or {CLASSES[second]}"
        assert torch.equal(every[first, second], network.text.features([asked])[0])


@pytest.mark.parametrize("number", range(4))
def test_episodic_tent(number: int) -> None:
    optimizer, particles = ("adam", "sgd")[number % 2], (1, 3)[number // 2]
    model, steps, templates = clip(number), 1 + 2 * number, TEMPLATES[: 1 + number % 3]
    adapted = polytta.adapt(
        zero_shot(model, tokenize, CLASSES, templates), "tent", particles=particles, optimizer=optimizer,
        lr=[2e-3] * particles, exclude=None, steps=steps, episodic=True, diversity="none",
    )  # fmt: skip
    for call, batch in enumerate((1, 6)):
        x = images(batch, 10 * number + call)
        same(
            answers(adapted, x),
            oracle.tent(model, x, CLASSES, templates, steps=steps, optimizer=optimizer, lr=2e-3),
        )


def given(held: dict[str, Tensor]) -> Callable[[Tensor, Any], Sequence[Tensor]]:
    """Views of each image in the place of drawn ones."""
    return lambda x, noise: [held["x"][:, number].expand_as(x) for number in range(1, held["x"].shape[1])]


@pytest.mark.parametrize("number", range(6))
def test_prompt_tuning(number: int) -> None:
    model, held = clip(number), dict[str, Tensor]()
    # Names may begin with the same word, which is no part of the context.
    classes = (CLASSES[:5], ["black_cat", "black_dog", "black_ship"], ["a cat", "a dog"])[number % 3]
    context, similar = ("a photo of a", "the small", "a")[number // 2], 0.7 if number % 2 else None
    count, share, steps, lr = (8, 33)[number % 2], (0.5, 0.2)[number % 2], 1 + number % 3, (5e-3, 5e-2)[number // 3]
    common: dict[str, Any] = {"share": share, "steps": steps, "lr": lr, "context": context, "views": given(held)}
    method = TPT(**common) if similar is None else DiffTPT(**common, similar=similar, generator=lambda *_: [])
    network = zero_shot(model, tokenize, classes, "photo")
    adapted = polytta.adapt(network, method, particles=(1, 3)[number % 2], exclude=None)
    held["x"] = torch.stack([views(count, 10 * number + image) for image in range(2)])
    wanted = [
        oracle.tpt(model, own, classes, context=context, share=share, steps=steps, lr=lr, similar=similar)
        for own in held["x"]
    ]
    same(answers(adapted, held["x"][:, 0]), torch.stack(wanted))


@pytest.mark.parametrize("number", range(6))
def test_tda(number: int) -> None:
    model, held = clip(number), dict[str, Tensor]()
    seen, batch, classes = (1, 20)[number // 4], (1, 3)[number % 2], CLASSES[: (10, 3)[number % 2]]
    method = TDA(
        Cache((1, 3, 0)[number % 3], 2.0, (1.0, 8.0)[number % 2]), Cache((2, 0, 4)[number % 3], 0.8, 3.0),
        entropies=((0.2, 0.5), (0.0, 1.0))[number % 2], probs=((0.03, 1.0), (0.05, 0.6))[number // 2 % 2],
        views=given(held) if seen > 1 else None,
    )  # fmt: skip
    templates = TEMPLATES[: 1 + number % 3]
    adapted = polytta.adapt(
        zero_shot(model, tokenize, classes, templates), method, particles=(1, 3)[number % 2], exclude=None
    )
    caches = oracle.Caches(model, oracle.mean_text(model, templates, classes), method)
    for call in range(8):
        # Every fourth call sees the images of the one before: ties go to who was there.
        first = 100 * number + call - (call % 4 == 3)
        held["x"] = torch.stack([views(max(2, seen), first * 3 + image)[:seen] for image in range(batch)])
        same(answers(adapted, held["x"][:, 0]), torch.stack([caches(own) for own in held["x"]]))
