"""Norm layers that wait for what follows them, so that all of it is computed together.

Most norm layers are followed by a ReLU, or in a residual network by the sum with another branch and then a ReLU; one
kernel can do all three. So a layer returns a ``DeferredOutput`` tensor, which has not been computed.
Adding to it makes it remember the other branch, a ReLU computes everything, and any other use computes what has been
asked for so far: whoever reads the tensor finds what torch would have put there.

Code that bypasses torch's functions could not be answered so; our own replacements ask for the values first
(``materialized``). Outputs are deferred only where a trial pass has shown, outputs and gradients compared, that a ReLU
is all that comes.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call
from torch.utils._pytree import tree_map
from torch.utils.hooks import RemovableHandle

Compute = Callable[[Tensor | None, bool], Tensor]
"""From a branch to be added, or None, and whether a ReLU follows, to the values."""

_METADATA = {
    *(getattr(Tensor, name).__get__ for name in ("shape", "dtype", "device", "ndim", "is_cuda")),
    *(Tensor.size, Tensor.dim, Tensor.ndimension, Tensor.numel, Tensor.is_floating_point),
}
_ADD = {torch.add, Tensor.add, Tensor.__add__, Tensor.__radd__}
_ADD_IN_PLACE = {Tensor.add_, Tensor.__iadd__}
_RELU = {F.relu, torch.relu, Tensor.relu}
_RELU_IN_PLACE = {torch.relu_, Tensor.relu_, F.relu_}


class DeferredOutput(Tensor):
    """A norm layer's output before anybody has read it.

    Args:
        x: the layer's input; the output has its shape, type and layout.
        compute: gives the values.
    """

    _compute: Compute
    _inputs: tuple[tuple[Tensor, int | None], ...]
    _branch: Tensor | None
    _value: Tensor | None
    _learns: bool

    @staticmethod
    def __new__(cls, x: Tensor, compute: Compute, branch: Tensor | None = None) -> "DeferredOutput":
        """A tensor without memory."""
        output: DeferredOutput = Tensor._make_wrapper_subclass(
            cls, x.shape, strides=x.stride(), dtype=x.dtype, device=x.device
        )
        output._compute = compute
        output._inputs = ((x, _version(x)),)
        output._branch = None
        output._value = None
        output._learns = torch.is_grad_enabled()
        if branch is not None:
            output._join(branch)
        return output

    def __repr__(self, **_options: object) -> str:  # type: ignore[override]
        """Without computing."""
        return f"DeferredOutput(shape={tuple(self.shape)}, computed={self._value is not None})"

    def _join(self, branch: Tensor) -> None:
        self._branch = second_output_of(branch)
        self._inputs = (*self._inputs, (branch, _version(branch)))

    def materialize(self, *, relu: bool = False) -> Tensor:
        """The values; with ``relu`` those of the ReLU that follows."""
        # Inside somebody's own autograd function, which takes this tensor for one that has no history.
        if self._learns and not torch.is_grad_enabled():
            raise RuntimeError("the output of a norm layer is read where autograd does not look")
        if self._value is not None:
            return F.relu(self._value) if relu else self._value
        if any(_version(x) != version for x, version in self._inputs):
            raise RuntimeError("the input of a norm layer was changed before its output was computed")
        with torch.set_grad_enabled(self._learns):
            value = self._compute(self._branch, relu)
        if not relu:
            self._value = value
        return value

    def _takes(self, other: object) -> bool:
        return (
            isinstance(other, Tensor)
            and self._value is None
            and self._branch is None
            and (other.shape, other.dtype, other.device) == (self.shape, self.dtype, self.device)
        )

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Sequence[type], args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Goes on deferred, or computes."""
        named: Mapping[str, Any] = kwargs or {}
        if func in _METADATA:
            with torch._C.DisableTorchFunctionSubclass():
                return func(*args, **named)
        if len(args) == 2 and not named and args[0] is not args[1]:
            one, other = args
            if func in _ADD_IN_PLACE and isinstance(one, DeferredOutput) and one._takes(other):
                one._join(materialized(other))
                return one
            if func in _ADD and not (isinstance(one, DeferredOutput) and one._takes(other)):
                one, other = other, one
            if func in _ADD and isinstance(one, DeferredOutput) and one._takes(other):
                return DeferredOutput(one._inputs[0][0], one._compute, materialized(other))
        if args and isinstance(args[0], DeferredOutput) and func in _RELU | _RELU_IN_PLACE:
            value = args[0].materialize(relu=True)
            if func in _RELU_IN_PLACE or (func is F.relu and (True in args[1:] or named.get("inplace"))):
                args[0]._value = value
            return value
        return func(*tree_map(materialized, tuple(args)), **tree_map(materialized, dict(named)))

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Callable[..., Any], types: Sequence[type], args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Where nobody can be answered any more."""
        raise RuntimeError(f"{func} reads the output of a norm layer that has not been computed")


def materialized(value: Any) -> Any:
    """A tensor's values where they are deferred, anything else as it is."""
    return value.materialize() if isinstance(value, DeferredOutput) else value


def second_output_of(x: Tensor) -> Tensor:
    """The same values, apart for autograd, if a kernel has left them with a tensor that nobody has written to since."""
    second, version = getattr(x, "second_output", (x, None))
    same = version == _version(x) and second.data_ptr() == x.data_ptr()
    watched = bool(x._backward_hooks) or x.retains_grad  # by somebody who wants to see all that comes back
    return second if same and not watched else x


def strided_output_of(x: Tensor) -> Tensor | None:
    """Every other pixel of the second output in both directions, if there is one."""
    strided: Tensor | None = getattr(x, "strided_output", None)
    return None if second_output_of(x) is x else strided


def deferrable_norms(network: nn.Module, norms: tuple[str, ...], sample: Tensor) -> frozenset[str]:
    """Names of the norm layers whose output goes into one ReLU, whether or not another branch joins it before.

    Args:
        network: the source network in evaluation mode.
        norms: the layers to look at.
        sample: a batch of images.
    """
    # With other norm parameters than the source's: a branch that a scale of zero silences may speak once it adapts.
    parameters = _shaken(network, norms)
    calls: dict[str, list[list[bool]]] = {name: [] for name in norms}
    try:
        expected = _output_and_slope(network, parameters, sample)
        with _deferring(network, calls):
            got = _output_and_slope(network, parameters, sample)
    except Exception:  # whatever a model may do with a tensor that has no memory, or that wants a gradient
        return frozenset()
    same = all(bool((a - b).norm() <= 0.01 * b.norm()) for a, b in zip(got, expected, strict=True))
    once = [name for name, runs in calls.items() if runs and all(computed == [True] for computed in runs)]
    return frozenset(once) if same else frozenset()


@contextmanager
def _deferring(network: nn.Module, calls: dict[str, list[list[bool]]]) -> Iterator[None]:
    """Makes norm layers wait, and notes for each call how often it was computed, and whether with a ReLU."""

    def hook(name: str) -> RemovableHandle:
        def wait(_module: nn.Module, _inputs: object, output: object) -> object:
            if not isinstance(output, Tensor):
                return output
            computed: list[bool] = []
            calls[name].append(computed)

            def compute(branch: Tensor | None, relu: bool) -> Tensor:
                computed.append(relu)
                joined = output if branch is None else output + branch
                return joined.relu() if relu else joined

            # Already computed, so that it is the output that nobody must change.
            return DeferredOutput(output, compute)

        return network.get_submodule(name).register_forward_hook(wait)

    handles = [hook(name) for name in calls]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _output_and_slope(network: nn.Module, parameters: dict[str, Tensor], sample: Tensor) -> tuple[Tensor, Tensor]:
    with torch.enable_grad():
        x = sample.detach().clone().requires_grad_()
        output = materialized(functional_call(network, parameters, (x,)))
        return output.detach(), torch.autograd.grad(output.float().log_softmax(dim=1).square().sum(), x)[0]


def _shaken(network: nn.Module, norms: tuple[str, ...]) -> dict[str, Tensor]:
    """The norm layers' parameters, each a little off."""
    generator = torch.Generator().manual_seed(0)
    return {
        f"{norm}.{kind}": (value + 0.5 * torch.randn(value.shape, generator=generator).to(value)).detach()
        for norm in norms
        for kind, value in network.get_submodule(norm)._parameters.items()
        if value is not None
    }


def _version(x: Tensor) -> int | None:
    """Counts the writes to a tensor."""
    return None if x.is_inference() else x._version
