"""What options mean that nobody gave: the population we recommend, and the paper's."""

from dataclasses import fields, replace
from typing import Any

from torch import Tensor, nn

from polytta.errors import ConfigError
from polytta.network.norms import is_batch_norm
from polytta.settings.settings import Settings
from polytta.views import resolve_lenses

RECOMMENDED = "recommended"
COMPOSING = ("method", "particles", "axes", "diversity", "optimizer", "lr", "pace", "views", "lenses", "aggregate",
             "statistics", "objective", "shared_noise", "lr_spread", "lr_span", "prompts")  # fmt: skip
"""Options that say something of the population; whoever gives one of them composes it by hand."""

HOT = 0.1
"""A pace at which models learn much, and single ones often collapse."""
# Answers stay comparable, and single images are collected, since it learns nothing from one.
_ROID = {"name": "roid", "use_prior_correction": False, "window": 16}
SIZES: dict[str, dict[str, Any]] = {
    "small": {"lenses": "sight", "pace": 0.0},
    "medium": {"lenses": "sight", "pace": (0.0, HOT)},
    "large": {"lenses": "sight", "pace": (0.0, HOT), "method": ("deyo", _ROID)},
}
"""Particles: 5, 10, 15; twice as many with BatchNorm. The small one looks and never learns."""


def completed(settings: Settings, model: nn.Module) -> Settings:
    """All options that say what the population is, from those given and a preset."""
    defaults = {f.name: f.default for f in fields(Settings)}
    given = {name for name in COMPOSING if getattr(settings, name) is not defaults[name]
             and getattr(settings, name) != defaults[name]}  # fmt: skip
    preset = settings.preset or ("paper" if given else RECOMMENDED)
    if settings.prompts == "own" and settings.particles is None and settings.axes == "zip":
        settings = replace(settings, particles=templates_of(model))
    if preset != RECOMMENDED:
        if settings.size is not None:
            raise ConfigError(f"size: got {settings.size!r} with preset {preset!r}; allowed is preset 'recommended'.")
        return _plain(replace(settings, preset=preset))
    size = settings.size or "medium"
    if not isinstance(size, str) or size not in SIZES:
        raise ConfigError(f"size: got {settings.size!r}; allowed are {sorted(SIZES)}.")
    filled: dict[str, Any] = {"axes": "product", "aggregate": "evidence", **SIZES[size]}
    if any(is_batch_norm(module) for module in model.modules()):
        filled["statistics"] = ("source", "blend")
    if "lr" in given:
        del filled["pace"]
    missing = {name: value for name, value in filled.items() if name not in given}
    return _plain(replace(settings, preset="paper", size=None, **missing))


def templates_of(model: nn.Module) -> int:
    """How many templates a zero-shot classifier has."""
    known = getattr(model, "text_features", None)
    if not isinstance(known, Tensor):
        raise ConfigError(
            f"prompts: got 'own' for {type(model).__name__}, which has no text; allowed is what polytta.clip.zero_shot "
            "makes."
        )
    return known.shape[0]


def _plain(settings: Settings) -> Settings:
    particles = settings.particles
    if particles is None and settings.axes == "zip":
        looks = 1 if settings.lenses is None else len(resolve_lenses(settings.lenses).transforms)
        # A list says how many there are to be, a set by its name what to choose from.
        most = looks if isinstance(settings.lenses, list | tuple) else 3
        particles = 3 if looks == 1 else min(most, looks)
    return replace(
        settings,
        method="deyo" if settings.method is None else settings.method,
        particles=particles,
        lenses="none" if settings.lenses is None else settings.lenses,
        aggregate="probs" if settings.aggregate is None else settings.aggregate,
    )
