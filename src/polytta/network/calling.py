"""How a network is called, and which part of what it returns are its logits.

Models of other libraries take their images by keyword (``pixel_values=``) and return records, dictionaries or tuples.
Hooks at the root of our own copy make all of them a function from images to (B, C) logits, so that nothing else has to
know: layers keep their names, and engines, frozen modules and exports call the copy as any other.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from polytta.errors import ConfigError, ModelError

Pick = Callable[[Any], Tensor] | str | int
"""What a user may say of a model's output: a function, a key or name or place in it, or "probabilities"."""
PROBABILITIES = "probabilities"
IMAGES = "pixel_values"
"""What models that take more than images call these."""


def call_plainly(network: nn.Module, keyword: str | None = None, output: Pick | None = None) -> None:
    """Lets a shared copy be called with images and return logits.

    Args:
        network: the copy.
        keyword: what it calls its images, None for what its signature says.
        output: which part of its output are the logits, None for the usual ones.
    """
    if output is not None and not (callable(output) or isinstance(output, str | int)):
        raise ConfigError(
            f"output: got {output!r}; allowed are a function from what the model returns to (B, C) logits, a key, name "
            f"or place in it, and {PROBABILITIES!r}."
        )
    name = keyword_of(network) if keyword is None else keyword
    if name is not None:
        network.register_forward_pre_hook(_ByKeyword(name), with_kwargs=True)
    network.register_forward_hook(_Logits(output))


def keyword_of(network: nn.Module) -> str | None:
    """The keyword a network must be given its images by; None where the first argument will do."""
    try:
        parameters = list(inspect.signature(network.forward).parameters.values())
    except (TypeError, ValueError):
        return None
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL)]
    named = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    if IMAGES in named and positional[:1] != [p for p in parameters if p.name == IMAGES]:
        return IMAGES
    needed = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    return needed[0] if not positional and len(needed) == 1 else None


@dataclass(frozen=True)
class _ByKeyword:
    """Images go in by name."""

    name: str

    def __call__(self, _: nn.Module, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        return args[1:], {self.name: args[0], **named}


@dataclass(frozen=True)
class _Logits:
    """Logits come out."""

    pick: Pick | None

    def __call__(self, _: nn.Module, args: object, output: Any) -> Any:
        if self.pick is None:
            return logits_of(output)
        if self.pick == PROBABILITIES:
            return _logs(logits_of(output))
        return self.pick(output) if callable(self.pick) else _part(output, self.pick)


def _logs(probabilities: Any) -> Tensor:
    if not isinstance(probabilities, Tensor) or not probabilities.is_floating_point():
        raise ModelError(
            f"output: got {PROBABILITIES!r} of {described(probabilities)}; allowed is a model that returns one tensor "
            "(B, C) of them, or a function from what it returns to (B, C) logits."
        )
    return probabilities.clamp(min=torch.finfo(probabilities.dtype).tiny).log()


def logits_of(output: Any) -> Any:
    """The logits in what a model returned: itself, its ``logits``, or the one tensor (B, C) in it."""
    if isinstance(output, Tensor):
        return output
    named = output.get("logits") if isinstance(output, Mapping) else getattr(output, "logits", None)
    if isinstance(named, Tensor):
        return named
    parts = list(output.values()) if isinstance(output, Mapping) else output
    if not isinstance(parts, list | tuple):
        return output
    tables = [one for one in parts if isinstance(one, Tensor) and one.dim() == 2 and one.is_floating_point()]
    # Heads beside the main one are of the same classes, and come after it; features are of another width.
    if tables and (len(tables) == 1 or (isinstance(output, list | tuple) and len({one.shape for one in tables}) == 1)):
        return tables[0]
    return output


def _part(output: Any, key: str | int) -> Any:
    try:
        if isinstance(output, Mapping) or isinstance(key, int):
            return output[key]
        return getattr(output, str(key))
    except (KeyError, IndexError, AttributeError, TypeError) as error:
        raise ModelError(f"output: got {key!r}; allowed is something in {described(output)}.") from error


def described(output: object) -> str:
    """What a model returned, in words."""
    if isinstance(output, Tensor):
        return f"a tensor {tuple(output.shape)} of {output.dtype}"
    if isinstance(output, Mapping):
        return f"{type(output).__name__} of " + ", ".join(f"{key!r} {_shape(one)}" for key, one in output.items())
    if isinstance(output, list | tuple):
        return f"{type(output).__name__} of " + ", ".join(map(_shape, output))
    return type(output).__name__


def _shape(value: object) -> str:
    return str(tuple(value.shape)) if isinstance(value, Tensor) else type(value).__name__
