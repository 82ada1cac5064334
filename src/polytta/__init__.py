"""polytta: multi-hypothesis test-time adaptation of image classifiers.

>>> adapted = polytta.adapt(model, method="deyo", particles=3)
>>> log_probs = adapted(x)  # predicts, then adapts
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from polytta import aggregate as aggregate
from polytta import diversity as diversity
from polytta import errors as errors
from polytta import methods as methods
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

if TYPE_CHECKING:
    from polytta import checks as checks
    from polytta import clip as clip
    from polytta import models as models

__version__ = "0.2.0"

# Reachable after `import polytta`, and not imported before somebody reaches for them.
_LAZY = {name: f"polytta.{name}" for name in ("bench", "checks", "clip", "lab", "models")}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return import_module(_LAZY[name])
    raise AttributeError(f"module 'polytta' has no attribute {name!r}")
