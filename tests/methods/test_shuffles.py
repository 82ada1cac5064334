import pytest
import torch

import polytta
from polytta.checks.networks import small_model, small_stream
from polytta.methods import DeYO
from polytta.methods.shuffles import CentreOcclusion, PatchShuffle, PixelShuffle, permute_tiles


def test_tiles_move_as_the_permutation_says() -> None:
    x = torch.arange(64.0).reshape(1, 1, 8, 8)
    order = torch.arange(16).roll(1).unsqueeze(0)
    moved = permute_tiles(x, order)
    assert torch.equal(moved[..., :2, 2:4], x[..., :2, :2]), "place 1 holds tile 0"
    assert torch.equal(moved[..., :2, :2], x[..., 6:, 6:]), "place 0 holds tile 15"
    assert torch.equal(permute_tiles(moved, order.argsort(dim=1)), x)


def test_patch_shuffle_keeps_the_pixels_and_differs_between_images() -> None:
    x = torch.rand(1, 3, 8, 8).expand(2, -1, -1, -1)
    moved = PatchShuffle()(x, torch.Generator().manual_seed(0))
    assert torch.equal(moved.flatten(2).sort().values, x.flatten(2).sort().values)
    assert not torch.equal(moved[0], moved[1])


def test_sides_that_do_not_divide_are_resized_and_back() -> None:
    assert PatchShuffle()(torch.rand(2, 3, 10, 9), torch.Generator()).shape == (2, 3, 10, 9)


def test_pixel_shuffle_is_shared_by_the_batch() -> None:
    x = torch.rand(1, 3, 8, 8).expand(2, -1, -1, -1)
    moved = PixelShuffle()(x, torch.Generator().manual_seed(0))
    assert torch.equal(moved[0], moved[1])
    assert torch.equal(moved.flatten(2).sort().values, x.flatten(2).sort().values)


def test_occlusion_covers_the_central_half_with_the_mean() -> None:
    x = torch.rand(2, 3, 8, 8)
    covered = CentreOcclusion()(x, torch.Generator())
    assert torch.equal(covered[..., 0, :], x[..., 0, :])
    assert torch.allclose(covered[..., 2:6, 2:6], x.mean(dim=(2, 3), keepdim=True).expand(2, 3, 4, 4))


@pytest.mark.parametrize("shuffle", ["patch", "pixel", "occlusion"])
def test_deyo_runs_with_each(shuffle: str) -> None:
    method = DeYO(shuffle=shuffle, plpd_threshold=-0.5)
    adapted = polytta.adapt(small_model("group"), method, lr=0.01, exclude=None)
    for x in small_stream(3, 4):
        adapted(x)
    assert sum(adapted.totals.stepped) > 0
