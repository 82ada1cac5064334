"""polytta: multi-hypothesis test-time adaptation of image classifiers.

>>> adapted = polytta.adapt(model, method="deyo", particles=3)
>>> log_probs = adapted(x)  # predicts, then adapts
"""

from __future__ import annotations

# Not even typing: see below.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from polytta import aggregate as aggregate
    from polytta import checks as checks
    from polytta import clip as clip
    from polytta import diversity as diversity
    from polytta import errors as errors
    from polytta import methods as methods
    from polytta import models as models
    from polytta import optim as optim
    from polytta import views as views
    from polytta.adapter import Adapted as Adapted
    from polytta.aggregate import register_aggregate as register_aggregate
    from polytta.api import adapt as adapt
    from polytta.api import adapt_with as adapt_with
    from polytta.api import load as load
    from polytta.diversity import register_diversity as register_diversity
    from polytta.methods import register_method as register_method
    from polytta.optim import register_optimizer as register_optimizer
    from polytta.settings import Settings as Settings

__version__ = "0.2.0"

# Nothing at all is imported before somebody reaches for it: importing torch takes seconds, in which a program that has
# not begun yet could not even say that it was stopped.
_HOMES = {
    "Adapted": "adapter",
    "Settings": "settings",
    "adapt": "api",
    "adapt_with": "api",
    "load": "api",
    "register_aggregate": "aggregate",
    "register_diversity": "diversity",
    "register_method": "methods",
    "register_optimizer": "optim",
}
_ROOMS = ("aggregate", "bench", "checks", "clip", "diversity", "errors", "lab", "methods", "models", "optim", "views")


def __getattr__(name: str) -> Any:
    from importlib import import_module
    from importlib.util import find_spec

    if name in _HOMES:
        found = getattr(import_module(f"polytta.{_HOMES[name]}"), name)
        globals()[name] = found
        return found
    if not name.startswith("_") and find_spec(f"polytta.{name}") is not None:
        return import_module(f"polytta.{name}")
    raise AttributeError(f"module 'polytta' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_ROOMS})
