"""Modules that take the place of others in an engine's own copy of the network."""

from typing import Any

from torch import nn


class Replacement(nn.Module):
    """Takes a module's place; what it does not have itself, it has from there (parents ask for ``weight.dtype``).

    Args:
        inner: the module replaced.
    """

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def __getattr__(self, key: str) -> Any:
        try:
            return super().__getattr__(key)
        except AttributeError:
            return getattr(super().__getattr__("inner"), key)


def replace_everywhere(network: nn.Module, layer: nn.Module, replacement: nn.Module) -> None:
    """A layer may hang in several places of the tree."""
    for parent in list(network.modules()):
        if parent is replacement:
            continue
        for child, module in parent._modules.items():
            if module is layer:
                parent._modules[child] = replacement


def is_altered(module: nn.Module) -> bool:
    """Whether something else happens when a module is called than its class says."""
    hooks = (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks, module._backward_pre_hooks)
    return any(hooks) or "forward" in vars(module)
