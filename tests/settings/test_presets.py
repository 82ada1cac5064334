"""What nobody said: the recommended population, the paper's, and how to get from one to the other."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import polytta
from polytta.checks.networks import small_model, small_stream
from polytta.errors import ConfigError
from polytta.methods import DeYO, Tent
from polytta.settings import Config, Settings, resolve
from polytta.settings.presets import COMPOSING, SIZES
from polytta.views import resolve_lenses

# One value for every option that says something of the population.
GIVEN: dict[str, Any] = {
    "method": "tent",
    "particles": 3,
    "diversity": "kl",
    "optimizer": "adam",
    "lr": 0.01,
    "pace": 0.01,
    "views": "flips",
    "lenses": "optics",
    "aggregate": "logits",
    "statistics": "source",
    "objective": "literal",
    "shared_noise": True,
    "lr_spread": 0.1,
    "lr_span": 2.0,
}


def config(model: nn.Module | str = "group", **options: Any) -> Config:
    return resolve(Settings.of(options), small_model(model) if isinstance(model, str) else model)


def is_recommended(found: Config, size: str, statistics: tuple[str, ...]) -> bool:
    """Every lens with every pace, statistics and method once, lenses fastest; who learns nothing has no method."""
    lenses = resolve_lenses(SIZES[size]["lenses"]).transforms
    paces = (0.0,) if size == "small" else SIZES[size]["pace"]
    expected = [("deyo", kind, pace, lens) for kind in statistics for pace in paces for lens in lenses]
    if size == "large":
        expected += [("roid", kind, pace, lens) for kind in statistics for pace in paces if pace for lens in lenses]
    assert found.rates is not None
    assert found.rates.relative
    rows = range(found.particles)
    made = [
        (found.methods[n].name, found.statistics[n], found.rates.values[n], found.lenses.of_particle(n)) for n in rows
    ]
    parts = (found.aggregate.name, found.diversity.name, {one.name for one in found.optimizers})
    return made == expected and parts == ("evidence", "none", {"sgd"})


@pytest.mark.parametrize("size", [None, "small", "medium", "large"])
@pytest.mark.parametrize("kind", ["group", "layer", "batch"])
def test_nothing_said_is_ways_to_look_times_paces(kind: str, size: str | None) -> None:
    statistics = ("source", "blend") if kind == "batch" else ("batch",)
    found = config(kind, size=size)
    assert is_recommended(found, size or "medium", statistics)
    assert 0.0 in found.rates.values, "somebody looks and never learns"
    assert found.never_learn == {n for n, pace in enumerate(found.rates.values) if pace == 0}
    assert found.lenses.differ(found.particles)


def test_sizes_grow() -> None:
    counts = [config(size=size).particles for size in ("small", "medium", "large")]
    assert counts == sorted(set(counts))
    assert [config("batch", size=size).particles for size in ("small", "medium", "large")] == [2 * n for n in counts]
    assert set(SIZES) == {"small", "medium", "large"}


def test_what_says_nothing_of_the_population_leaves_it_recommended() -> None:
    model = small_model("group")
    for option, value in {"engine": "loop", "seed": 3, "exclude": None, "batch_size": 2, "particles_at_once": 2,
                          "populations": 2, "num_classes": 5, "targets": "blocks.0"}.items():  # fmt: skip
        assert is_recommended(config(model, **{option: value}), "medium", ("batch",)), option
    found = config(model, populations=2)
    assert found.rates.values == config(model).rates.values * 2


@pytest.mark.parametrize("option", GIVEN)
def test_whoever_composes_has_three_plain_particles(option: str) -> None:
    found = config("batch", **{option: GIVEN[option]})
    assert found.particles == 3
    assert found.method.name == GIVEN["method"] if option == "method" else found.method == DeYO(0.4, 0.3)
    assert (found.aggregate.name == "probs") == (option != "aggregate")
    assert found.lenses.differ(3) == (option == "lenses")
    assert found.statistics == (("source" if option == "statistics" else "batch"),) * 3
    assert (found.rates is None) == (option not in ("lr", "pace"))


def test_every_composing_option_is_among_them() -> None:
    assert {*GIVEN, "axes", "prompts"} == set(COMPOSING)
    assert config(axes="product").particles == 1


def test_a_value_that_is_the_default_composes_nothing() -> None:
    assert is_recommended(config(diversity="none", optimizer="sgd", statistics="auto", lr=None), "medium", ("batch",))


# ---------------------------------------------------------------------- by name


def test_recommended_by_name_with_parts_of_ones_own() -> None:
    assert is_recommended(config(preset="recommended"), "medium", ("batch",))
    other = config(preset="recommended", method="tent")
    assert (other.method, other.particles, other.aggregate.name) == (Tent(), config().particles, "evidence")
    assert other.rates == config().rates
    few = config("batch", preset="recommended", lenses=["unchanged", "horizontal_flip"], statistics="source")
    assert (few.particles, set(few.statistics)) == (2 * len(SIZES["medium"]["pace"]), {"source"})
    still = config(preset="recommended", pace=0.0)
    assert still.never_learn == set(range(still.particles))
    absolute = config(preset="recommended", lr=[0.0, 0.01])
    assert not absolute.rates.relative
    assert absolute.particles == 2 * len(resolve_lenses(SIZES["medium"]["lenses"]).transforms)
    assert config(preset="recommended", aggregate="probs").aggregate.name == "probs"


def test_the_papers_and_the_public_codes_thresholds() -> None:
    paper, official = config(preset="paper"), config(preset="official")
    assert paper.particles == official.particles == 3
    assert paper.method == DeYO(entropy_threshold=0.4, plpd_threshold=0.3)
    assert official.method == DeYO()
    assert paper.method != official.method
    assert paper.aggregate.name == official.aggregate.name == "probs"
    assert config(method="deyo").settings == config(preset="paper").settings
    assert config(preset="official", particles=1).particles == 1


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"size": "huge"}, "size"),
        ({"size": "huge", "preset": "recommended"}, "size"),
        ({"size": "small", "preset": "paper"}, "size"),
        ({"size": "small", "method": "tent"}, "size"),
        ({"preset": "mine"}, "preset"),
        ({"preset": 3}, "preset"),
        ({"preset": "recommended", "particles": 3}, "particles"),
        ({"preset": "recommended", "optimizer": "adam"}, "pace"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(options: dict[str, Any], argument: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config(**options)
    assert re.fullmatch(rf"{argument}: got .+; allowed (is|are) .+", str(caught.value))
    if argument == "preset":
        assert all(name in str(caught.value) for name in ("official", "paper", "recommended"))


# ---------------------------------------------------------------------- later


@pytest.mark.parametrize("kind", ["group", "layer", "batch"])
def test_it_is_saved_and_goes_on_bit_by_bit(kind: str, tmp_path: Path) -> None:
    stream = small_stream(8, 6)
    # Thresholds that an untrained network passes.
    options = {"preset": "recommended", "method": DeYO(0.9, -0.5), "exclude": None}
    whole, half = (polytta.adapt(small_model(kind), **options) for _ in range(2))
    for x in stream[:4]:
        whole(x)
        half(x)
    assert any(whole.totals.stepped), "else nothing would be told apart"
    half.save(tmp_path / "state")
    back = polytta.load(tmp_path / "state", small_model(kind))
    assert back.config.anchors == whole.config.anchors
    for x in stream[4:]:
        assert torch.equal(back.predict(x), whole.predict(x))
        assert torch.equal(back(x), whole(x))
    for name, value in whole.state_dict().items():
        assert torch.equal(value, back.state_dict()[name]), name
    assert back.settings == whole.settings


def test_paces_can_be_changed_when_it_is_loaded(tmp_path: Path) -> None:
    adapted = polytta.adapt(small_model("group"), "tent", pace=[0.1, 0.1, 0.1], exclude=None)
    adapted(small_stream(1, 6)[0])
    adapted.save(tmp_path / "state")
    back = polytta.load(tmp_path / "state", small_model("group"), pace=[0.0, 0.2, 0.3])
    assert back.settings.pace == (0.0, 0.2, 0.3)
    assert polytta.load(tmp_path / "state", small_model("group")).settings.pace == (0.1, 0.1, 0.1)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"size": "large"},
        {"preset": "recommended", "lr": [0.0, 0.1]},
        {"preset": "official"},
        {"method": ["tent", "sar"], "axes": "product", "lenses": "optics"},
        {"axes": "product", "lenses": "optics", "lr_span": 4.0},
        {"lr_span": 4.0},
        {"particles": 2, "lr": 0.1},
        {"populations": 2, "seed": [1, 2]},
    ],
)
@pytest.mark.parametrize("kind", ["group", "batch"])
def test_decided_settings_decide_the_same(kind: str, options: dict[str, Any]) -> None:
    model = small_model(kind)
    once = config(model, **options)
    again = resolve(once.settings, model)
    assert again.settings == once.settings
    for name in ("statistics", "multipliers", "layers", "methods", "optimizers", "anchors", "particles", "populations"):
        assert getattr(again, name) == getattr(once, name), name
    rates = [None if one.rates is None else (one.rates.values, one.rates.relative) for one in (once, again)]
    assert rates[0] == rates[1]
    assert [once.lenses.of_particle(n) for n in range(once.particles)] == [
        again.lenses.of_particle(n) for n in range(again.particles)
    ]


@pytest.mark.parametrize(("looks", "particles"), [(1, 3), (2, 2), (5, 5)])
def test_a_list_of_lenses_says_how_many_particles_there_are(looks: int, particles: int) -> None:
    found = config(method="tent", lenses=[lambda x, n=n: x.roll(n, -1) for n in range(looks)])
    assert (found.particles, len(found.lenses.transforms)) == (particles, looks)
