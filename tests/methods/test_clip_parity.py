"""WATT, CLIPArTT, TPT, DiffTPT, TDA and episodic Tent, step by step against recordings of the public code."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import pytest
import torch
from safetensors.torch import load_file
from tests.clip.tiny_clip import BOOK, VECTORS, calls, tiny_clip, tokenize
from torch import Tensor

import polytta
from polytta.adapter import Adapted
from polytta.clip import zero_shot
from polytta.diversity import Diversifier
from polytta.methods import TDA, TPT, WATTP, WATTS, CLIPArTT, Context, DiffTPT, Pass, tpt, watt
from polytta.methods.tda import Cache
from polytta.optim import Adam
from polytta.roles import Objective

CASES = {case["name"]: case for case in BOOK["cases"]}
ENGINES = ("loop", "folded", "static")


def on_engines(*methods: str) -> pytest.MarkDecorator:
    """Every recorded case folded, the first also in the other engines: these methods move no parameters."""
    names = of(*methods)
    pairs = [*((name, "folded") for name in names), (names[0], "loop"), (names[0], "static")]
    return pytest.mark.parametrize(("name", "engine"), pairs)


TARGETS = ("both", "images", "text", "identity")


def of(*methods: str) -> list[str]:
    return [name for name, case in CASES.items() if case["method"] in methods]


class Watched(Diversifier):
    """No interaction; notes the losses of every step."""

    name = "watched"

    def __init__(self) -> None:
        self.losses: list[Tensor] = []

    def direction(self, objective: Objective, losses: Tensor) -> Tensor:
        self.losses.append(losses.detach().clone())
        return objective.gradient(losses.sum())


class WatchedAdam(Adam):
    """Notes the parameters after every step."""

    moved: ClassVar[list[Tensor]] = []

    def step(self, rows: Any) -> Any:
        moved, slots = super().step(rows)
        self.moved.append(moved.detach().clone())
        return moved, slots


def close(got: Tensor, wanted: Tensor, tolerance: float) -> None:
    assert float((got.double() - wanted.double()).abs().max()) <= tolerance


def run(
    case: dict[str, Any], adapted: Adapted, arrays: dict[str, Tensor], diversity: Watched, adam: WatchedAdam
) -> None:
    """Answers, losses and parameters of every inner step of every call."""
    scale = 100 / adapted._session.network.logit_scale.exp()  # type: ignore[operator, union-attr]
    for number, x in enumerate(calls(case)):
        diversity.losses = []
        adam.moved.clear()
        adapted(x)
        assert adapted.last_logits is not None
        close(adapted.last_logits[0] * scale, arrays["logits"][number], 1e-4)
        close(torch.cat(diversity.losses), arrays["loss"][number], 1e-5)
        close(torch.cat(adam.moved), arrays["params"][number], 1e-5)


def adapter(case: dict[str, Any], method: object, engine: str, templates: object, **more: Any) -> tuple[Any, ...]:
    network = zero_shot(tiny_clip(), tokenize, case["classes"], templates, more.pop("answers", None))  # type: ignore[arg-type]
    diversity, adam = Watched(), WatchedAdam()
    options = {"optimizer": adam, "lr": case["lr"], "diversity": diversity, "exclude": None, "engine": engine, **more}
    return polytta.adapt(network, method, particles=1, **options), load_file(VECTORS / case["file"]), diversity, adam


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", of("watt"))
def test_watt(name: str, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case, texts = CASES[name], []
    plain = watt.alike

    def noted(images: Tensor, text: Tensor, *others: Any) -> Tensor:
        texts.append(text[0].detach())
        return plain(images, text, *others)

    monkeypatch.setattr(watt, "alike", noted)
    kind = WATTS if case["type"] == "sequential" else WATTP
    adapted, arrays, *watched = adapter(
        case, kind(steps=case["l"], rounds=case["m"]), engine, case["templates"],
        answers="photo" if case["ref_eval"] else None,
    )  # fmt: skip
    run(case, adapted, arrays, *watched)
    close(adapted.theta[0], arrays["average"][-1, -1], 1e-5)
    text, steps = adapted._session.network.text_features, arrays["pseudo"].shape[1]
    for number, taken in enumerate(texts):
        call, step = divmod(number, steps)
        template = step // case["l"] % len(case["templates"])
        assert torch.equal(taken, text[template][arrays["pseudo"][call, step].long()])


class WatchedCLIPArTT(CLIPArTT):
    """Notes which classes a sentence names."""

    def _text(self, context: Context, one: Pass) -> Tensor:
        self.__dict__.setdefault("named", []).append(one.logits.detach()[0].topk(self.classes, dim=-1).indices)
        return super()._text(context, one)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", of("clipartt"))
def test_clipartt(name: str, engine: str) -> None:
    case = CASES[name]
    method = WatchedCLIPArTT(case["K"], case["niter"], TARGETS[case["target_method"] - 1])
    adapted, arrays, *watched = adapter(case, method, engine, "photo")
    run(case, adapted, arrays, *watched)
    assert torch.equal(torch.stack(method.__dict__["named"]), arrays["topk"].flatten(0, 1).long())


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", of("clip_tent"))
def test_episodic_tent_of_several_steps(name: str, engine: str) -> None:
    case = CASES[name]
    adapted, arrays, *watched = adapter(case, "tent", engine, "photo", steps=case["niter"], episodic=True)
    run(case, adapted, arrays, *watched)


def recorded_views(held: dict[str, Tensor]) -> Callable[[Tensor, Any], Sequence[Tensor]]:
    return lambda x, noise: [view.expand_as(x) for view in held["x"][1:]]


@on_engines("tpt", "difftpt")
def test_prompt_tuning(name: str, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case, arrays, held = CASES[name], load_file(VECTORS / CASES[name]["file"]), {}
    steps: list[Tensor] = []
    kept: list[Tensor] = []
    plain = tpt._adamw

    def noted(*given: Any) -> Any:
        vectors, moments = plain(*given)
        steps.append(vectors)
        return vectors, moments

    monkeypatch.setattr(tpt, "_adamw", noted)
    context = case["ctx_init"] or " ".join(["x"] * case["n_ctx"])
    common = {"steps": case["tta_steps"], "lr": case["lr"], "context": context, "vectors": arrays["ctx0"]}
    common["views"] = recorded_views(held)
    method: TPT = (
        TPT(share=case["selection_p"], **common)
        if case["method"] == "tpt"
        else DiffTPT(
            share=case["selection_selfentro"], similar=case["selection_cosine"], generator=lambda *_: [], **common
        )
    )
    select = type(method).selected
    monkeypatch.setattr(type(method), "selected", lambda own, logits: kept.append(select(own, logits)) or kept[-1])
    network = zero_shot(tiny_clip(), tokenize, case["classes"], "photo")
    adapted = polytta.adapt(network, method, particles=1, exclude=None, engine=engine)
    for number, x in enumerate(calls(case)):
        held["x"] = x
        steps.clear()
        kept.clear()
        adapted(x[:1])
        assert adapted.last_logits is not None
        close(adapted.last_logits[0, 0], arrays["logits"][number], 1e-4)
        close(torch.cat(steps), arrays["ctx"][number], 1e-5)
        assert set(kept[0][0].tolist()) == set(arrays["selected"][number].tolist())
        assert len(kept) == 1, "views are chosen at the first step"
    assert torch.equal(adapted.theta[0], adapted.source), "the network stays as it is"


@on_engines("tda")
def test_tda(name: str, engine: str) -> None:
    case, arrays, held = CASES[name], load_file(VECTORS / CASES[name]["file"]), {}
    caches = {kind: case[kind] for kind in ("positive", "negative")}
    made = {
        kind: Cache(own["shot_capacity"], own["alpha"], own["beta"]) if own["enabled"] else Cache(0, 0.0, 0.0)
        for kind, own in caches.items()
    }
    if caches["negative"]["enabled"]:
        made["entropies"] = tuple(caches["negative"]["entropy_threshold"][end] for end in ("lower", "upper"))
        made["probs"] = tuple(caches["negative"]["mask_threshold"][end] for end in ("lower", "upper"))
    if case.get("views", 1) > 1:
        made["views"] = recorded_views(held)
    network = zero_shot(tiny_clip(), tokenize, case["classes"], case["templates"])
    adapted = polytta.adapt(network, TDA(**made), particles=1, exclude=None, engine=engine)
    for number, x in enumerate(calls(case)):
        held["x"] = x
        adapted(x[:1])
        assert adapted.last_logits is not None
        close(adapted.last_logits[0, 0], arrays["logits"][number], 1e-4)
        state = adapted._session.state.method
        for kind, short in (("positive", "pos"), ("negative", "neg")):
            if not caches[kind]["enabled"]:
                continue
            stored, wanted = state[f"{kind}_entropy"][0], arrays[f"{short}_entropy"][number]
            assert torch.equal(stored.isfinite(), ~wanted.isnan())
            close(stored.nan_to_num(posinf=0), wanted.nan_to_num(), 1e-5)
