"""Every particle sees the stream through its own lens, and nothing else about it changes."""

from pathlib import Path

import pytest
import torch
from torch.overrides import TorchFunctionMode

import polytta
from polytta.checks import CHECKS, Case
from polytta.checks.networks import small_model, small_stream
from polytta.data.bundled import load_cifar10_subset
from polytta.data.corruptions import corrupt
from polytta.errors import ConfigError, InputError, StateError
from polytta.methods import DeYO, Tent
from polytta.models import create
from polytta.views import (
    TRANSFORMS,
    View,
    clearer,
    clearer_mirrored,
    coarser,
    farther,
    horizontal_flip,
    much_farther,
    much_sharper,
    sharper,
    softer,
    unchanged,
)
from polytta.views.lenses import LENSES, Lenses

OPTICS = LENSES["optics"].transforms
EAGER = DeYO(entropy_threshold=0.9, plpd_threshold=-0.2)
ARGUMENTS = {"particles": 5, "lr": 0.02, "exclude": None, "lr_spread": 0.0}


@pytest.mark.parametrize("engine", ["loop", "folded", "static"])
def test_a_particle_is_what_it_would_be_alone_on_what_it_sees(engine: str) -> None:
    together = polytta.adapt(small_model("group"), Tent(), lenses="optics", engine=engine, **ARGUMENTS)
    alone = [polytta.adapt(small_model("group"), Tent(), **{**ARGUMENTS, "particles": 1}) for _ in OPTICS]
    for x in small_stream(4, 3):
        each = together.particles_log_probs(x)
        together(x)
        for place, (adapted, lens) in enumerate(zip(alone, OPTICS, strict=True)):
            assert torch.allclose(adapted(lens(x)), each[place], atol=1e-9)
            assert torch.allclose(adapted.theta[0], together.theta[place], atol=1e-9)
    assert len({float(row.sum()) for row in together.theta}) == 5


def test_populations_look_as_separate_runs_do() -> None:
    arguments = {"lenses": [unchanged, sharper, unchanged], "views": "mirror", "particles": 3, "aggregate": "evidence"}
    together = polytta.adapt(small_model("layer"), EAGER, populations=2, seed=[3, 4], lr=0.01, **arguments)
    apart = [polytta.adapt(small_model("layer"), EAGER, seed=seed, lr=0.01, **arguments) for seed in (3, 4)]
    for batches in zip(small_stream(4, 3, seed=3), small_stream(4, 3, seed=4), strict=True):
        got = together(torch.stack(batches))
        for place, (adapted, x) in enumerate(zip(apart, batches, strict=True)):
            assert torch.allclose(got[place], adapted(x), atol=1e-9)


@pytest.mark.parametrize("model", ["batch", "group", "layer"])
def test_lenses_conform(model: str) -> None:
    case = Case(model, batch=4, steps=3, arguments={"method": EAGER, "particles": 5, "lenses": "optics"})
    for check in CHECKS:
        check(case)


def test_more_particles_than_lenses_start_over() -> None:
    lenses = Lenses((unchanged, horizontal_flip))
    seen = lenses.of(torch.arange(6.0).reshape(1, 1, 2, 3), 3)
    assert seen.shape == (3, 1, 1, 2, 3)
    assert torch.equal(seen[0], seen[2])
    assert torch.equal(seen[1], seen[0].flip(-1))
    assert lenses.of_particle(3) is horizontal_flip


def test_frozen_particles_keep_their_lens() -> None:
    adapted = polytta.adapt(small_model("group"), Tent(), lenses="optics", aggregate="evidence", **ARGUMENTS)
    for x in small_stream(3, 6):
        adapted(x)
    x = small_stream(1, 6, seed=4)[0]
    assert torch.allclose(adapted.freeze("ensemble")(x), adapted.predict(x))
    each = adapted.particles_log_probs(x)
    for number in range(5):
        assert torch.allclose(adapted.freeze(number)(x), each[number])
    batch = torch.export.Dim("batch", min=2, max=64)
    for which in (2, "ensemble"):
        module = adapted.freeze(which)
        exported = torch.export.export(module, (x,), dynamic_shapes=({0: batch},))
        assert torch.allclose(exported.module()(x[:4]), module(x[:4]))


def test_a_state_file_holds_named_lenses_only(tmp_path: Path) -> None:
    model = small_model("group")
    named = polytta.adapt(model, Tent(), lenses="optics", **ARGUMENTS)
    named(small_stream(1, 4)[0])
    named.save(tmp_path / "named")
    assert polytta.load(tmp_path / "named", model).config.lenses == LENSES["optics"]
    lenses = [unchanged, *[torch.neg] * 4]
    own = polytta.adapt(model, Tent(), lenses=lenses, **ARGUMENTS)
    own.save(tmp_path / "own")
    with pytest.raises(StateError, match=r"allowed is lenses= in polytta\.load"):
        polytta.load(tmp_path / "own", model)
    assert polytta.load(tmp_path / "own", model, lenses=lenses).config.lenses.transforms[1] is torch.neg


@pytest.mark.parametrize("lenses", ["glasses", [], [3], 5])
def test_bad_lenses_get_one_clear_sentence(lenses: object) -> None:
    with pytest.raises(ConfigError, match=r"lenses: got .* allowed"):
        polytta.adapt(small_model("group"), lenses=lenses)


@pytest.mark.parametrize(
    ("lens", "message"),
    [
        (lambda x: x[..., :4], "allowed is the same shape"),
        (lambda x: None, "returns a NoneType; allowed is a tensor"),
        (lambda x: x.numpy(), "returns a ndarray; allowed is a tensor"),
        (lambda x: x.float(), r"turns torch.float64 on cpu into torch.float32 on cpu; allowed is the same"),
    ],
)
def test_what_a_lens_returns_is_checked(lens: View, message: str) -> None:
    adapted = polytta.adapt(small_model("group"), lenses=[unchanged, lens])
    with pytest.raises(ConfigError, match=f"lenses: .* {message}"):
        adapted(small_stream(1, 2)[0])


@pytest.mark.parametrize("lens", TRANSFORMS.values(), ids=lambda lens: lens.__name__)
def test_a_lens_can_be_differentiated_twice(lens: View) -> None:
    x = torch.randn(1, 1, 5, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lens, x)
    assert torch.autograd.gradgradcheck(lens, x)


def test_parameters_learnt_through_different_lenses_are_not_merged() -> None:
    adapted = polytta.adapt(small_model("group"), Tent(), lenses="optics", **ARGUMENTS)
    x = small_stream(1, 4)[0]
    adapted(x)
    with pytest.raises(ConfigError, match="which: got 'merged' for particles with different lenses"):
        adapted.freeze("merged")
    alike = polytta.adapt(small_model("group"), "source", lenses=[horizontal_flip], particles=2)
    assert torch.allclose(alike(x), alike.freeze("merged")(x))


def test_fewer_particles_than_lenses_take_the_first() -> None:
    x = small_stream(1, 4)[0]
    two = polytta.adapt(small_model("group"), "source", particles=2, lenses="optics")
    assert torch.allclose(two.particles_log_probs(x)[1], small_model("group")(farther(x)).log_softmax(1))


def test_broken_images_are_looked_at_by_nobody() -> None:
    adapted = polytta.adapt(small_model("group"), Tent(), lenses="optics", **ARGUMENTS)
    x = small_stream(1, 4)[0]
    x[1, 0, 0, 0] = torch.nan
    answer = adapted(x)
    assert answer.isfinite().all()
    assert adapted.last is not None
    assert adapted.last.rejected == 1


@pytest.mark.parametrize("lens", TRANSFORMS.values(), ids=lambda lens: lens.__name__)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_lenses_keep_half_precision(lens: View, dtype: torch.dtype) -> None:
    x = torch.rand(2, 3, 16, 16)
    assert lens(x.to(dtype)).dtype == dtype
    assert (lens(x.to(dtype)).float() - lens(x)).abs().max() < 0.05


def test_lenses_with_evidence_see_through_noise() -> None:
    """What they are for, on real images: nothing is learnt, only looked at in five ways and weighed without labels."""
    subset = load_cifar10_subset()
    ids = range(0, 2000, 20)
    images, labels = subset.images[::20], torch.as_tensor(subset.labels[::20])
    noisy = corrupt(images, "speckle_noise", 5, constants="cifar", ids=ids, seed=0)
    made = create("bundled/cifar10_resnet_gn")
    x = made.preprocessing(list(noisy))
    plain = polytta.adapt(made.module, "source", particles=1)
    lenses = polytta.adapt(made.module, "source", particles=5, lenses="optics", aggregate="evidence")
    right = [
        float((torch.cat([adapted(batch) for batch in x.split(10)]).argmax(1) == labels).float().mean())
        for adapted in (plain, lenses)
    ]
    assert right[1] > right[0] + 0.1, right
    assert lenses.best() != 0, "noise is seen through best from farther away"


def test_farther_makes_smaller_and_keeps_what_is_flat() -> None:
    flat = torch.full((2, 3, 9, 32), 0.3, dtype=torch.float64)
    assert torch.allclose(farther(flat), flat)
    ramp = torch.linspace(0, 1, 32, dtype=torch.float64).expand(1, 1, 32, 32)
    row = farther(ramp)[0, 0, 16, 6:27]  # three periods of seven pixels for eight
    assert float(row[-1] - row[0]) / 20 == pytest.approx(8 / 7 / 31, rel=0.01)
    noise = torch.randn(4, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    assert float(farther(noise).std()) < 0.8 * float(noise.std())


def test_softer_is_a_binomial_average_and_sharper_its_opposite() -> None:
    x = torch.zeros(1, 1, 5, 5, dtype=torch.float64)
    x[0, 0, 2, 2] = 16
    line = torch.tensor([1.0, 2.0, 1.0], dtype=torch.float64)
    assert torch.equal(softer(x)[0, 0, 1:4, 1:4], torch.outer(line, line))
    noise = torch.randn(2, 3, 7, 9, dtype=torch.float64)
    assert torch.allclose(softer(noise) + sharper(noise), 2 * noise)
    assert torch.allclose(much_sharper(noise) - sharper(noise), sharper(noise) - noise)
    assert torch.allclose(softer(torch.ones_like(noise)), torch.ones_like(noise))


@pytest.mark.parametrize("lens", TRANSFORMS.values(), ids=lambda lens: lens.__name__)
def test_a_lens_brings_nothing_from_the_host(lens: View) -> None:
    """Else a step through it cannot be recorded as a CUDA graph."""
    called: list[object] = []

    class Watch(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            called.append(func)
            return func(*args, **(kwargs or {}))

    with Watch():
        lens(torch.zeros(2, 3, 32, 32))
    assert not {torch.tensor, torch.as_tensor, torch.from_numpy} & set(called)


def photographs(spread: float, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    """Images with colours of their own that have exactly this contrast."""
    noise = torch.randn(3, 3, 8, 6, dtype=dtype, generator=torch.Generator().manual_seed(0))
    around = noise - noise.mean(dim=(2, 3), keepdim=True)
    around = around / around.square().mean(dim=(1, 2, 3), keepdim=True).sqrt()
    return spread * around + torch.linspace(-1, 1, 9, dtype=dtype).reshape(3, 3, 1, 1)


@pytest.mark.parametrize("faded", [0.2, 0.5, 0.99])
def test_clearer_gives_back_the_contrast_that_was_taken(faded: float) -> None:
    """Exactly, whatever the mean colour is and however much was taken."""
    whole = photographs(0.6)
    colour = whole.mean(dim=(2, 3), keepdim=True)
    assert torch.allclose(clearer(colour + faded * (whole - colour)), whole)
    hazy = 0.3 * whole + 0.6
    assert torch.allclose(clearer(hazy), whole - colour + hazy.mean(dim=(2, 3), keepdim=True))


def test_clearer_adds_nothing_to_what_is_clear_and_makes_nothing_of_nothing() -> None:
    assert torch.equal(clearer(photographs(0.9)), photographs(0.9))
    flat = torch.full((2, 3, 5, 5), -1.7, dtype=torch.float64, requires_grad=True)
    clearer(flat).sum().backward()
    assert torch.allclose(clearer(flat), flat)
    assert flat.grad is not None
    assert flat.grad.isfinite().all()
    faint = photographs(0.01)
    colour = faint.mean(dim=(2, 3), keepdim=True)
    assert torch.allclose(clearer(faint) - colour, 8 * (faint - colour)), "rounding is not blown up without bound"


def test_clearer_mirrored_is_both() -> None:
    x = photographs(0.3)
    assert torch.allclose(clearer_mirrored(x), clearer(x).flip(-1))


def test_coarser_averages_what_is_finer_than_two_pixels_and_keeps_the_rest() -> None:
    rows, columns = torch.meshgrid(torch.arange(128.0), torch.arange(130.0), indexing="ij")
    slope, chessboard = (0.01 * rows + 0.02 * columns).expand(2, 3, -1, -1), 1 - 2 * ((rows + columns) % 2)
    seen = coarser(slope + chessboard)
    assert seen.shape == slope.shape
    assert torch.allclose(seen[..., 4:-4, 4:-4], slope[..., 4:-4, 4:-4], atol=1e-5)
    assert coarser(slope.bfloat16()).dtype == torch.bfloat16


def test_small_images_keep_their_pixels() -> None:
    x = photographs(1.0)
    assert torch.equal(coarser(x), much_farther(x))
    assert torch.equal(coarser(torch.ones(1, 3, 127, 400)), much_farther(torch.ones(1, 3, 127, 400)))


def test_the_default_sees_through_haze() -> None:
    subset = load_cifar10_subset()
    hazy = (0.3 * subset.images[::25] + 0.6 * 255).round().astype("uint8")
    labels = torch.as_tensor(subset.labels[::25])
    made = create("bundled/cifar10_vit_ln")
    x = made.preprocessing(list(hazy))
    adapted = polytta.adapt(made.module, preset="recommended", pace=0.0)
    seen = torch.cat([adapted(batch) for batch in x.split(16)]).argmax(1)
    with torch.inference_mode():
        plain = made.module(x).argmax(1)
    right = [float((answer == labels).float().mean()) for answer in (plain, seen)]
    assert right[1] > right[0] + 0.15, right
    assert adapted.hypotheses[adapted.best()].axes["lens"] == "clearer_mirrored"


@pytest.mark.parametrize("name", ["horizontal_flip", "farther", "coarser", "sharper", "clearer"])
def test_frames_with_colours_last_are_refused_by_what_would_mix_them_up(name: str) -> None:
    with pytest.raises(InputError, match=r"got \(2, 20, 30, 3\), colours last"):
        TRANSFORMS[name](torch.rand(2, 20, 30, 3))
    assert TRANSFORMS[name](torch.rand(2, 30, 20, 3).permute(0, 3, 1, 2)).shape == (2, 3, 30, 20)
    assert TRANSFORMS[name](torch.rand(2, 3, 8, 3)).shape == (2, 3, 8, 3)
