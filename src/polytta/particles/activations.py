"""Which ReLU modules can become part of the norm layer before them.

A pair is found by watching a real pass: a ReLU module whose input is the very tensor a norm layer returned, unchanged.
Something else might read that tensor too, before the activation. So the pairs are tried: in a copy each norm layer
activates its own output and the ReLU modules do nothing, and the copy must answer as the network does.
"""

import torch
from torch import Tensor, nn
from torch.func import functional_call

from polytta.particles.sharing import share_structure


@torch.no_grad()
def fusable_activations(network: nn.Module, norms: tuple[str, ...], sample: Tensor) -> dict[str, str]:
    """{norm layer: ReLU module} that may be fused; empty when in doubt."""
    found = _watch(network, norms, sample)
    if not found:
        return {}
    trial = share_structure(network)
    for norm, relu in found.items():
        _put(trial, norm, nn.Sequential(trial.get_submodule(norm), nn.ReLU()))
        _put(trial, relu, nn.Identity())
    # With other norm parameters than the source's: a branch that a scale of zero silences may speak once it adapts.
    shaken = _shaken(network, norms)
    paired = {_in_trial(name, found): value for name, value in shaken.items()}
    try:
        expected, got = functional_call(network, shaken, (sample,)), functional_call(trial, paired, (sample,))
    except Exception:  # a parent may look into its norm layer in a way that a pair does not answer
        return {}
    same = isinstance(got, Tensor) and bool(torch.isclose(got, expected, rtol=1e-4, atol=1e-5, equal_nan=True).all())
    return found if same else {}


def _watch(network: nn.Module, norms: tuple[str, ...], sample: Tensor) -> dict[str, str]:
    made: dict[int, tuple[str, Tensor, int]] = {}
    calls: dict[str, list[str | None]] = {}
    handles = []
    for name in norms:

        def remember(_module: nn.Module, _inputs: object, output: object, name: str = name) -> None:
            if isinstance(output, Tensor):
                # The tensor is held, so that no other gets its id; its version tells whether it was written to since.
                made[id(output)] = (name, output, output._version)

        handles.append(network.get_submodule(name).register_forward_hook(remember))
    for name, module in network.named_modules():
        if type(module) is not nn.ReLU or has_hooks(module):
            continue

        def look(_module: nn.Module, inputs: tuple[object, ...], name: str = name) -> None:
            source = made.get(id(inputs[0])) if inputs else None
            untouched = source is not None and source[1]._version == source[2]
            calls.setdefault(name, []).append(source[0] if source is not None and untouched else None)

        handles.append(module.register_forward_pre_hook(look))
    try:
        network(sample)
    finally:
        for handle in handles:
            handle.remove()
    once = {relu: sources[0] for relu, sources in calls.items() if len(sources) == 1 and sources[0] is not None}
    return {norm: relu for relu, norm in once.items()} if len(set(once.values())) == len(once) else {}


def _put(network: nn.Module, name: str, module: nn.Module) -> None:
    parent, _, child = name.rpartition(".")
    setattr(network.get_submodule(parent), child, module)


def has_hooks(module: nn.Module) -> bool:
    """Whether something happens when a module is called besides its ``forward``."""
    return bool(module._forward_hooks or module._forward_pre_hooks or module._backward_hooks)


def _shaken(network: nn.Module, norms: tuple[str, ...]) -> dict[str, Tensor]:
    """The norm layers' parameters, each a little off."""
    generator = torch.Generator().manual_seed(0)
    return {
        f"{norm}.{kind}": value + 0.5 * torch.randn(value.shape, generator=generator).to(value)
        for norm in norms
        for kind, value in network.get_submodule(norm)._parameters.items()
        if value is not None
    }


def _in_trial(name: str, pairs: dict[str, str]) -> str:
    """A parameter's name where its norm layer is the first of a pair."""
    norm, _, kind = name.rpartition(".")
    return f"{norm}.0.{kind}" if norm in pairs else name
