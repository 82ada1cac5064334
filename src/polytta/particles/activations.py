"""Which ReLU modules can become part of the norm layer before them.

A pair is found by watching a real pass: a ReLU module whose every input is the very tensor a norm layer just returned.
Something else might read that tensor too, before the activation. So the pairs are tried: in a copy each norm layer
activates its own output and the ReLU modules do nothing, and the copy must answer as the network does.
"""

import torch
from torch import Tensor, nn

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
    try:
        expected, got = network(sample), trial(sample)
    except Exception:  # a parent may look into its norm layer in a way that a pair does not answer
        return {}
    same = isinstance(got, Tensor) and bool(torch.isclose(got, expected, rtol=1e-4, atol=1e-5, equal_nan=True).all())
    return found if same else {}


def _watch(network: nn.Module, norms: tuple[str, ...], sample: Tensor) -> dict[str, str]:
    made: dict[int, tuple[str, Tensor]] = {}
    calls: dict[str, list[str | None]] = {}
    handles = []
    for name in norms:

        def remember(_module: nn.Module, _inputs: object, output: object, name: str = name) -> None:
            if isinstance(output, Tensor):
                made[id(output)] = (name, output)  # held, so that no other tensor gets its id

        handles.append(network.get_submodule(name).register_forward_hook(remember))
    for name, module in network.named_modules():
        if type(module) is not nn.ReLU:
            continue

        def look(_module: nn.Module, inputs: tuple[object, ...], name: str = name) -> None:
            source = made.get(id(inputs[0])) if inputs else None
            calls.setdefault(name, []).append(None if source is None else source[0])

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
