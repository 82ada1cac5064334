"""Base methods: one file each. A method decides what a particle learns from; nothing here knows how it is run."""

from typing import Any

from polytta.errors import ConfigError
from polytta.methods.base import Method as Method
from polytta.methods.base import Pass as Pass
from polytta.methods.base import Proposal as Proposal
from polytta.methods.base import Selection as Selection
from polytta.methods.deyo import DeYO as DeYO
from polytta.methods.eata import EATA as EATA
from polytta.methods.fisher import estimate_fisher as estimate_fisher
from polytta.methods.norm import Norm as Norm
from polytta.methods.sar import SAR as SAR
from polytta.methods.source import Source as Source
from polytta.methods.tent import Tent as Tent

METHODS: dict[str, type[Method]] = {method.name: method for method in (Source, Norm, Tent, EATA, SAR, DeYO)}

PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    # The thresholds the multi-hypothesis paper prints; its SAR counts match the copy in DeYO's code.
    "paper": {
        "deyo": {"entropy_threshold": 0.4, "plpd_threshold": 0.3},
        "sar": {"reset_below": 0.005, "second_pass": "selected"},
    },
    # Each method's own public code.
    "official": {},
}


def resolve_method(method: str | Method, preset: str) -> Method:
    """A method object from a name and a preset; an object is taken as it is."""
    if preset not in PRESETS:
        raise ConfigError(f"preset: got {preset!r}; allowed are {sorted(PRESETS)}.")
    if isinstance(method, str):
        if method not in METHODS:
            raise ConfigError(f"method: got {method!r}; allowed are {sorted(METHODS)} or a polytta.methods.Method.")
        resolved: Method = METHODS[method](**PRESETS[preset].get(method, {}))
    elif isinstance(method, Method):
        resolved = method
    else:
        raise ConfigError(f"method: got {type(method).__name__}; allowed are {sorted(METHODS)} or a Method object.")
    resolved.validate()
    return resolved
