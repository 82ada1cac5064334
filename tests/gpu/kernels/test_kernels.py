"""The fused norm layers against torch's own, one particle at a time, in float64."""

from importlib import import_module

import pytest
import torch
import torch.nn.functional as F
from tests.gpu.kernels.where import DEVICE, ON_GPU, needs_kernels
from torch import Tensor

from polytta.gpu import kernels

pytestmark = needs_kernels
TOLERANCE = {torch.float32: 2e-5, torch.bfloat16: 2e-2}


def close(got: Tensor, wanted: Tensor, dtype: torch.dtype) -> None:
    scale = wanted.abs().max().clamp(min=1e-3)
    assert float(((got.double() - wanted).abs().max() / scale).detach()) <= TOLERANCE[dtype]


def reference(x: Tensor, weight: Tensor, bias: Tensor | None, kind: str, groups: int, mask: Tensor | None) -> Tensor:
    """Particle by particle in float64."""
    parts = []
    for k, rows in enumerate(x.chunk(weight.shape[0])):
        shift = None if bias is None else bias[k]
        if kind == "layer":
            parts.append(F.layer_norm(rows, rows.shape[-1:], weight[k], shift, 1e-5))
        elif kind == "group":
            parts.append(F.group_norm(rows, groups, weight[k], shift, 1e-5))
        else:
            counted = rows if mask is None else rows[mask[k]]
            mean = counted.mean(dim=(0, 2, 3), keepdim=True)
            var = counted.var(dim=(0, 2, 3), keepdim=True, unbiased=False)
            out = (rows - mean) / (var + 1e-5).sqrt() * weight[k].view(1, -1, 1, 1)
            parts.append(out if shift is None else out + shift.view(1, -1, 1, 1))
    return torch.cat(parts)


CASES = {
    "group": ("group", (6, 12, 5, 7), 4),
    "group of six channels": ("group", (4, 48, 8, 8), 8),
    "six groups": ("group", (4, 48, 8, 8), 6),
    "large group": ("group", (4, 8, 48, 48), 2),
    "split group": ("group", (2, 8, 96, 96), 2),
    "instance": ("group", (4, 8, 6, 6), 8),
    "batch": ("batch", (6, 20, 5, 7), 1),
    "split batch": ("batch", (4, 4, 64, 96), 1),
    "masked batch": ("batch", (6, 8, 9, 9), 1),
    "split masked batch": ("batch", (6, 2, 64, 64), 1),
    "masked batch whose images end within tiles": ("batch", (6, 8, 37, 41), 1),
    "tokens": ("layer", (4, 5, 48), 1),
    "wide tokens": ("layer", (2, 3, 768), 1),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16] if ON_GPU else [torch.float32], ids=str)
@pytest.mark.parametrize("follows", ["nothing", "relu", "residual branch and relu"])
@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_forward_and_backward_agree_with_torch(
    name: str, with_bias: bool, follows: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name.startswith("large"):  # as if there were enough of them to leave each to one program
        monkeypatch.setattr(import_module("polytta.gpu.kernels.channel_norm"), "ENOUGH", 1)
    kind, shape, groups = CASES[name]
    if kind == "layer" and follows != "nothing":
        pytest.skip("nothing is fused with LayerNorm")
    generator = torch.Generator().manual_seed(0)
    channels = shape[-1] if kind == "layer" else shape[1]
    particles = 2
    x = (3 * torch.randn(shape, generator=generator, dtype=torch.float64) + 5).to(DEVICE, dtype)
    table = torch.randn(particles, 2 * channels + 3, generator=generator).to(DEVICE)
    mask = torch.tensor([[True, False, True], [True, True, False]], device=DEVICE) if "masked" in name else None
    slope, branch = (torch.randn(shape, generator=generator, dtype=torch.float64).to(DEVICE, dtype) for _ in range(2))
    if kind != "layer":
        x, slope, branch = (t.contiguous(memory_format=torch.channels_last) for t in (x, slope, branch))
    x.requires_grad_()
    branch.requires_grad_()
    weight, bias = (
        table[:, :channels].detach().requires_grad_(),
        table[:, channels : 2 * channels].detach().requires_grad_(),
    )
    shift = bias if with_bias else None
    relu, joined = follows != "nothing", "branch" in follows
    if kind == "layer":
        got = kernels.token_norm(x, weight, shift, 1e-5)
    else:
        grouped = groups if kind == "group" else None
        skip = branch if joined else None
        marks = None if mask is None else kernels.marked(mask, shape[0])
        got = kernels.channel_norm(x, weight, shift, groups=grouped, eps=1e-5, relu=relu, skip=skip, marks=marks)
    exact = [t.detach().double().requires_grad_() for t in (x, weight, bias, branch)]
    wanted = reference(exact[0], exact[1], exact[2] if with_bias else None, kind, groups, mask)
    wanted = wanted + exact[3] if joined else wanted
    if relu:  # on which side of zero something lies that is all but zero, nobody can tell
        slope = torch.where(wanted.abs() > 1e-4, slope, 0.0).contiguous(memory_format=torch.channels_last)
        wanted = wanted.relu()
    assert got.dtype == dtype
    close(got, wanted, dtype)
    used = [number for number, wants in enumerate((True, True, with_bias, joined)) if wants]
    gradients = torch.autograd.grad(got, [(x, weight, bias, branch)[number] for number in used], slope)
    expected = torch.autograd.grad(wanted, [exact[number] for number in used], slope.double())
    for one, two in zip(gradients, expected, strict=True):
        close(one, two, dtype)


@pytest.mark.parametrize("images", [40, 256])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_no_program_holds_more_than_fits_into_shared_memory(dtype: torch.dtype, images: int) -> None:
    """A backward program was seen to ask for four times its tile, and a multiprocessor has 227 KiB."""
    x = torch.empty(images, 16, 32, 32, dtype=dtype).contiguous(memory_format=torch.channels_last)
    plan = import_module("polytta.gpu.kernels.channel_norm")._Plan.of(x, images, 4, forward=False, branch=False)
    sizes = plan.constants
    held = sizes["MB"] * sizes["NG"] * sizes["CP"] * x.element_size()
    assert 4 * held <= 227 * 1024


def test_masks_may_be_expanded_and_a_sample_may_be_several_images() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(8, 6, 5, 5, generator=generator).to(DEVICE).contiguous(memory_format=torch.channels_last)
    weight = torch.randn(2, 6, generator=generator).to(DEVICE)
    expanded = torch.tensor([[True, False, True, True]], device=DEVICE).expand(2, -1)
    for mask, images in ((expanded, expanded), (expanded[:, :2], expanded[:, :2].repeat_interleave(2, dim=1))):
        marks = kernels.marked(mask, 8)
        got = kernels.channel_norm(x, weight, None, groups=None, eps=1e-5, relu=False, marks=marks)
        close(got, reference(x.double(), weight.double(), None, "batch", 1, images), torch.float32)
