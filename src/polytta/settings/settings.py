"""Every option of ``polytta.adapt``, once: its name, type, default and help.

``adapt``'s signature and documentation, the tables of a grid file, the settings in records and state files are all made
from the fields below, so a new option is one field here and the code that obeys it.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from textwrap import fill
from typing import Any, Literal, TypeVar

from polytta.aggregate import Aggregate
from polytta.diversity import Diversifier
from polytta.errors import ConfigError
from polytta.guard import Guard
from polytta.methods import Method
from polytta.optim import OptimizerSpec
from polytta.views import Lenses, View, Views

Table = Mapping[str, Any]
"""A part as a file writes it: its ``name`` and any of its own settings."""


@dataclass(frozen=True)
class Settings:
    """How to adapt. A part is a name, ``module:Class``, a table ``{"name": ..., ...}`` or an object."""

    method: str | Table | Method | Sequence[str | Table | Method] | None = None
    """What particles learn from: one or several of ``polytta.methods``; None means DeYO."""
    particles: int | None = None
    """Number K of hypotheses; 1 is the plain base method. None means 3 (2 for two lenses), or as many as the
    axes give."""
    axes: Literal["zip", "product"] = "zip"
    """How lists of methods, optimizers, learning rates, lenses and statistics make particles: "zip" takes one of each
    per particle, "product" makes a particle of every combination."""
    diversity: str | Table | Diversifier = "none"
    """How particles interact: one of ``polytta.diversity``."""
    optimizer: OptimizerSpec | Sequence[OptimizerSpec] = "sgd"
    """How particles move: one or K of ``polytta.optim``."""
    lr: float | Sequence[float] | None = None
    """Learning rate, or one per particle (of one or of every population); None applies the public code's rule for the
    model and batch size."""
    pace: float | Sequence[float] | None = None
    """Instead of a learning rate, the share of the loss that a step removes: it means the same on every model, number
    of classes and batch size (``polytta.optim.pace``). 0 looks and never learns: such a particle predicts through its
    lens with the source's parameters."""
    views: str | Table | Sequence[str | View] | Views = "none"
    """Versions of the batch to learn from: a name, callables, or ``polytta.views.Views``."""
    lenses: str | Table | Sequence[str | View] | Lenses | None = None
    """How each particle looks at the images: "none" (or None) alike; "sight" as they are, from farther away, much
    sharper, mirrored with the contrast of a photograph, and coarser (the first K of these); "optics" as they are, from
    farther away, sharper, mirrored, and from much farther away; or names or callables of your own. Best with aggregate
    "evidence"; with diversity "grad" they must be differentiable."""
    preset: str | None = None
    """"recommended" fills in the population that we recommend, "paper" the paper's (three particles, its thresholds),
    "official" the same with the thresholds of each method's own public code. None means "recommended" when nothing is
    said of method or population, else "paper"."""
    size: str | None = None
    """Of the recommended population: "small" only looks (predicts through its lenses and never learns), "medium" (the
    default) learns as well, "large" in two ways (``polytta.settings.presets``)."""
    aggregate: str | Table | Aggregate | None = None
    """One answer from K: "probs" averages probabilities, "logits" averages logits, "evidence" weights particles by how
    sure and how balanced their answers have been; or one of ``polytta.aggregate``. None means "probs"."""
    guard: str | Table | Guard | None = None
    """What watches over the particles: "default" (or None) undoes collapse and leaves healthy streams as they are,
    "strict" alarms earlier, "off" watches nothing; or one of ``polytta.guard``."""
    targets: str | Sequence[str] | None = None
    """Norm layers to adapt, names or regular expressions; None means all."""
    exclude: str | Sequence[str] | None = "auto"
    """Norm layers to leave alone; "auto" freezes the top of the network (``polytta.network.targets``) unless targets
    says what to adapt; None excludes nothing."""
    engine: str = "auto"
    """"folded" (all particles in one pass), "graph" (the same recorded as CUDA graphs), "static" (folded with fixed
    shapes), "loop" (one particle at a time), or "auto": "graph" on a CUDA device, else "folded"."""
    precision: Literal["fp32", "tf32", "bf16"] = "fp32"
    """"fp32", or for a faster frozen trunk "bf16", or on a CUDA device "tf32" (``polytta.particles.precision``)."""
    particles_at_once: int | None = None
    """Most particles in one pass; fewer need less memory and more time, and change no answer (a second derivative needs
    all of them)."""
    statistics: str | Sequence[str] = "auto"
    """What BatchNorm layers use: "batch", "source", "blend", "median" (``polytta.network.statistics``), or "auto"
    for the method's own choice, blended for very small batches unless a preset is named; or one per particle."""
    prompts: Literal["mean", "own"] = "mean"
    """What particles of a zero-shot classifier compare images with: the "mean" of all templates, or each a template of
    its "own" (``polytta.clip``)."""
    steps: int = 1
    """Steps of learning from each batch."""
    episodic: bool = False
    """Start every batch from the source model, and answer after learning from it; some methods do so anyway."""
    objective: Literal["scaled", "literal"] = "scaled"
    """"scaled" (each particle's own loss at full weight), or "literal" for the paper's factor 1/K."""
    seed: int | Sequence[int] = 0
    """Of all random numbers; equal seeds and streams give equal predictions. With populations, one each."""
    shared_noise: bool = False
    """Give all particles the same random numbers."""
    lr_spread: float = 0.2
    """Particles' learning rates run from (1 - lr_spread) to (1 + lr_spread) times the common one."""
    lr_span: float | None = None
    """Instead, each particle's learning rate is this factor above its neighbour's, so that the population tries rates
    of different magnitude at once."""
    populations: int | None = None
    """Run G independent populations of K particles in one batch, each with its own stream: ``adapted(x)`` then takes
    (G, B, ...) images and returns (G, B, C), equal to G separate runs at far less than G times the cost at small
    batches."""
    num_classes: int | None = None
    """C, when it should be checked; otherwise read off the first output."""
    batch_size: int | None = None
    """Batch size for the learning-rate rule; None means that of the first batch."""

    @classmethod
    def of(cls, given: Mapping[str, Any], where: str = "adapt") -> "Settings":
        """Settings from some of the options by name; ``where`` names the caller in the error."""
        known = [f.name for f in fields(cls)]
        unknown = [name for name in given if name not in known]
        if unknown:
            raise ConfigError(f"{where}: got {unknown[0]!r}; allowed are {', '.join(sorted(known))}.")
        return cls(**given)


def field_help() -> dict[str, str]:
    """{option: its help}, read off the text behind each field."""
    try:
        source = inspect.getsource(Settings).splitlines()
    except OSError:  # installed without its source text
        return {}
    found: dict[str, str] = {}
    for f in fields(Settings):
        start = next(n for n, line in enumerate(source) if line.startswith(f"    {f.name}: "))
        text = "\n".join(source[start + 1 :])
        quoted = text.strip()[3:]
        found[f.name] = " ".join(quoted[: quoted.index('"""')].split())
    return found


F = TypeVar("F", bound=Callable[..., Any])


def takes_settings(function: F) -> F:
    """Gives a function of ``**settings`` the signature and the documentation of all options."""
    own = inspect.signature(function)
    options = [
        inspect.Parameter(
            f.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=f.default,
            annotation=f.type,
        )
        for f in fields(Settings)
        if f.name not in own.parameters
    ]
    before = [p for p in own.parameters.values() if p.kind is not p.VAR_KEYWORD]
    signature = own.replace(parameters=[*before, *options])

    @wraps(function)
    def bound(*args: Any, **kwargs: Any) -> Any:
        unknown = [name for name in kwargs if name not in signature.parameters]
        if unknown:
            raise ConfigError(
                f"{function.__name__}: got {unknown[0]!r}; allowed are {', '.join(f.name for f in fields(Settings))}."
            )
        return function(**signature.bind(*args, **kwargs).arguments)

    bound.__signature__ = signature  # type: ignore[attr-defined]
    lines = (f"{name}: {text}" for name, text in field_help().items())
    listed = "\n".join(fill(line, 116, initial_indent=" " * 8, subsequent_indent=" " * 12) for line in lines)
    bound.__doc__ = (function.__doc__ or "").replace("        settings: every option of them.", listed)
    return bound  # type: ignore[return-value]
