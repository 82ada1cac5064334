import pytest
import torch
from torch.nn import functional

import polytta
from polytta.checks.networks import small_model, small_stream
from polytta.methods import DeYO
from polytta.methods.shuffles import CentreOcclusion, PatchShuffle, PixelShuffle, permute_tiles
from polytta.roles.noise import Noise, keys


def noise() -> Noise:
    return Noise(keys([(0, 0), (0, 1)], 1, torch.device("cpu"))[0], torch.tensor(0))


def test_tiles_move_as_the_permutation_says() -> None:
    x = torch.arange(64.0).reshape(1, 1, 8, 8)
    order = torch.arange(16).roll(1).unsqueeze(0)
    moved = permute_tiles(x, order)
    assert torch.equal(moved[..., :2, 2:4], x[..., :2, :2]), "place 1 holds tile 0"
    assert torch.equal(moved[..., :2, :2], x[..., 6:, 6:]), "place 0 holds tile 15"
    assert torch.equal(permute_tiles(moved, order.argsort(dim=1)), x)


def test_patch_shuffle_keeps_the_pixels_and_differs_between_images() -> None:
    x = torch.rand(1, 1, 3, 8, 8).expand(2, 2, -1, -1, -1)
    moved = PatchShuffle()(x, noise())
    assert torch.equal(moved.flatten(3).sort().values, x.flatten(3).sort().values)
    different = moved.flatten(0, 1)
    assert all(not torch.equal(different[i], different[j]) for i in range(4) for j in range(i))


def test_sides_that_do_not_divide_are_resized_and_back() -> None:
    assert PatchShuffle()(torch.rand(2, 2, 3, 10, 9), noise()).shape == (2, 2, 3, 10, 9)


def test_pixel_shuffle_is_shared_by_the_batch() -> None:
    x = torch.rand(1, 1, 3, 8, 8).expand(2, 2, -1, -1, -1)
    moved = PixelShuffle()(x, noise())
    assert torch.equal(moved[:, 0], moved[:, 1])
    assert not torch.equal(moved[0], moved[1]), "each particle has its own permutation"
    assert torch.equal(moved.flatten(3).sort().values, x.flatten(3).sort().values)


def test_occlusion_covers_the_central_half_with_the_mean() -> None:
    x = torch.rand(2, 2, 3, 8, 8)
    covered = CentreOcclusion()(x, noise())
    assert torch.equal(covered[..., 0, :], x[..., 0, :])
    assert torch.allclose(covered[..., 2:6, 2:6], x.mean(dim=(3, 4), keepdim=True).expand(2, 2, 3, 4, 4))


@pytest.mark.parametrize("shuffle", ["patch", "pixel", "occlusion"])
def test_deyo_runs_with_each(shuffle: str) -> None:
    method = DeYO(shuffle=shuffle, plpd_threshold=-0.5)
    adapted = polytta.adapt(small_model("group"), method, lr=0.01, exclude=None)
    for x in small_stream(3, 4):
        adapted(x)
    assert sum(adapted.totals.stepped) > 0


@pytest.mark.parametrize("antialias", [False, True])
def test_a_grid_that_does_not_divide_the_image_is_reached_by_resizing(antialias: bool) -> None:
    x = torch.rand(2, 2, 3, 15, 14)
    shuffled = PatchShuffle(antialias=antialias)(x, noise())
    order = noise().uniform(2, 16).argsort(dim=2, stable=True)[0]
    small = functional.interpolate(x[0], (12, 12), mode="bilinear", align_corners=False, antialias=antialias)
    tiles = small.unfold(2, 3, 3).unfold(3, 3, 3).flatten(2, 3)
    moved = torch.stack([tiles[b][:, order[b]] for b in range(2)]).unflatten(2, (4, 4))
    whole = moved.permute(0, 1, 2, 4, 3, 5).reshape(2, 3, 12, 12)
    expected = functional.interpolate(whole, (15, 14), mode="bilinear", align_corners=False, antialias=antialias)
    assert torch.allclose(shuffled[0], expected, atol=1e-6)
    assert not torch.allclose(shuffled, PatchShuffle(antialias=not antialias)(x, noise()), atol=1e-3)
