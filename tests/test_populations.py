"""G populations in one batch are G separate runs."""

from itertools import product

import pytest
import torch

import polytta
from polytta.checks.networks import CLASSES, small_model, small_stream
from polytta.diversity import SVGD, Grad
from polytta.errors import ConfigError, InputError
from polytta.methods import EATA, SAR, DeYO, Method, Tent

METHODS: list[Method] = [Tent(), EATA(redundancy=0.9), SAR(), DeYO(entropy_threshold=0.9, plpd_threshold=-0.2)]
DIVERSITIES = ["none", "kl", SVGD(bandwidth="median"), SVGD(), Grad(solver="exact"), "grad"]


# Every method with every diversity once, on networks in turn, and every diversity on every network.
COMBINATIONS = [
    (("batch", "group", "layer")[place % 3], method, diversity)
    for place, (method, diversity) in enumerate(product(METHODS, [*DIVERSITIES, DIVERSITIES[0]]))
] + [(kind, METHODS[3], diversity) for kind in ("batch", "layer") for diversity in DIVERSITIES]


@pytest.mark.parametrize(("kind", "method", "diversity"), COMBINATIONS, ids=lambda one: getattr(one, "name", str(one)))
def test_folded_populations_equal_separate_runs(kind: str, method: Method, diversity: object) -> None:
    model, seeds, rates = small_model(kind), [3, 11], [0.004, 0.01, 0.02, 0.003, 0.003, 0.03]
    arguments = {
        "diversity": diversity,
        "exclude": None,
        "views": "flips",
        "aggregate": "evidence",
        "preset": "paper",
        "optimizer": ["sgd", "adam", "sgd"],
    }
    streams = [small_stream(4, 3, seed=seed) for seed in seeds]
    together = polytta.adapt(model, method, populations=2, seed=seeds, lr=rates, engine="static", **arguments)
    apart = [
        polytta.adapt(model, method, seed=seed, lr=rates[3 * g : 3 * g + 3], engine="static", **arguments)
        for g, seed in enumerate(seeds)
    ]
    for batches in zip(*streams, strict=True):
        got = together(torch.stack(batches))
        assert got.shape == (2, 3, CLASSES)
        assert together.last is not None
        for g, (adapted, x) in enumerate(zip(apart, batches, strict=True)):
            assert torch.allclose(got[g], adapted(x), atol=1e-9)
            own, alone = together.last.population(g), adapted.last
            assert alone is not None
            assert own.selected == alone.selected
            assert own.stepped == alone.stepped
            assert own.disagreement == pytest.approx(alone.disagreement, abs=1e-9)
            assert own.pairwise_distance == pytest.approx(alone.pairwise_distance, abs=1e-7)
            assert own.input_gradient_cosine == pytest.approx(alone.input_gradient_cosine, abs=1e-6)
            assert torch.allclose(together.theta[3 * g : 3 * g + 3], adapted.theta, atol=1e-9)
    assert torch.allclose(together.predict(torch.stack(batches))[1], apart[1].predict(batches[1]), atol=1e-9)


def test_bad_populations_are_refused_in_one_sentence() -> None:
    model = small_model("group")
    with pytest.raises(ConfigError, match="seed: got 3 for 2 populations"):
        polytta.adapt(model, populations=2, seed=[1, 2, 3])
    with pytest.raises(ConfigError, match="populations: got 0"):
        polytta.adapt(model, populations=0)
    adapted = polytta.adapt(model, populations=2)
    x = small_stream(1, 4)[0]
    with pytest.raises(InputError, match=r"allowed for 2 populations is \(2, B, ...\)"):
        adapted(x)
    pair = torch.stack([x, x])
    pair[1, 2] = torch.nan
    with pytest.raises(InputError, match="1 images with non-finite or absurd values"):
        adapted(pair)
    assert adapted.totals.steps == 0


def test_several_populations_do_not_become_one_model() -> None:
    adapted = polytta.adapt(small_model("group"), "tent", populations=2, lr=0.01, exclude=None)
    adapted(torch.stack(small_stream(2, 4)))
    for ask in (adapted.merge, adapted.best, adapted.freeze):
        with pytest.raises(ConfigError, match="2 populations; allowed is one"):
            ask()
