"""MEMO: a method with a loss of its own, over several passes at once."""

import copy

import pytest
import torch
from torch import Tensor, nn

import polytta
from polytta.adapter import Adapted
from polytta.checks.networks import small_model, small_stream
from polytta.diversity import KL, SVGD, Grad
from polytta.errors import ConfigError
from polytta.methods import MEMO
from polytta.methods.memo import augmented, marginal_entropy
from polytta.roles.noise import Noise, keys

LR = 0.05


def noise(particles: int = 1, step: int = 0) -> Noise:
    return Noise(keys([(0, k) for k in range(particles)], 1, torch.device("cpu"))[0], torch.tensor(step))


def adapter(**arguments: object) -> Adapted:
    wanted = {"method": MEMO(copies=3), "lr": LR, "exclude": None, "lr_spread": 0.0, "particles": 1, **arguments}
    return polytta.adapt(small_model("group"), **wanted)


def written_out(model: nn.Module, x: Tensor, copies: int) -> tuple[Tensor, Tensor]:
    """One step on the entropy of the mean prediction, with torch alone: answers before and after."""
    model = copy.deepcopy(model)
    parameters = [p for name, p in model.named_parameters() if "norm" in name]
    numbers = noise()
    seen = [augmented(x.unsqueeze(0), numbers, 0.5)[0] for _ in range(copies)]
    mean = torch.stack([model(one).softmax(dim=1) for one in seen]).mean(dim=0)
    loss = -(mean * mean.log()).sum(dim=1).mean()
    slopes = torch.autograd.grad(loss, parameters)
    before = model(x).log_softmax(dim=1).detach()
    with torch.no_grad():
        for parameter, slope in zip(parameters, slopes, strict=True):
            parameter -= LR * slope
    return before, model(x).log_softmax(dim=1).detach()


def test_an_episode_is_one_step_written_out() -> None:
    x = small_stream(1, 4)[0]
    before, after = written_out(small_model("group"), x, 3)
    assert torch.allclose(adapter()(x), after, atol=1e-10)
    assert not torch.allclose(before, after, atol=1e-4), "the step changes nothing, so the test says nothing"
    online = adapter(method=MEMO(copies=3, form="online"))
    assert torch.allclose(online(x), before, atol=1e-10)
    assert torch.allclose(online.predict(x), after, atol=1e-10)


def test_episodes_do_not_know_of_each_other_and_online_steps_do() -> None:
    stream = small_stream(3, 4)
    for form, apart in (("episodic", True), ("online", False)):
        adapted = adapter(method=MEMO(copies=3, form=form))
        for x in stream[:2]:
            adapted(x)
        # The third step draws the third step's numbers whatever came before it.
        alone = adapter(method=MEMO(copies=3, form=form))
        alone.load_state_dict({**alone.state_dict(), "step": torch.tensor(2)})
        assert torch.equal(adapted(stream[2]), alone(stream[2])) is apart


@pytest.mark.parametrize("diversity", [KL(weight=100.0), SVGD(bandwidth="median"), Grad(weight=1.0)])
@pytest.mark.parametrize("engine", ["loop", "folded", "static"])
def test_every_diversifier_reaches_it(diversity: object, engine: str) -> None:
    runs = [
        adapter(method=MEMO(copies=2, form="online"), particles=3, lr_spread=0.2, diversity=kind, engine=engine)
        for kind in ("none", diversity)
    ]
    for adapted in runs:
        for x in small_stream(3, 4):
            adapted(x)
    apart = float((runs[0].theta - runs[1].theta).norm() / (runs[0].theta - runs[0].source).norm())
    assert apart > 1e-3


def test_solvers_of_grad_agree_over_several_passes() -> None:
    """One more pass at shifted copies of every image is what two derivatives give."""
    x, moved = small_stream(1, 4, seed=5)[0], []
    for solver in ("exact", "fast"):
        diversity = Grad(weight=0.5, scale="literal", solver=solver)
        adapted = adapter(method=MEMO(copies=2, form="online"), particles=3, lr_spread=0.5, diversity=diversity)
        start = adapted.theta + 0.1 * torch.randn(adapted.theta.shape, generator=torch.Generator().manual_seed(0))
        adapted.load_state_dict({**adapted.state_dict(), "theta": start})
        adapted(x)
        moved.append(adapted.theta - start)
    assert torch.allclose(*moved, rtol=1e-4, atol=1e-9)


def test_marginal_entropy_is_low_only_where_copies_agree_and_are_sure() -> None:
    sure, other = torch.tensor([[[20.0, 0.0]]]), torch.tensor([[[0.0, 20.0]]])
    passes = [polytta.methods.Pass(sure, sure, logits) for logits in (sure, sure, other, other)]
    assert float(marginal_entropy(passes[:2])) == pytest.approx(0.0, abs=1e-6)
    assert float(marginal_entropy(passes)) == pytest.approx(torch.tensor(2.0).log().item())


def test_copies_are_new_every_time_and_the_image_itself_without_strength() -> None:
    x = torch.rand(2, 3, 3, 16, 16)
    numbers = noise(2)
    one, two = augmented(x, numbers, 0.5), augmented(x, numbers, 0.5)
    assert one.shape == x.shape
    assert not torch.equal(one, two)
    assert not torch.equal(one[0, 0], one[1, 0])
    still = augmented(x, noise(2), 0.0)
    flipped = torch.isclose(still, x.flip(-1), atol=1e-5).flatten(2).all(2)
    kept = torch.isclose(still, x, atol=1e-5).flatten(2).all(2)
    assert bool((flipped | kept).all())


@pytest.mark.parametrize(
    ("method", "says"),
    [
        (MEMO(copies=0), r"method: got MEMO\(copies=0\); allowed is a whole number >= 1"),
        (MEMO(form="sometimes"), "allowed are 'episodic' and 'online'"),
        (MEMO(strength=2.0), "allowed is 0 to 1"),
    ],
)
def test_bad_values_get_one_clear_sentence(method: MEMO, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        polytta.adapt(small_model("group"), method)
