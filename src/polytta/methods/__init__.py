"""Base methods: one file each. A method decides what a particle learns from; nothing here knows how it is run."""

from typing import Any

from polytta.errors import ConfigError
from polytta.methods.base import Method as Method
from polytta.methods.base import require_methods_of_today
from polytta.methods.clipartt import CLIPArTT as CLIPArTT
from polytta.methods.deyo import DeYO as DeYO
from polytta.methods.difftpt import DiffTPT as DiffTPT
from polytta.methods.eata import EATA as EATA
from polytta.methods.fisher import estimate_fisher as estimate_fisher
from polytta.methods.memo import MEMO as MEMO
from polytta.methods.norm import Norm as Norm
from polytta.methods.rdumb import RDumb as RDumb
from polytta.methods.roid import ROID as ROID
from polytta.methods.sar import SAR as SAR
from polytta.methods.source import Source as Source
from polytta.methods.tda import TDA as TDA
from polytta.methods.tent import Tent as Tent
from polytta.methods.tpt import TPT as TPT
from polytta.methods.watt import WATTP as WATTP
from polytta.methods.watt import WATTS as WATTS
from polytta.roles import Context as Context
from polytta.roles import Lesson as Lesson
from polytta.roles import Pass as Pass
from polytta.roles import Selection as Selection
from polytta.roles import Sight as Sight
from polytta.roles import Start as Start
from polytta.roles import State as State
from polytta.roles import Term as Term
from polytta.roles import entropy as entropy
from polytta.roles import masked_mean as masked_mean
from polytta.roles.registry import Registry

METHODS = Registry(
    "method",
    Method,
    (Source, Norm, Tent, EATA, SAR, DeYO, MEMO, ROID, RDumb, WATTS, WATTP, CLIPArTT, TPT, DiffTPT, TDA),
)
register_method = METHODS.register

PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    # The thresholds the multi-hypothesis paper prints; its SAR counts match the copy in DeYO's code.
    "paper": {
        "deyo": {"entropy_threshold": 0.4, "plpd_threshold": 0.3},
        "sar": {"reset_below": 0.005, "second_pass": "selected"},
    },
    # Each method's own public code.
    "official": {},
}


def resolve_method(method: object, preset: str = "official") -> Method:
    """A method object; a preset's thresholds go to methods given by name."""
    if not isinstance(preset, str) or preset not in PRESETS:
        raise ConfigError(f"preset: got {preset!r}; allowed are {sorted(PRESETS)}.")
    resolved = METHODS.make(method, PRESETS[preset])
    require_methods_of_today(resolved)
    return resolved
