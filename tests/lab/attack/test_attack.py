"""Attacks do what they say, and the command compares an adapter with and without its guard."""

import pytest
import torch
from torch import Tensor

from polytta.checks.networks import small_model
from polytta.cli.program import main
from polytta.errors import ConfigError
from polytta.lab.attack import ATTACKS, Attack, as_table, attacked
from polytta.lab.attack.crafted import Attacker
from polytta.lab.attack.material import open_images
from polytta.lab.attack.streams import Material
from polytta.lab.pages.tables import as_text
from polytta.models import create


@pytest.fixture
def material() -> Material:
    torch.manual_seed(0)
    attacker = Attacker(small_model("batch").float(), 0.01, 6, by_batch=True)
    return Material(torch.randn(40, 3, 8, 8), torch.arange(40) % 5, 8, 3, 0.25, attacker)


@pytest.mark.parametrize("name", ATTACKS)
def test_every_attack_is_a_stream_of_whole_batches(name: str, material: Material) -> None:
    steps = list(ATTACKS[name](material))
    assert len(steps) == 3
    assert all(step.x.shape == (8, 3, 8, 8) and step.labels.shape == (8,) for step in steps)
    again = list(ATTACKS[name](material))
    assert all(torch.equal(a.x.nan_to_num(), b.x.nan_to_num()) for a, b in zip(steps, again, strict=True))


def test_floods_are_what_they_are_called(material: Material) -> None:
    for step in ATTACKS["one-class"](material):
        assert set(step.labels.tolist()) == {int(material.labels[0])}
    for step in ATTACKS["constant"](material):
        assert torch.equal(step.x, step.x[:1, :, :1, :1].expand_as(step.x))
    for step in ATTACKS["nan"](material):
        broken = (~step.x.isfinite() | (step.x.abs() > 1e6)).flatten(1).any(dim=1)
        assert torch.equal(broken, step.labels < 0)
        assert bool(broken.any())
    for before, after in zip(ATTACKS["bystanders"](material), ATTACKS["neighbours"](material), strict=True):
        assert torch.equal(before.labels, after.labels)
        honest = after.labels >= 0
        assert honest.tolist() == [True] * 6 + [False] * 2
        assert torch.equal(before.x[honest], after.x[honest])
        assert not torch.equal(before.x[~honest], after.x[~honest])


@pytest.mark.parametrize("together", [True, False])
def test_crafted_images_hurt_more_than_those_they_were_made_from(together: bool, material: Material) -> None:
    attacker, benign, labels = material.attacker, material.x[:6], material.labels[:6]
    own = material.x[6:12]

    def harm(images: Tensor) -> float:
        """By hand: one step of entropy, then the loss of the benign ones."""
        network, names = attacker._network, attacker._names
        batch = torch.cat([benign, images]) if together else images
        theta = {name: network.get_parameter(name).detach().clone().requires_grad_() for name in names}
        answers = torch.func.functional_call(network, theta, (batch,))
        entropy = -(answers.softmax(-1) * answers.log_softmax(-1)).sum(-1).mean()
        slopes = torch.autograd.grad(entropy, list(theta.values()))
        moved = {name: (theta[name] - 0.01 * slope).detach() for name, slope in zip(names, slopes, strict=True)}
        later = torch.func.functional_call(network, moved, (batch if together else benign,))[: len(benign)]
        return float(torch.nn.functional.cross_entropy(later, labels))

    crafted = attacker.against(own, benign, labels, together=together)
    assert float(crafted.amin()) >= float(benign.amin())
    assert float(crafted.amax()) <= float(benign.amax())
    assert harm(crafted) > harm(own)


def test_an_attack_is_refused_in_a_sentence() -> None:
    for wrong in ({"name": "magic"}, {"name": "nan", "fraction": 1.5}, {"name": "nan", "batch_size": 1}):
        with pytest.raises(ConfigError, match=r"got .*allowed"):
            Attack(**wrong)


def test_the_guard_is_shown_beside_nothing() -> None:
    source = create("bundled/cifar10_resnet_bn")
    x, labels = torch.randn(40, 3, 32, 32), torch.arange(40) % 10
    attack = Attack(
        "noise", {"method": "tent", "particles": 1, "lr": 1e20, "statistics": "source"}, batch_size=8, steps=2
    )
    free, guarded = attacked(source, x, labels, attack, judged_on=8, show=False)
    assert (free.guard, guarded.guard) == ("off", "default")
    assert not free.actions
    assert guarded.actions["shortened"] == 2
    assert guarded.after == guarded.source
    assert "shortened 2" in as_text(as_table([free, guarded]))


@pytest.mark.long
def test_crafted_neighbours_cost_at_most_a_third_of_what_they_cost_without_a_guard() -> None:
    source, x, labels = open_images("bundled/cifar10_resnet_bn", "bundled", 160, 0)
    attack = Attack("neighbours", {"method": "norm", "particles": 1}, batch_size=32, steps=2)
    free, guarded = attacked(source, x, torch.from_numpy(labels), attack, judged_on=32, show=False)
    assert free.during is not None
    assert guarded.during is not None
    assert free.source_during is not None
    assert free.source_during - free.during > 5, "the test needs harm"
    assert guarded.source_during - guarded.during <= (free.source_during - free.during) / 3


def test_the_command_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = "attack --models bundled/cifar10_resnet_gn --methods tent --attacks nan --steps 1 --images 24"
    assert main([*arguments.split(), "--judged-on", "8", "--batch-size", "8"]) == 0
    told = capsys.readouterr().out
    assert "bundled/cifar10_resnet_gn, tent" in told
    assert told.count("nan") == 2
