"""A second module tree over the same weights.

The adapter must replace normalization layers and forget running statistics, and must not touch the user's model.
A deep copy would double the memory of the frozen trunk, so only the module *objects* are copied: every
parameter of the copy is a new ``Parameter`` over the same storage. ``copy.to("cuda")`` then moves the copy and leaves
the original. Buffers are copied: they are small, and a forward pass may write to them.
"""

import copy
from collections.abc import Iterable, Iterator

import torch
from torch import Tensor, nn

from polytta.errors import ModelError


def share_structure(model: nn.Module) -> nn.Module:
    """Copies the module tree of ``model`` in evaluation mode, sharing every parameter; nothing requires a gradient."""
    memo: dict[int, object] = {}
    with torch.inference_mode(False):
        for module in model.modules():
            for parameter in module._parameters.values():
                if parameter is not None and id(parameter) not in memo:
                    memo[id(parameter)] = nn.Parameter(_usable(parameter), requires_grad=False)
            for held in _tensors_in((module._buffers, *vars(module).values())):
                if id(held) not in memo:
                    memo[id(held)] = held.detach().clone()
        try:
            shared: nn.Module = copy.deepcopy(model, memo)
        except Exception as error:
            raise ModelError(
                f"model: got a module tree that cannot be copied ({type(error).__name__}: {error}); "
                "allowed are modules that copy.deepcopy accepts."
            ) from error
    return shared.eval()


@torch.no_grad()
def require_finite(model: nn.Module) -> None:
    """Refuses a model whose weights are broken: its answers would be worthless, and look calm."""
    for name, value in model.state_dict().items():
        if isinstance(value, Tensor) and value.is_floating_point() and not bool(value.isfinite().all()):
            raise ModelError(f"model: got NaN or infinity in {name!r}; allowed are finite weights.")


def version(parameters: Iterable[Tensor]) -> int:
    """Grows whenever somebody writes to one of them in place, as optimizers and ``load_state_dict`` do."""
    return sum(parameter._version for parameter in parameters)


def unwrap(model: nn.Module) -> nn.Module:
    """Looks through wrappers that only change how a module is run (compiled, data parallel)."""
    if isinstance(model, torch.jit.ScriptModule):
        raise ModelError("model: got a TorchScript module, whose layers cannot be replaced; allowed is the nn.Module.")
    inner = getattr(model, "_orig_mod", None)
    if isinstance(inner, nn.Module):
        return unwrap(inner)
    if isinstance(model, nn.DataParallel | nn.parallel.DistributedDataParallel):
        return unwrap(model.module)
    return model


def _tensors_in(held: object) -> Iterator[Tensor]:
    """Tensors a module keeps in its attributes, in dictionaries and lists too: biases it has once looked up, say."""
    if isinstance(held, Tensor):
        # Parameters have been seen to already.
        if not isinstance(held, nn.Parameter):
            yield held
    elif isinstance(held, dict):
        yield from _tensors_in(tuple(held.values()))
    elif isinstance(held, list | tuple):
        for one in held:
            yield from _tensors_in(one)


def _usable(tensor: Tensor) -> Tensor:
    """Tensors born under inference_mode cannot take part in autograd, so those alone are copied."""
    return tensor.detach().clone() if tensor.is_inference() else tensor.detach()
