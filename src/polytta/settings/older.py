"""Settings as older versions wrote them."""

import re
from collections.abc import Mapping
from typing import Any

from polytta.roles.registry import NOT_STORED, as_tuples
from polytta.settings.settings import Settings
from polytta.views import LENSES, VIEWS

_SAME = (
    "method",
    "particles",
    "diversity",
    "aggregate",
    "engine",
    "precision",
    "statistics",
    "objective",
    "seed",
    "shared_noise",
    "lr_spread",
    "lr_span",
    "populations",
    "num_classes",
    "batch_size",
)


def settings_of_format_1(stored: Mapping[str, Any]) -> Settings:
    """Settings from the header of a state file in ``polytta-state-1`` (0.1.0.dev0)."""
    return Settings(
        preset="paper",
        **{name: as_tuples(stored[name]) for name in _SAME},
        optimizer=as_tuples(stored["optimizers"]),
        lr=as_tuples(stored["learning_rates"]),
        targets=tuple(f"^{re.escape(name)}$" for name in stored["layers"]),
        exclude=None,
        particles_at_once=stored.get("particles_at_once"),
        views=_known(stored["views"], VIEWS),
        lenses=_known(stored.get("lenses", "none"), LENSES),
    )


def _known(name: str, known: Mapping[str, Any]) -> Any:
    """What was no name was written down as its ``repr``."""
    return name if name in known else {NOT_STORED: name}
