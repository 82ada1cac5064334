"""A norm layer that defers must not be told from one that does not."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from polytta.gpu.deferred import DeferredOutput, deferrable_norms, materialized, second_output_of

SHAPE = (2, 3, 4, 4)


class Counting:
    """Computes twice its input, then what follows, and notes what it was asked for."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.x = torch.randn(SHAPE, requires_grad=True)
        self.asked: list[tuple[bool, bool]] = []

    def deferred(self) -> DeferredOutput:
        return DeferredOutput(self.x, self._compute)

    def _compute(self, branch: Tensor | None, relu: bool) -> Tensor:
        self.asked.append((branch is not None, relu))
        out = 2 * self.x if branch is None else 2 * self.x + branch
        return out.relu() if relu else out


def _in_place(out: Tensor, skip: Tensor) -> Tensor:
    out += skip
    return F.relu(out, inplace=True)


FUSED: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], bool]] = {
    "relu": (lambda out, skip: F.relu(out), False),
    "module": (lambda out, skip: nn.ReLU()(out), False),
    "module in place": (lambda out, skip: nn.ReLU(inplace=True)(out), False),
    "method": (lambda out, skip: out.relu(), False),
    "method in place": (lambda out, skip: out.relu_(), False),
    "identity and relu": (lambda out, skip: torch.relu(nn.Identity()(out)), False),
    "sum and relu": (lambda out, skip: F.relu(out + skip), True),
    "sum the other way round": (lambda out, skip: F.relu(skip + out), True),
    "sum in place": (_in_place, True),
    "torch.add": (lambda out, skip: torch.add(out, skip).relu(), True),
}
OTHERS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "read as it is": lambda out, skip: out * 3,
    "two readers": lambda out, skip: F.relu(out) + out,
    "two branches": lambda out, skip: F.relu(out + skip + 2 * skip),
    "itself": lambda out, skip: F.relu(out + out),
    "a sum with a factor": lambda out, skip: F.relu(torch.add(out, skip, alpha=2)),
    "a number": lambda out, skip: F.relu(out + 1),
    "a smaller branch": lambda out, skip: F.relu(out + skip[:, :1]),
    "a sum without a relu": lambda out, skip: (out + skip).tanh(),
    "in place after reading": lambda out, skip: out.sum() + _in_place(out, skip),
    "in place, then read again": lambda out, skip: _in_place(out, skip) * 2 + out,
    "into a list": lambda out, skip: torch.cat([out, skip]),
    "indexed": lambda out, skip: out[:, 1:],
    "added to in place": lambda out, skip: (skip * 1).add_(out).relu(),
}


@pytest.mark.parametrize("name", [*FUSED, *OTHERS])
def test_whoever_reads_it_finds_what_torch_would_have_put_there(name: str) -> None:
    layer = Counting()
    follow = FUSED[name][0] if name in FUSED else OTHERS[name]
    skip = torch.randn(SHAPE, requires_grad=True)
    expected = follow(2 * layer.x, skip)
    got = materialized(follow(layer.deferred(), skip))
    assert type(got) is Tensor
    assert torch.equal(got, expected)
    slope = torch.randn_like(expected)
    for one, two in zip(
        *(torch.autograd.grad(out, (layer.x, skip), slope, allow_unused=True) for out in (got, expected)), strict=True
    ):
        assert (one is None) == (two is None)
        assert one is None or torch.allclose(one, two)
    if name in FUSED:
        assert layer.asked == [(FUSED[name][1], True)]


def test_a_branch_that_is_pending_too_is_computed_first() -> None:
    one, two = Counting(), Counting()
    got = F.relu(one.deferred() + two.deferred())
    assert torch.equal(got, (2 * one.x + 2 * two.x).relu())
    assert (one.asked, two.asked) == ([(True, True)], [(False, False)])


def test_its_shape_can_be_asked_without_computing() -> None:
    layer = Counting()
    deferred = layer.deferred()
    assert (deferred.shape, deferred.dtype, deferred.dim(), deferred.size(1)) == (SHAPE, torch.float32, 4, 3)
    assert "computed=False" in repr(deferred)
    assert layer.asked == []


def test_an_input_changed_meanwhile_is_an_error() -> None:
    layer = Counting()
    deferred = layer.deferred()
    with torch.no_grad():
        layer.x.add_(1)
    with pytest.raises(RuntimeError, match="was changed"):
        deferred.relu()


class Net(nn.Module):
    """A residual block, what follows its norm layers being up to the test."""

    def __init__(self, follow: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.norm1, self.relu = nn.Conv2d(3, 4, 3), nn.GroupNorm(2, 4), nn.ReLU()
        self.norm2 = nn.GroupNorm(2, 4)
        self.follow = follow

    def forward(self, x: Tensor) -> Tensor:
        out = self.relu(self.norm1(self.conv(x)))
        return self.follow(self.norm2(out), out).mean(dim=(2, 3))


class Unseen(torch.autograd.Function):
    """Takes a tensor past torch's functions."""

    @staticmethod
    def forward(ctx: object, x: Tensor) -> Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: object, slope: Tensor) -> Tensor:
        return slope * 2


def test_layers_before_a_relu_are_found() -> None:
    x = torch.randn(3, 3, 8, 8)
    names = ("norm1", "norm2")
    for name, (follow, _) in FUSED.items():
        assert deferrable_norms(Net(follow), names, x) == {"norm1", "norm2"}, name
    assert deferrable_norms(Net(lambda out, skip: F.gelu(out)), names, x) == {"norm1"}


def test_a_relu_with_a_hook_keeps_it() -> None:
    net = Net(lambda out, skip: net.relu(out))
    net.relu.register_forward_hook(lambda module, inputs, output: output.clamp(max=0.1))
    assert deferrable_norms(net, ("norm1", "norm2"), torch.randn(3, 3, 8, 8)) == {"norm1", "norm2"}


def test_a_tensor_taken_past_torch_is_not_waited_for() -> None:
    x = torch.randn(3, 3, 8, 8)
    for net in (
        Net(lambda out, skip: F.relu(out) + Unseen.apply(out)),
        Net(lambda out, skip: F.relu(out, inplace=True) + 1e-4 * Unseen.apply(out)),
    ):
        assert deferrable_norms(net, ("norm1", "norm2"), x) == frozenset()
        assert not any(module._forward_hooks for module in net.modules())


def test_a_layer_that_is_read_twice_does_not_wait() -> None:
    net = Net(lambda out, skip: F.relu(out) + out.sigmoid())
    assert deferrable_norms(net, ("norm1", "norm2"), torch.randn(3, 3, 8, 8)) == {"norm1"}


def test_what_was_computed_without_gradients_has_none_later() -> None:
    layer = Counting()
    with torch.no_grad():
        deferred = layer.deferred()
    assert not deferred.relu().requires_grad
    deferred = layer.deferred()
    with torch.no_grad(), pytest.raises(RuntimeError, match="where autograd does not look"):
        deferred.relu()


def test_a_second_output_is_taken_only_of_a_tensor_that_is_as_it_was() -> None:
    source = torch.randn(SHAPE, requires_grad=True)

    def made() -> tuple[Tensor, Tensor]:
        x = source * 1
        second = x.data.requires_grad_()
        x.second_output = (second, x._version)  # type: ignore[attr-defined]
        return x, second

    x, second = made()
    assert second_output_of(x) is second
    assert second_output_of(source) is source
    x.mul_(2)
    assert second_output_of(x) is x
    x, _ = made()
    x.data = x.data * 2
    assert second_output_of(x) is x
    x, _ = made()
    x.register_hook(lambda slope: 3 * slope)
    assert second_output_of(x) is x
    x, _ = made()
    x.retain_grad()
    assert second_output_of(x) is x


def test_layers_wait_without_gradients_and_in_inference_mode_too() -> None:
    layer = Counting()
    expected = (2 * layer.x + layer.x).relu().detach()
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            branch = layer.x * 1
            assert torch.equal(F.relu(layer.deferred() + branch), expected)
    assert layer.asked == [(True, True)] * 2


def test_a_model_without_gradients_is_left_alone() -> None:
    net = Net(lambda out, skip: F.relu(out).detach())
    assert deferrable_norms(net, ("norm1", "norm2"), torch.randn(3, 3, 8, 8)) == frozenset()
