import pytest
import torch
from torch import nn

from polytta.gpu.patches import PatchProjection, SplitsKeepLayout


def test_a_patch_convolution_is_one_matrix_product() -> None:
    torch.manual_seed(0)
    for bias, side in ((True, 12), (False, 14)):
        conv = nn.Conv2d(3, 8, 4, 4, bias=bias).double()
        assert PatchProjection.fits(conv)
        x = torch.randn(2, 3, side, side, dtype=torch.float64, requires_grad=True)
        expected, got = conv(x), PatchProjection(conv)(x)
        assert torch.allclose(got, expected, atol=1e-12)
        slope = torch.randn_like(expected)
        gradients = [torch.autograd.grad(out, x, slope)[0] for out in (got, expected)]
        assert torch.allclose(*gradients, atol=1e-12)


def test_overlapping_padded_and_pointwise_convolutions_are_left_alone() -> None:
    for conv in (
        nn.Conv2d(3, 8, 4, 2),
        nn.Conv2d(3, 8, 4, 4, padding=1),
        nn.Conv2d(3, 8, 1),
        nn.Conv2d(4, 8, 2, 2, groups=2),
    ):
        assert not PatchProjection.fits(conv)


def test_an_image_smaller_than_a_patch_is_an_error_and_hooks_are_kept() -> None:
    conv = nn.Conv2d(3, 8, 4, 4)
    with pytest.raises(RuntimeError, match="Kernel size can't be greater"):
        PatchProjection(conv)(torch.randn(1, 3, 3, 8))
    conv.register_forward_pre_hook(lambda module, inputs: None)
    assert not PatchProjection.fits(conv)


def test_splitting_keeps_the_layout_of_gradients() -> None:
    torch.manual_seed(0)
    base = torch.randn(2, 5, 3 * 4 * 6, dtype=torch.float64, requires_grad=True)
    slopes = torch.randn(3, 2, 4, 5, 6, dtype=torch.float64)

    def split() -> tuple[torch.Tensor, torch.Tensor]:
        joint = base.reshape(2, 5, 3, 4, 6).permute(2, 0, 3, 1, 4)
        q, k, v = joint.unbind(0)
        total = sum((part * slope).sum() for part, slope in zip((q, k, v), slopes, strict=True))
        return torch.autograd.grad(total, [base, joint])

    expected = split()
    with SplitsKeepLayout():
        got = split()
    for one, two in zip(got, expected, strict=True):
        assert torch.equal(one, two)
    assert got[1].permute(1, 3, 0, 2, 4).is_contiguous()
