"""Lists of options to particles: order, lengths, refusals, and that a product is the particles it is made of."""

import re
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
import torch

import polytta
from polytta.adapter import Adapted
from polytta.checks.networks import small_model, small_stream
from polytta.errors import ConfigError
from polytta.methods import EATA, SAR, DeYO, Tent
from polytta.optim import SGD
from polytta.settings import Config, Settings, resolve
from polytta.settings.presets import COMPOSING
from polytta.views import farther, sharper, unchanged


def config(**options: Any) -> Config:
    return resolve(Settings.of(options), small_model("batch"))


def adapted(kind: str = "group", **options: Any) -> Adapted:
    return polytta.adapt(small_model(kind), exclude=None, **options)


@pytest.mark.parametrize("several", [np.array, torch.tensor])
def test_arrays_and_tensors_are_lists(several: Any) -> None:
    exact = several([0.5, 0.25])
    for name in ("lr", "pace"):
        assert config(method="tent", particles=2, **{name: exact}).rates.values == (0.5, 0.25)
        assert config(method="tent", axes="product", **{name: exact}).rates.values == (0.5, 0.25)
    assert config(method="tent", populations=2, seed=several([3, 4])).settings.seed == (3, 4)
    assert config(seed=np.int64(3), populations=np.int32(2), shared_noise=np.bool_(True)).settings.seed == 3
    assert config(method="tent", populations=2, seed=list(np.arange(2))).settings.seed == (0, 1)


def test_arrays_of_names_are_lists() -> None:
    assert config(method="tent", particles=2, statistics=np.array(["source", "blend"])).statistics == (
        "source",
        "blend",
    )
    assert [one.name for one in config(method=np.array(["tent", "eata", "sar"])).methods] == ["tent", "eata", "sar"]


@pytest.mark.parametrize("name", [*COMPOSING, "size", "preset", "targets", "seed", "precision", "engine"])
@pytest.mark.parametrize(
    "value",
    [torch.tensor([1.0, 2.0]), torch.tensor(1.5), np.eye(2), np.array([]), 1.5, object()],
    ids=["tensor", "single number", "matrix", "empty", "number", "object"],
)
@pytest.mark.parametrize("axes", ["zip", "product"])
def test_whatever_an_option_is_given_it_is_taken_or_refused_in_a_sentence(name: str, value: object, axes: str) -> None:
    with suppress(ConfigError):
        config(**{"axes": axes, name: value})


def looks(found: Config) -> list[object]:
    return [found.lenses.of_particle(number) for number in range(found.particles)]


# ---------------------------------------------------------------------- what particles are made of


def test_lenses_vary_fastest_then_rates_optimizers_statistics_and_methods() -> None:
    found = config(
        method=["tent", "sar"],
        statistics=["source", "blend"],
        optimizer=[SGD(momentum=0.0), SGD()],
        lr=[0.1, 0.2],
        lenses=["unchanged", "farther", "sharper"],
        axes="product",
    )
    assert found.particles == 48
    assert looks(found) == [unchanged, farther, sharper] * 16
    assert found.rates.values == ((0.1,) * 3 + (0.2,) * 3) * 8
    assert [one.momentum for one in found.optimizers] == ([0.0] * 6 + [0.9] * 6) * 4
    assert found.statistics == (("source",) * 12 + ("blend",) * 12) * 2
    assert [one.name for one in found.methods] == ["tent"] * 24 + ["sar"] * 24


def test_a_product_counts_its_particles_itself() -> None:
    assert config(axes="product").particles == 1
    assert config(axes="product", lenses="optics").particles == 5
    assert config(axes="product", lenses="optics", pace=[0.0, 0.1], particles=10).particles == 10
    assert config(axes="product", lr=0.1, method=["tent", "sar", "deyo"]).rates.values == (0.1,) * 3


def test_a_product_multiplies_no_rate_by_anything() -> None:
    found = config(axes="product", lr=[0.1, 0.3])
    assert found.rates.values == (0.1, 0.3)
    assert found.multipliers == (1.0, 1.0)
    ruled = config(axes="product", lenses="optics").reference_rates("convolutional", 64).values
    assert ruled == (2.5e-4,) * 5


def test_zipped_ones_are_one_for_all_or_one_each() -> None:
    found = config(method=["tent", "sar"], particles=2, statistics=["blend", "source"], pace=[0.1, 0.0])
    assert [one.name for one in found.methods] == ["tent", "sar"]
    assert found.statistics == ("blend", "source")
    assert (found.rates.values, found.rates.relative) == ((0.1, 0.0), True)
    found = config(method="tent", particles=5, statistics="blend", lenses=["farther"])
    assert found.statistics == ("blend",) * 5
    assert looks(found) == [farther] * 5
    assert looks(config(method="tent", lenses=["unchanged", "farther"])) == [unchanged, farther]


def test_auto_is_what_each_method_wants() -> None:
    found = config(method=["source", "tent"], statistics=["auto", "source"], axes="product")
    assert found.statistics == ("source", "source", "batch", "source")


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "axes": ({"axes": "cross"}, "'zip', 'product'"),
    "particles": ({"axes": "product", "lenses": "optics", "particles": 3}, "5 or None"),
    "method": ({"method": ["tent", "sar"], "particles": 3}, "one, or one each"),
    "method of none": ({"method": []}, "at least one"),
    "method that starts over": ({"method": ["tent", "memo"], "particles": 2}, "several that go on learning"),
    "lenses that would start over": (
        {"lenses": "optics", "particles": 8},
        "allowed are one, one each, or axes='product'",
    ),
    "lenses that nobody would have": (
        {"lenses": ["unchanged", "farther", "sharper"], "particles": 2},
        "got 3 for 2 particles; allowed are one, one each",
    ),
    "statistics": ({"statistics": ["source", "blend"], "particles": 3}, "one, or one each"),
    "statistics of none": ({"statistics": []}, "'batch', 'source', 'blend'"),
    "statistics unknown": ({"statistics": "mine"}, "'batch', 'source', 'blend'"),
    "diversity": ({"method": ["tent", "sar"], "particles": 2, "diversity": "kl"}, "'none', or one method"),
    "diversity of unlike": ({"method": [SAR(0.1), SAR(0.2)], "particles": 2, "diversity": "kl"}, "'none', or one"),
    "pace": ({"pace": 0.1, "optimizer": "adam"}, "'sgd', or lr="),
    "pace of one": ({"pace": 0.1, "optimizer": ["sgd", "adamw"], "particles": 2}, "'sgd', or lr="),
    "pace beside lr": ({"pace": 0.1, "lr": 0.1}, "one of the two"),
    "pace beside an own lr": ({"pace": 0.1, "optimizer": SGD(lr=0.1)}, "one of the two"),
    "pace below": ({"pace": -0.1}, "numbers from 0 to 1e+30"),
    "pace in words": ({"pace": "slow"}, "a number, one per particle, or None"),
    "pace each": ({"pace": [0.1, 0.2], "particles": 3}, "one, or one each"),
    "lr": ({"lr": []}, "one, or one each"),
    "lr of an empty axis": ({"lr": [], "axes": "product"}, "at least one"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_refused_in_one_sentence(case: str) -> None:
    options, allowed = REFUSED[case]
    with pytest.raises(ConfigError) as caught:
        config(**options)
    sentence = str(caught.value)
    argument = "axes" if case == "lr of an empty axis" else case.partition(" ")[0]
    assert re.fullmatch(rf"{argument}: got .+; allowed (is|are) .+", sentence), sentence
    assert allowed in sentence
    assert "\n" not in sentence


# ---------------------------------------------------------------------- what they do


def test_a_product_is_the_particles_it_is_made_of() -> None:
    options = {"method": DeYO(0.9, -0.5), "aggregate": "evidence"}
    made = adapted("batch", statistics=["source", "blend"], lr=[0.0, 0.02], lenses=["unchanged", "farther"],
                   axes="product", **options)  # fmt: skip
    listed = adapted(
        "batch",
        particles=8,
        statistics=["source"] * 4 + ["blend"] * 4,
        lr=[0.0, 0.0, 0.02, 0.02] * 2,
        lenses=["unchanged", "farther"] * 4,
        lr_spread=0.0,
        **options,
    )
    for x in small_stream(5, 6):
        assert torch.equal(made(x), listed(x))
    assert torch.equal(made.theta, listed.theta)
    assert len({tuple(row) for row in made.theta.tolist()}) == 5, "four that learn, and the source"
    assert made.settings == listed.settings


SEVERAL = (Tent(), DeYO(0.9, -0.5), SAR(0.9), EATA(entropy_threshold=0.9))


@pytest.mark.parametrize("engine", ["folded", "static", "loop"])
@pytest.mark.parametrize("kind", ["group", "batch"])
def test_methods_in_one_population_do_what_each_does_alone(kind: str, engine: str) -> None:
    options = {"axes": "product", "lr": [0.01, 0.03], "shared_noise": True, "engine": engine}
    stream = small_stream(6, 6)
    together = adapted(kind, method=SEVERAL, **options)
    alone = [adapted(kind, method=method, **options) for method in SEVERAL]
    for x in stream:
        told = together.particles_log_probs(x)
        for number, one in enumerate(alone):
            assert torch.equal(told[2 * number : 2 * number + 2], one.particles_log_probs(x))
            one(x)
        together(x)
    for number, one in enumerate(alone):
        own = slice(2 * number, 2 * number + 2)
        assert torch.equal(together.theta[own], one.theta)
        assert together.totals.stepped[own] == one.totals.stepped
        assert together.totals.backward_by_particle[own] == one.totals.backward_by_particle
        assert together.totals.forward_by_particle[own] == one.totals.forward_by_particle
        for name in one.config.filters:
            assert together.totals.selected[name][own] == one.totals.selected[name]
    assert together.totals.stepped[0] == len(stream)


def test_methods_in_one_population_are_saved_and_go_on(tmp_path: Any) -> None:
    options = {"method": SEVERAL, "axes": "product", "lr": [0.01, 0.03]}
    stream, whole, half = small_stream(6, 6), adapted(**options), adapted(**options)
    for x in stream[:3]:
        whole(x)
        half(x)
    half.save(tmp_path / "state")
    back = polytta.load(tmp_path / "state", small_model("group"))
    for x in stream[3:]:
        assert torch.equal(back(x), whole(x))
    assert torch.equal(back.theta, whole.theta)
    assert back.totals == whole.totals


def test_a_frozen_population_of_several_methods_answers_as_it_did() -> None:
    population = adapted(method=["roid", "tent", "sar"], axes="product", lr=[0.0, 0.01])
    stream = small_stream(4, 6)
    for x in stream[:3]:
        population(x)
    frozen = population.freeze("ensemble")(stream[3])
    assert torch.allclose(frozen, population.predict(stream[3]), rtol=0, atol=1e-9)


def test_only_particles_of_a_method_that_corrects_answers_are_corrected() -> None:
    """Also where nobody learns, and all could share one pass."""
    methods, (x,) = ["roid", "tent", "sar"], small_stream(1, 6)
    together = adapted(method=methods, particles=3, lr=0.0)
    for number, method in enumerate(methods):
        alone = adapted(method=method, particles=1, lr=0.0)
        assert torch.equal(together.particles_log_probs(x)[number], alone.particles_log_probs(x)[0])
    told = together.particles_log_probs(x)
    assert torch.equal(told[1], told[2])
    assert not torch.allclose(told[0], told[1], atol=0.01)
