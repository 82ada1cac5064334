"""ROID: agreement with the public implementation, its augmentation, windows, and batches with nothing to compare."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tests.dispatched import ON_THE_HOST, called_by
from tests.methods.recorded_rivals import CASES, RIVALS, RecordedRun, calls, replay
from tests.methods.test_parity import source_model
from torch import Tensor

import polytta
from polytta.checks.networks import CLASSES, small_model, small_stream
from polytta.diversity import KL, SVGD, Grad
from polytta.errors import ConfigError, InputError
from polytta.methods import ROID, Method, RDumb
from polytta.methods.roid_augment import Draw, augmented, in_unit_range, redrawn
from polytta.roles.noise import Noise, keys

BREAKS = "tinygn_roid_nan_w1_b1"
RECORDED = [name for name, case in CASES.items() if case["method"] == "roid" and name != BREAKS]


def noise(particles: int = 1, step: int = 0) -> Noise:
    return Noise(keys([(0, k) for k in range(particles)], 1, torch.device("cpu"))[0], torch.tensor(step))


def adapter(method: Method, model: str = "group", **arguments: object) -> polytta.Adapted:
    return polytta.adapt(small_model(model), method, **{"lr": 0.01, "exclude": None, **arguments})


# ---------------------------------------------------------------------- recordings


@pytest.mark.parametrize("engine", ["folded", "static", "loop"])
@pytest.mark.parametrize("name", RECORDED)
def test_agrees_with_the_public_implementation(name: str, engine: str) -> None:
    replay(name, engine)


@pytest.mark.parametrize("engine", ["folded", "static", "loop"])
def test_stays_finite_where_the_public_implementation_does_not(engine: str) -> None:
    case, recorded = CASES[BREAKS], load_file(RIVALS / f"{BREAKS}.safetensors")
    run = RecordedRun(case, source_model(case), recorded, engine)
    for step, (x, copies) in enumerate(calls(case, recorded)):
        returned = run(x, copies)
        assert bool(returned.isfinite().all())
        assert bool(recorded["returned"][step].isnan().any()) is (step > 0), "the recording is of another kind"
        if step == 0:
            assert (returned - recorded["returned"][0]).abs().max() <= 1e-4
        assert torch.equal(run.adapted.theta[0], run.adapted.source)


@pytest.mark.parametrize("engine", ["folded", "static", "loop"])
@pytest.mark.parametrize("model", ["batch", "group", "layer"])
def test_images_that_are_all_alike_move_only_the_mean_prediction(model: str, engine: str) -> None:
    adapted = adapter(ROID(), model, engine=engine)
    x = small_stream(1, 1)[0].expand(4, -1, -1, -1)
    before = torch.full((3, CLASSES), 1 / CLASSES, dtype=torch.float64)
    assert bool(adapted(x).isfinite().all())
    assert adapted.last.selected == {"diverse": (0, 0, 0)}
    assert bool((adapted.theta == adapted.source).all())
    assert not torch.allclose(adapted.state_dict()["method_mean_probs"], before)


# ---------------------------------------------------------------------- augmentation


def test_the_augmentation_is_the_public_one() -> None:
    vectors = np.load(RIVALS / "augment.npz")
    pixels = torch.from_numpy(vectors["image"]).permute(0, 1, 4, 2, 3).float() / 256
    affine = torch.from_numpy(vectors["affine"]).float()
    draw = Draw(
        torch.from_numpy(vectors["order"]),
        torch.from_numpy(vectors["factor"]).float(),
        affine[:, 0],
        affine[:, 1:3],
        affine[:, 3],
        torch.from_numpy(vectors["flip"]).bool(),
    )
    # All draws at once, as if each were a particle's.
    assert (redrawn(pixels, draw) - torch.from_numpy(vectors["output"])).abs().max() <= 1e-5


def test_copies_are_new_for_every_particle_and_step_and_lie_within_the_range() -> None:
    x = torch.rand(2, 3, 3, 16, 12, generator=torch.Generator().manual_seed(0))
    x[1] = x[0]
    one, later = augmented(x, noise(2)), augmented(x, noise(2, step=1))
    assert one.shape == x.shape
    assert 0 <= float(one.min()) < float(one.max()) <= 1
    assert not torch.allclose(one[0], one[1], atol=0.01)
    assert not torch.allclose(one, later, atol=0.01)
    assert torch.equal(one, augmented(x, noise(2)))


def test_draws_stay_within_their_ranges() -> None:
    draw = Draw.of(noise(2000), 32, 48, torch.float64)
    assert torch.equal(draw.order.sort(dim=1).values, torch.arange(5).expand(2000, -1))
    assert len(draw.order.unique(dim=0)) == 120
    for value, low, high in (
        (draw.factor[:, 3], -0.06, 0.06),
        (draw.angle, -15, 15),
        (draw.shift[:, 0], -6, 6),
        (draw.shift[:, 1], -4, 4),
        (draw.scale, 0.9, 1.1),
    ):
        assert low <= float(value.min()) < low + 0.1 * (high - low)
        assert high - 0.1 * (high - low) < float(value.max()) <= high
    assert torch.equal(draw.shift, draw.shift.round())
    assert 0.4 < float(draw.mirrored.double().mean()) < 0.6


def test_images_of_one_channel_have_no_hue() -> None:
    x = torch.rand(1, 2, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    assert augmented(x, noise()).shape == x.shape
    assert torch.allclose(augmented(x, noise()), augmented(x.expand(-1, -1, 3, -1, -1), noise())[:, :, :1], atol=1e-3)


@pytest.mark.parametrize("value_range", [None, (-2.0, 2.0), ((-2.0, -1.5, -1.0), 3.0)])
def test_what_is_not_changed_comes_back_as_it_was(value_range: tuple[object, object] | None) -> None:
    x = torch.randn(2, 3, 3, 8, 8, dtype=torch.float64).clamp(-1, 2)
    seen: list[Tensor] = []

    def look(images: Tensor, numbers: Noise) -> Tensor:
        seen.append(images)
        return images

    assert torch.allclose(in_unit_range(look, x, noise(), value_range), x)
    assert 0 <= float(seen[0].min()) <= float(seen[0].max()) <= 1
    if value_range is None:
        assert torch.equal(seen[0].amax(dim=(1, 3, 4)), torch.ones(2, 3, dtype=torch.float64))


def test_a_channel_without_contrast_does_no_harm() -> None:
    x = torch.randn(1, 3, 3, 8, 8)
    x[:, :, 1] = 0.5
    assert bool(in_unit_range(augmented, x, noise(), None).isfinite().all())


# ---------------------------------------------------------------------- the answer


def test_predictions_are_corrected_as_answers_are_and_evidence_is_not() -> None:
    plain, corrected = (adapter(ROID(use_prior_correction=use), aggregate="evidence") for use in (False, True))
    for x in small_stream(4, 6):
        assert torch.equal(corrected.predict(x), corrected(x))
        assert not torch.allclose(plain(x), corrected.particles_log_probs(x)[0], atol=0.01)
        assert torch.equal(plain.theta, corrected.theta)
        for name, value in plain.evidence.items():
            # The images nearby are told of by answers.
            assert name.startswith("chain_") or torch.equal(value, corrected.evidence[name])


def test_a_frozen_ensemble_answers_as_the_adapter_would() -> None:
    adapted, stream = adapter(ROID()), small_stream(4, 6)
    for x in stream[:3]:
        adapted(x)
    assert torch.allclose(adapted.freeze("ensemble")(stream[3]), adapted.predict(stream[3]))


# ---------------------------------------------------------------------- windows and resets


@pytest.mark.parametrize("model", ["batch", "group"])
def test_larger_batches_are_learnt_from_as_they_come_and_leave_the_window_alone(model: str) -> None:
    mixed, single = (adapter(ROID(window=3), model) for _ in range(2))
    larger = adapter(ROID(), model)
    x, images = small_stream(1, 6)[0], small_stream(7, 1, seed=1)
    assert torch.equal(mixed(x), larger(x))
    assert torch.equal(mixed.theta, larger.theta)
    for image in images:
        mixed(image)
        single(image)
    for name in ("method_window", "method_collected"):
        assert torch.equal(mixed.state_dict()[name], single.state_dict()[name])
    assert single.totals.stepped == (2, 2, 2)


@pytest.mark.parametrize("method", [ROID(window=3), RDumb(entropy_threshold=0.9, redundancy=0.99, window=3)])
def test_a_full_window_without_batch_statistics_is_a_batch(method: Method) -> None:
    """Nothing but the number of the step, which random numbers depend on, tells them apart."""
    images = small_stream(6, 1)
    collected = adapter(method)
    for image in images[:2]:
        collected(image)
        assert bool((collected.theta == collected.source).all())
    whole = adapter(type(method)(**{**vars(method), "window": 1}))
    whole.load_state_dict({**whole.state_dict(), "step": torch.tensor(2)})
    answer = whole(torch.cat(images[:3]))
    assert torch.allclose(collected(images[2])[0], answer[2], atol=1e-10)
    assert torch.allclose(collected.theta, whole.theta, atol=1e-10)
    assert not torch.equal(whole.theta, whole.source.expand(3, -1))


def test_a_window_is_saved_from_the_first_image_on(tmp_path: Path) -> None:
    images = small_stream(7, 1)
    for seen in (0, 1, 4):
        adapted = adapter(ROID(window=3), "batch", num_classes=CLASSES)
        for image in images[:seen]:
            adapted(image)
        adapted.save(tmp_path / "state")
        back = polytta.load(tmp_path / "state", small_model("batch"))
        for image in images[seen:]:
            assert torch.equal(back(image), adapted(image))


def test_what_a_window_cannot_hold_is_refused_in_one_sentence() -> None:
    image = small_stream(1, 1)[0]
    with pytest.raises(ConfigError, match="views: got 3 with window=2; allowed with a window is one"):
        adapter(ROID(window=2), views="flips")(image)
    adapted = adapter(ROID(window=2))
    adapted(image)
    with pytest.raises(InputError, match=r"x: got images of \(3, 4, 8\); allowed are \(3, 8, 8\), as in the window"):
        adapted(image[:, :, :4])


def test_a_reset_forgets_everything_but_the_window() -> None:
    adapted = adapter(ROID(reset_every=2), "batch", optimizer="adam")
    for step, x in enumerate(small_stream(4, 6)):
        adapted(x)
        state = adapted.state_dict()
        fresh = bool((adapted.theta == adapted.source).all())
        assert fresh is (adapted.last.reset[0]) is (step % 2 == 1)
        assert bool((state["method_mean_probs"] == 1 / CLASSES).all()) is fresh
        assert bool((state["optimizer_exp_avg"] == 0).all()) is fresh


# ---------------------------------------------------------------------- options, engines, other parts


def test_the_divisor_scales_the_loss() -> None:
    x, losses = small_stream(1, 6)[0], []
    for divisor in (None, 6, 12):
        adapted = adapter(ROID(divisor=divisor))
        adapted(x)
        losses.append(adapted.last.loss[0])
    assert losses[0] == losses[1] == pytest.approx(2 * losses[2])


def test_consistency_needs_no_weighting() -> None:
    adapted = adapter(ROID(use_weighting=False))
    adapted(small_stream(1, 6)[0])
    assert adapted.last.selected == {"diverse": (6, 6, 6)}
    assert adapted.last.stepped == (True,) * 3


@pytest.mark.parametrize("diversity", [KL(weight=100.0), SVGD(bandwidth="median"), Grad(weight=1.0)])
def test_every_diversifier_reaches_it(diversity: object) -> None:
    runs = [adapter(ROID(), diversity=kind, particles=3) for kind in ("none", diversity)]
    for adapted in runs:
        for x in small_stream(3, 6):
            adapted(x)
    apart = float((runs[0].theta - runs[1].theta).norm() / (runs[0].theta - runs[0].source).norm())
    assert apart > 1e-3


# Each reads a value back to the host, or brings one from there.
@pytest.mark.parametrize("model", ["batch", "group"])
@pytest.mark.parametrize(
    ("method", "batch"),
    [
        (ROID(reset_every=2, value_range=((-2.0, -2.0, -2.0), 2.0)), 6),
        (ROID(), 6),
        (ROID(window=3), 1),
        (RDumb(window=3), 1),
        (RDumb(), 6),
    ],
    ids=repr,
)
def test_a_static_step_stays_on_the_device(method: Method, batch: int, model: str) -> None:
    adapted = adapter(method, model, engine="static")
    stream = small_stream(2, batch)
    adapted(stream[0])
    session = adapted._session
    step = next(iter(session._steps.values()))[0]
    called = called_by(lambda: step(session.state, stream[1].unsqueeze(0)))
    assert "aten::convolution_backward" in called, "the step did not learn, so nothing was tested"
    assert not called & ON_THE_HOST


@pytest.mark.parametrize(
    ("method", "says"),
    [
        (ROID(temperature=0.0), "allowed are temperature > 0 and momenta within 0..1"),
        (ROID(momentum_src=1.5), r"method: got ROID\(temperature=.*momentum_src=1.5\)"),
        (ROID(divisor=0), "allowed are numbers > 0, or None"),
        (ROID(window=0), r"method: got ROID\(window=0, reset_every=0\); allowed are whole numbers, window >= 1"),
        (ROID(value_range=(2.0, -2.0)), "black below white"),
        (ROID(value_range=((0.0, 0.0), (1.0, 1.0, 1.0))), "one value or one per channel"),
        (ROID(value_range=3.0), "allowed are \\(black, white\\)"),
        (ROID(augment="blur"), "allowed are 'jitter' and a callable"),
    ],
)
def test_bad_values_get_one_clear_sentence(method: ROID, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        adapter(method)


def test_it_is_made_from_a_table() -> None:
    adapted = adapter({"name": "roid", "value_range": [[-2.0, -2.0, -2.0], 2.0], "window": 4})  # type: ignore[arg-type]
    assert adapted.config.method == ROID(value_range=((-2.0, -2.0, -2.0), 2.0), window=4)
