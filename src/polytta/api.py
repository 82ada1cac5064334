"""``polytta.adapt`` and ``polytta.load``: from plain arguments to an adapter."""

from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from torch import nn

from polytta import persist
from polytta.adapter import Adapted
from polytta.engine.intake import Make
from polytta.errors import ConfigError, StateError
from polytta.methods import Method
from polytta.network.calling import Pick
from polytta.network.copies import unwrap
from polytta.settings import Settings, resolve
from polytta.settings.settings import takes_settings


@takes_settings
def adapt(
    model: nn.Module,
    method: str | Mapping[str, Any] | Method | None = None,
    *,
    input: Make | str | None = None,
    output: Pick | None = None,
    **settings: Any,
) -> Adapted:
    """Wraps an image classifier so that it adapts to the stream it predicts on.

    ``adapt(model)`` is the population that we recommend. Whoever names a method or says something of the population
    composes it by hand, and the paper's settings fill in the rest.

    Args:
        model: any ``nn.Module`` from (B, ...) images to (B, C) logits, on any device; it is never changed. It may take
            its images as ``pixel_values=`` and return a record, dictionary, list or tuple with ``logits``, or with one
            (B, C) tensor, or with several heads of which the first is the main one.
        input: for other inputs, a function from what ``adapted(...)`` will be given to images as the model wants them
            (or to a mapping that holds them), or the keyword that the model takes them by.
        output: for other outputs, a function from what the model returns to (B, C) logits, a key, name or place in it,
            or "probabilities" for a model that ends with a softmax.
        settings: every option of them.

    Returns:
        An ``Adapted`` module: ``log_probs = adapted(x)`` predicts, then adapts.
    """
    return adapt_with(Settings.of({"method": method, **settings}), model, input, output)


def adapt_with(
    settings: Settings, model: nn.Module, input: Make | str | None = None, output: Pick | None = None
) -> Adapted:
    """``adapt`` with all options in one object."""
    if not isinstance(model, nn.Module):
        raise ConfigError(f"model: got {type(model).__name__}; allowed is a torch.nn.Module.")
    model = unwrap(model)
    return Adapted(model, resolve(settings, model), input, output)


def load(
    path: str | PathLike[str],
    model: nn.Module,
    *,
    input: Make | str | None = None,
    output: Pick | None = None,
    **changes: Any,
) -> Adapted:
    """Brings back an adapter from ``Adapted.save``.

    Args:
        path: the state file.
        model: the same source model.
        input: as in ``adapt``, which a file does not hold.
        output: as in ``adapt``, which a file does not hold.
        changes: options of ``adapt`` that a file cannot hold (a method with a callable or with Fisher information), or
            that may differ on this machine (``engine``).
    """
    if not isinstance(path, str | PathLike):
        raise StateError(f"path: got {type(path).__name__}; allowed is the path of a file written by Adapted.save.")
    stored = persist.read(Path(path))
    Settings.of(changes, "load")
    persist.check_parts(stored.settings, Path(path), changes)
    adapted = adapt_with(replace(stored.settings, **changes), model, input, output)
    persist.check_source(adapted, stored, Path(path))
    persist.resume(adapted, stored, keep_rates=not {"lr", "pace"} & changes.keys())
    return adapted
