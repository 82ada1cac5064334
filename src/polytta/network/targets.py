"""Which normalization layers adapt.

The public SAR and DeYO code freezes the top of the network by name (``layer4``, ``blocks.9``-``blocks.11``, ``norm``).
``exclude="auto"`` is that rule, stated so that it means something on any model:

1. a network with stages ``layer1`` ... ``layer4`` freezes ``layer4`` and what comes after it;
2. a network with one stack of like blocks freezes the last quarter of the blocks and every norm layer after the stack;
3. any other network freezes the last quarter of its norm layers, in the order they are registered.

Auxiliary heads (``aux1``, ``AuxLogits``), which only training asks, are frozen as well and do not count.
"""

import re
from collections.abc import Sequence

from torch import nn

from polytta.errors import ConfigError, ModelError
from polytta.network.norms import has_affine, is_norm

Patterns = str | Sequence[str] | None


def norm_layers(network: nn.Module) -> tuple[str, ...]:
    """Names of all normalization layers with a learned scale, in registration order."""
    return tuple(name for name, module in network.named_modules() if is_norm(module) and has_affine(module))


def choose_layers(network: nn.Module, targets: Patterns, exclude: Patterns) -> tuple[str, ...]:
    """Names of the layers to adapt."""
    found = norm_layers(network)
    if not found:
        raise ModelError(
            f"model: got {type(network).__name__} without a normalization layer with a learned scale; "
            "allowed are models with BatchNorm, GroupNorm, LayerNorm, RMSNorm or InstanceNorm(affine=True)."
        )
    chosen = found if targets is None else _matching("targets", targets, found)
    if exclude == "auto":
        frozen = set(reference_exclusion(network, found)) if targets is None else set()
    else:
        frozen = set() if exclude is None else set(_matching("exclude", exclude, found))
    kept = tuple(name for name in chosen if name not in frozen)
    if not kept:
        raise ConfigError(
            f"exclude: got {exclude!r}, which leaves no layer to adapt; allowed are some of {_listing(found)}."
        )
    return kept


def reference_exclusion(network: nn.Module, found: Sequence[str]) -> tuple[str, ...]:
    """Norm layers that ``exclude="auto"`` freezes (see the rule at the top of this file)."""
    beside = tuple(name for name in found if re.search(r"(^|\.)aux", name, re.IGNORECASE))
    if beside:
        return (*beside, *reference_exclusion(network, [name for name in found if name not in beside]))
    staged = [name for name in found if re.search(r"(^|\.)layer4\.", name)]
    if staged:
        return tuple(found[found.index(staged[0]) :])
    stack = _block_stack(network, found)
    if stack:
        first_frozen = stack[len(stack) - len(stack) // 4] if len(stack) >= 4 else None
        last = max(i for i, name in enumerate(found) if name.startswith(stack[-1] + "."))
        in_top = [n for n in found[: last + 1] if first_frozen and _at_or_after(n, stack, first_frozen)]
        return (*in_top, *found[last + 1 :])
    return tuple(found[len(found) - len(found) // 4 :])


def _block_stack(network: nn.Module, found: Sequence[str]) -> list[str]:
    """Child names of the outermost, longest container whose >= 4 children share one class and all hold norm layers."""
    best: list[str] = []
    for name, module in network.named_modules():
        if not isinstance(module, nn.ModuleList | nn.Sequential) or len(module) < 4:
            continue
        children = [f"{name}.{child}" if name else child for child, _ in module.named_children()]
        same_class = len({type(child) for child in module.children()}) == 1
        if same_class and all(any(n.startswith(c + ".") for n in found) for c in children):
            nested = any(name.startswith(block + ".") for block in best)
            if len(children) > len(best) and not nested:
                best = children
    return best


def _at_or_after(name: str, stack: Sequence[str], block: str) -> bool:
    return any(name.startswith(b + ".") for b in stack[stack.index(block) :])


def _matching(argument: str, patterns: str | Sequence[str], found: Sequence[str]) -> tuple[str, ...]:
    """Layers named exactly, else by dotted prefix, else by a regular expression found anywhere in the name."""
    if not isinstance(patterns, str | Sequence) or not patterns:
        raise ConfigError(f"{argument}: got {patterns!r}; allowed are names or regular expressions, or None.")
    matched: set[str] = set()
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        exact = [pattern] if pattern in found else [name for name in found if name.startswith(f"{pattern}.")]
        if exact:
            matched.update(exact)
            continue
        try:
            expression = re.compile(pattern)
        except (re.error, TypeError) as error:
            raise ConfigError(
                f"{argument}: got {pattern!r} ({error}); allowed are names and regular expressions."
            ) from error
        hits = [name for name in found if expression.search(name)]
        if not hits:
            raise ConfigError(
                f"{argument}: got {pattern!r}, which matches no norm layer; allowed are {_listing(found)}."
            )
        matched.update(hits)
    return tuple(name for name in found if name in matched)


def _listing(names: Sequence[str], most: int = 60) -> str:
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
