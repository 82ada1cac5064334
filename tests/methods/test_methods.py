"""Each method against its equation, written out naively for one particle."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import polytta
from polytta.checks.networks import CLASSES, small_model, small_stream
from polytta.errors import ConfigError
from polytta.methods import EATA, SAR, DeYO, estimate_fisher, resolve_method

LOG_CLASSES = math.log(CLASSES)
LR = 0.02


def naive_entropy(logits: Tensor) -> Tensor:
    return -(logits.softmax(1) * logits.log_softmax(1)).sum(1)


def norm_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    return {name: p for name, p in model.named_parameters() if "norm" in name}


def naive_eata(model: nn.Module, stream: list[Tensor], fisher: dict[str, Tensor] | None) -> list[Tensor]:
    parameters = norm_parameters(model)
    source = {name: p.detach().clone() for name, p in parameters.items()}
    optimizer = torch.optim.SGD(parameters.values(), lr=LR, momentum=0.9)
    running, outputs = None, []
    for x in stream:
        logits = model(x)
        outputs.append(logits.detach().log_softmax(1))
        entropies = naive_entropy(logits)
        keep = entropies.detach() < 0.4 * LOG_CLASSES
        probs = logits.detach().softmax(1)
        if running is not None:
            keep = keep & (F.cosine_similarity(running[None], probs).abs() < 0.6)
        if keep.any():
            kept = probs[keep].mean(0)
            running = kept if running is None else 0.9 * running + 0.1 * kept
            loss = (torch.exp(0.4 * LOG_CLASSES - entropies.detach()) * entropies)[keep].mean()
            if fisher is not None:
                loss = loss + 3.0 * sum((fisher[n] * (p - source[n]).square()).sum() for n, p in parameters.items())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return outputs


@pytest.mark.parametrize("with_fisher", [False, True])
def test_eata_follows_its_equation(with_fisher: bool) -> None:
    stream = small_stream(20, 6)
    fisher = estimate_fisher(small_model("group"), small_stream(4, 6, seed=9)) if with_fisher else None
    expected = naive_eata(small_model("group"), stream, fisher)
    method = EATA(redundancy=0.6, fisher=fisher, fisher_weight=3.0)
    adapted = polytta.adapt(small_model("group"), method, particles=1, lr=LR, exclude=None)
    for x, wanted in zip(stream, expected, strict=True):
        assert torch.allclose(adapted(x), wanted, atol=1e-9)
    first, second = adapted.totals.selected.values()
    assert 0 < second[0] < first[0] < 120, "the filters must all have had something to do"


def test_fisher_is_the_mean_squared_gradient_of_own_labels() -> None:
    model, batches = small_model("group"), small_stream(3, 4)
    estimate = estimate_fisher(model, batches)
    expected = {name: torch.zeros_like(p) for name, p in norm_parameters(model).items()}
    for x in batches:
        logits = model(x)
        gradients = torch.autograd.grad(
            F.cross_entropy(logits, logits.argmax(1)), list(norm_parameters(model).values())
        )
        for name, gradient in zip(expected, gradients, strict=True):
            expected[name] += gradient.square() / 3
    for name, value in expected.items():
        assert torch.allclose(estimate[name], value)
    with pytest.raises(ConfigError, match="batches: got none"):
        estimate_fisher(model, [])


def test_sar_forgets_on_reset() -> None:
    model = small_model("group", confidence=40.0)
    low = polytta.adapt(model, SAR(reset_below=10.0), particles=2, lr=LR, exclude=None)
    for x in small_stream(3, 6):
        low(x)
    assert low.totals.resets == (3, 3), "an average below the threshold resets at once"
    assert torch.equal(low.theta, low.source.expand(2, -1))
    assert bool(low.state_dict()["method_entropy_average"].isnan().all())
    assert not low.state_dict()["optimizer_momentum"].any()


@pytest.mark.parametrize("quirks", ["fixed", "reference", "deyo"])
def test_sar_coasts_on_momentum_as_the_code_in_question_does(quirks: str) -> None:
    """SAR's own code whenever nothing is left, the copy in DeYO's code only when it is the second filter's doing."""
    method = SAR(reset_below=0.0, quirks=quirks, rho=0.5)
    adapted = polytta.adapt(small_model("group"), method, particles=1, lr=LR, exclude=None)
    moved: dict[str, list[bool]] = {"entropy": [], "perturbed entropy": []}
    for x in small_stream(120, 1):
        with_momentum = bool(adapted.state_dict()["optimizer_momentum"].any())
        before = adapted.theta
        adapted(x)
        empty = next((name for name, counts in adapted.last.selected.items() if counts == (0,)), None)
        if with_momentum and empty is not None:
            moved[empty].append(not torch.equal(adapted.theta, before))
    assert all(moved.values()), "some filter never was the first to leave nothing, so nothing was tested"
    assert all(moved["entropy"]) if quirks == "reference" else not any(moved["entropy"])
    assert not any(moved["perturbed entropy"]) if quirks == "fixed" else all(moved["perturbed entropy"])


@pytest.mark.parametrize(("quirks", "forgets"), [("fixed", True), ("reference", False), ("deyo", False)])
def test_sar_forgets_average_and_momentum_at_a_reset_unless_the_code_in_question_does_not(
    quirks: str, forgets: bool
) -> None:
    adapted = polytta.adapt(small_model("group"), SAR(reset_below=9.0, quirks=quirks), particles=1, lr=LR, exclude=None)
    for x in small_stream(4, 6):
        adapted(x)
    assert adapted.totals.resets[0] > 0
    state = adapted.state_dict()
    assert bool(state["method_entropy_average"].isnan().all()) is forgets
    assert bool(state["optimizer_momentum"].any()) is not forgets


def test_former_names_of_thresholds_are_still_taken() -> None:
    assert SAR(margin=0.3) == SAR(entropy_threshold=0.3)
    assert EATA(margin=0.3) == EATA(entropy_threshold=0.3)
    assert DeYO(margin=0.3) == DeYO(reference_entropy=0.3)


def test_sar_second_pass_differs_only_through_batch_statistics() -> None:
    for kind, same in (("group", True), ("batch", False)):
        runs = []
        for second_pass in ("all", "selected"):
            adapted = polytta.adapt(small_model(kind), SAR(second_pass=second_pass), particles=2, lr=LR, exclude=None)
            for x in small_stream(5, 6):
                adapted(x)
            runs.append(adapted.theta)
        assert torch.allclose(*runs, atol=1e-9) is same


def test_deyo_without_a_selected_sample_moves_nothing() -> None:
    adapted = polytta.adapt(small_model("group"), DeYO(plpd_threshold=1.0), particles=3, lr=LR, exclude=None)
    for x in small_stream(3, 4):
        adapted(x)
    assert torch.equal(adapted.theta, adapted.source.expand(3, -1))
    assert adapted.totals.backward_samples == 0
    assert adapted.totals.stepped == (0, 0, 0)


def test_deyo_counts_work_as_the_public_code_spends_it() -> None:
    adapted = polytta.adapt(small_model("group"), DeYO(), particles=1, lr=LR, exclude=None)
    for x in small_stream(5, 6):
        adapted(x)
    entropy_passed, kept = (counts[0] for counts in adapted.totals.selected.values())
    assert adapted.totals.forward_samples == 5 * 6 + entropy_passed
    assert adapted.totals.backward_samples == kept


def test_presets() -> None:
    assert resolve_method("deyo", "paper") == DeYO(entropy_threshold=0.4, plpd_threshold=0.3)
    assert resolve_method("deyo", "official") == DeYO()
    assert resolve_method("sar", "paper") == SAR(reset_below=0.005, second_pass="selected")
    own = DeYO(plpd_threshold=0.1)
    assert resolve_method(own, "paper") is own


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("tnet", "method: got 'tnet'; allowed are"),
        (3, "method: got 3; allowed are"),
        (DeYO(entropy_threshold=-1.0), "entropy_threshold and reference_entropy > 0"),
        (DeYO(shuffle="pixels"), r"shuffle='pixels'\); allowed are"),
        (SAR(rho=-1.0), "rho and reset_below >= 0"),
        (SAR(quirks="none"), r"quirks='none'\); allowed are"),
        (SAR(second_pass="both"), r"second_pass='both'\); allowed are"),
        (EATA(margin=0.0), "entropy_threshold and redundancy > 0"),
    ],
)
def test_bad_values_get_one_clear_sentence(method: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        resolve_method(method, "paper")
    with pytest.raises(ConfigError, match="preset: got 'mine'"):
        resolve_method("tent", "mine")
