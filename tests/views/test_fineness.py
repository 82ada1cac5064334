"""How fine the detail of an image is: a constant for noise, blind to contrast, lower for blur, higher for noise."""

from math import log

import pytest
import torch
from torch import Tensor

from polytta.checks.networks import small_stream
from polytta.views import fineness, softer


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def smooth(side: int = 64) -> Tensor:
    """(4, 3, H, W) slow waves."""
    place = torch.linspace(0, 6.0, side)
    waves = [
        torch.sin(a * place).unsqueeze(0) + torch.cos(b * place).unsqueeze(1)
        for a, b in ((1, 2), (2, 1), (3, 2), (1, 1))
    ]
    return torch.stack(waves).unsqueeze(1).expand(-1, 3, -1, -1).contiguous()


def test_white_noise_has_ln_5() -> None:
    assert fineness(noise(4, 3, 256, 256)).tolist() == pytest.approx([log(5)] * 4, abs=0.02)
    assert fineness(noise(2, 1, 256, 256).exp()).tolist() == pytest.approx([log(5)] * 2, abs=0.1)


def test_by_hand_on_a_small_image() -> None:
    image = noise(1, 2, 5, 4).double()
    second, first = [], []
    for c in range(2):
        for i in range(1, 4):
            for j in range(1, 3):
                here, left, above = image[0, c, i, j], image[0, c, i, j - 1], image[0, c, i - 1, j]
                second.append((4 * here - left - above - image[0, c, i, j + 1] - image[0, c, i + 1, j]) ** 2)
                first.append((here - left) ** 2 + (here - above) ** 2)
    expected = torch.stack(second).mean().log() - torch.stack(first).mean().log()
    assert float(fineness(image)) == pytest.approx(float(expected), abs=1e-4)


def test_contrast_and_brightness_do_not_count() -> None:
    images = torch.cat([smooth() + 0.05 * noise(4, 3, 64, 64), noise(4, 3, 64, 64)])
    known = fineness(images)
    for changed in (5 * images, images / 4, images + 3, 2 - images):
        assert torch.allclose(fineness(changed), known, atol=0.02)
    assert torch.allclose(fineness(images.flip(0)), known.flip(0)), "an image is judged by itself"
    assert float(fineness(smooth()).max()) < 0 < float(known[4:].min())


def test_blur_lowers_and_noise_raises() -> None:
    for images in (
        torch.stack(small_stream(2, 4)).flatten(0, 1).float(),
        noise(4, 3, 32, 32),
        smooth() + 0.2 * noise(4, 3, 64, 64),
    ):
        known, blurred = fineness(images), images
        for _ in range(3):
            before, blurred = fineness(blurred), softer(blurred)
            assert bool((fineness(blurred) < before).all())
        assert bool((known - fineness(blurred) > 0.5).all())
    waves, before = smooth(), fineness(smooth())
    for strength in (0.05, 0.2, 0.8):
        now = fineness(waves + strength * noise(*waves.shape))
        assert bool((now > before).all())
        before = now


def test_what_is_no_image_has_none() -> None:
    for x in (noise(4, 7), noise(4, 7, 9), noise(4, 3, 2, 9), noise(4, 3, 9, 2), noise(4, 2, 3, 3, 3)):
        found = fineness(x)
        assert found.tolist() == [0.0] * 4
        assert found.dtype == torch.float32


def test_a_flat_image_and_the_smallest_one_do_no_harm() -> None:
    assert bool(fineness(torch.full((2, 3, 8, 8), 0.5)).isfinite().all())
    assert bool(fineness(noise(2, 3, 3, 3)).isfinite().all())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_in_any_precision(dtype: torch.dtype) -> None:
    images = torch.cat([noise(4, 3, 64, 64), smooth() + 0.2 * noise(4, 3, 64, 64)])
    found = fineness(images.to(dtype))
    assert found.dtype == torch.float32
    assert torch.allclose(found, fineness(images), atol=0.02)
    # Squares of these are beyond half precision.
    assert bool(fineness(300 * images.to(dtype)).isfinite().all())


def test_it_takes_no_part_in_gradients() -> None:
    assert not fineness(noise(1, 3, 8, 8).requires_grad_()).requires_grad
