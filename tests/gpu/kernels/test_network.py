"""A residual network through all kernels at once, against the plain modules."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from tests.gpu.kernels.where import DEVICE, needs_kernels
from torch import Tensor, nn

import polytta
from polytta.gpu import GraphEngine, kernels
from polytta.gpu.pooling import FusedMaxPool
from polytta.gpu.shortcut import Shortcut
from polytta.particles import StaticFoldedEngine

pytestmark = needs_kernels
NORMS: dict[str, Callable[[int], nn.Module]] = {
    "group": lambda channels: nn.GroupNorm(4, channels),
    "batch": nn.BatchNorm2d,
}


class Block(nn.Module):
    """Two convolutions and a shortcut, which is a convolution too where the images become smaller."""

    def __init__(self, channels: int, out: int, stride: int, norm: Callable[[int], nn.Module]) -> None:
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False), norm(out)
        self.conv2, self.norm2 = nn.Conv2d(out, out, 3, 1, 1, bias=False), norm(out)
        shortcut = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), norm(out))
        self.shortcut = shortcut if stride > 1 else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        out = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        out += self.shortcut(x)
        return F.relu(out, inplace=True)


def network(norm: str) -> nn.Module:
    torch.manual_seed(0)
    make = NORMS[norm]
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, 1, 1, bias=False),
        make(8),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
        *(Block(8, 8, 1, make), Block(8, 8, 1, make), Block(8, 12, 2, make), Block(12, 12, 1, make)),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(12, 5),
    )


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("norm", NORMS)
def test_kernels_compute_what_plain_modules_do(norm: str, masked: bool) -> None:
    model = network(norm).to(DEVICE).to(memory_format=torch.channels_last).eval()
    x = torch.randn(2, 3, 3, 16, 16, generator=torch.Generator().manual_seed(1)).to(DEVICE)
    adapted = polytta.adapt(model, "tent", engine="static", lr=0.0, statistics="batch")
    adapted.predict(x[0])
    findings = GraphEngine.examine(adapted.source_network, x[0, :1], adapted.config.layers)
    assert len(findings.before_relu) == 9
    fused, plain = (
        engine(adapted.source_network, adapted.layout, findings, "batch")
        for engine in (GraphEngine, StaticFoldedEngine)
    )
    kinds = [type(module) for module in fused.network.modules()]
    assert (kinds.count(FusedMaxPool), kinds.count(Shortcut)) == (1, 1)
    noise = torch.randn(2, adapted.theta.shape[1], generator=torch.Generator().manual_seed(2)).to(DEVICE)
    theta = (adapted.theta[:1] + 0.1 * noise).requires_grad_()
    where = torch.tensor([[True, True, False], [True, False, True]], device=DEVICE) if masked else None
    images = x.flatten(0, 1).contiguous(memory_format=torch.channels_last).unflatten(0, (2, 3)).requires_grad_()
    results = []
    with torch.backends.cudnn.flags(allow_tf32=False):  # which would round otherwise where values differ a little
        for engine in (fused, plain):
            logits = engine.outputs(theta, images, where)[0]
            seen = logits if where is None else logits[where]
            results.append((seen.detach(), *torch.autograd.grad(seen.square().sum(), (theta, images))))
    for got, expected in zip(*results, strict=True):
        assert torch.allclose(got, expected, rtol=1e-3, atol=1e-4 * float(expected.abs().max()))


class ReadTwice(nn.Module):
    """Norm layers whose output goes into something else besides a ReLU."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.norm1, self.norm2 = nn.Conv2d(3, 8, 3), nn.GroupNorm(4, 8), nn.GroupNorm(4, 8)
        self.pool, self.head = nn.MaxPool2d(3, 1, 1), nn.Linear(8, 5)

    def forward(self, x: Tensor) -> Tensor:
        out = self.norm1(self.conv(x))
        return self.head((F.relu(out) + self.pool(out) + self.norm2(out).tanh()).mean(dim=(2, 3)))


@pytest.mark.parametrize("defers", [False, True])
def test_gradients_of_all_readers_arrive(defers: bool) -> None:
    model = ReadTwice().to(DEVICE).to(memory_format=torch.channels_last).eval()
    x = torch.randn(1, 2, 3, 12, 12, generator=torch.Generator().manual_seed(1)).to(DEVICE)
    adapted = polytta.adapt(model, "tent", engine="static", lr=0.0, statistics="batch")
    adapted.predict(x[0])
    findings = GraphEngine.examine(adapted.source_network, x[0, :1], adapted.config.layers)
    assert not findings.before_relu
    theta = adapted.theta[:1].detach().clone().requires_grad_()
    images = x.flatten(0, 1).contiguous(memory_format=torch.channels_last).unflatten(0, (1, 2)).requires_grad_()
    results = []
    for engine in (GraphEngine, StaticFoldedEngine):
        made = engine(adapted.source_network, adapted.layout, findings, "batch")
        for norm in made.norms if engine is GraphEngine else ():
            norm.defers = defers  # as if the trial had let it
        logits = made.outputs(theta, images)[0]
        results.append((logits.detach(), *torch.autograd.grad(logits.square().sum(), (theta, images))))
    for got, expected in zip(*results, strict=True):
        assert torch.allclose(got, expected, rtol=1e-3, atol=1e-4 * float(expected.abs().max()))


def test_two_branches_of_an_output_come_back_apart() -> None:
    generator = torch.Generator().manual_seed(0)
    x, branch = (
        torch.randn(4, 8, 6, 6, generator=generator).to(DEVICE).contiguous(memory_format=torch.channels_last)
        for _ in range(2)
    )
    weight = torch.randn(2, 8, generator=generator).to(DEVICE)
    gradients = []
    for apart in (True, False):
        leaf = x.detach().requires_grad_()
        out = kernels.channel_norm(leaf, weight, None, groups=2, eps=1e-5, relu=True, skip=branch)
        other = out.second_output[0] if apart else out  # type: ignore[attr-defined]
        assert torch.equal(other, out)
        gradients.append(torch.autograd.grad((3 * out).sum() + (other * other).sum(), leaf)[0])
    assert torch.allclose(*gradients, atol=1e-5)


@pytest.mark.parametrize("shape", [(4, 8, 7, 6), (4, 8, 6, 7), (2, 8, 65, 64)])
@pytest.mark.parametrize("groups", [2, None])
@pytest.mark.parametrize(
    "read", ["out strided_output", "strided_output", "out second_output strided_output", "second_output strided_output"]
)
def test_every_other_pixel_comes_back_apart(shape: tuple[int, ...], groups: int | None, read: str) -> None:
    generator = torch.Generator().manual_seed(0)
    x, branch = (
        torch.randn(shape, generator=generator).to(DEVICE).contiguous(memory_format=torch.channels_last)
        for _ in range(2)
    )
    weight = torch.randn(2, 8, generator=generator).to(DEVICE)
    gradients = []
    for apart in (True, False):
        leaves = [tensor.detach().requires_grad_() for tensor in (x, branch)]
        out = kernels.channel_norm(leaves[0], weight, None, groups=groups, eps=1e-5, relu=True, skip=leaves[1])
        seen = {"out": out, "second_output": out, "strided_output": out[:, :, ::2, ::2]}
        if apart:
            seen |= {"second_output": out.second_output[0], "strided_output": out.strided_output}  # type: ignore[attr-defined]
        loss = sum(power * seen[name].pow(power).sum() for power, name in enumerate(read.split(), 1))
        gradients.append(torch.autograd.grad(loss, leaves))
    for got, expected in zip(*gradients, strict=True):
        assert torch.allclose(got, expected, atol=1e-5 * float(expected.abs().max()))


def test_broken_values_stay_broken() -> None:
    x = torch.randn(2, 8, 3, 3, device=DEVICE)
    x[0, 0, 0, 0] = float("nan")
    x, weight = x.contiguous(memory_format=torch.channels_last), torch.ones(1, 8, device=DEVICE)
    for branch in (None, torch.zeros_like(x)):
        out = kernels.channel_norm(x, weight, None, groups=2, eps=1e-5, relu=True, skip=branch)
        assert torch.equal(out.isnan(), F.relu(F.group_norm(x, 2)).isnan())
