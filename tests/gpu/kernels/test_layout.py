import pytest
import torch
from tests.gpu.kernels.where import DEVICE, needs_kernels


@needs_kernels
@pytest.mark.parametrize("shape", [(2, 70, 9, 8), (3, 5, 1, 1), (1, 1, 4, 4), (0, 3, 4, 4)])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_images_are_the_same_in_another_layout(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    from polytta.gpu.kernels.layout import channels_last

    x = torch.randn(shape, device=DEVICE).to(dtype)
    strided = torch.randn(shape[0], shape[1], shape[2], 2 * shape[3], device=DEVICE).to(dtype)[..., ::2]
    for images in (x, x.contiguous(memory_format=torch.channels_last), strided, x[:, :1].expand(shape)):
        got = channels_last(images)
        assert got.is_contiguous(memory_format=torch.channels_last)
        assert torch.equal(got, images)
