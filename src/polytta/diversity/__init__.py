"""Interaction between particles: one file each. Nothing here knows which base method it meets."""

from polytta.diversity.base import Diversifier as Diversifier
from polytta.diversity.base import Objective as Objective
from polytta.diversity.grad import Grad as Grad
from polytta.diversity.kl import KL as KL
from polytta.diversity.none import Independent as Independent
from polytta.diversity.svgd import SVGD as SVGD
from polytta.errors import ConfigError

DIVERSIFIERS: dict[str, type[Diversifier]] = {
    diversifier.name: diversifier for diversifier in (Independent, KL, SVGD, Grad)
}


def resolve_diversity(spec: str | Diversifier) -> Diversifier:
    """A diversifier from a name; an object is taken as it is."""
    if isinstance(spec, str) and spec in DIVERSIFIERS:
        return DIVERSIFIERS[spec]()
    if isinstance(spec, Diversifier):
        spec.validate()
        return spec
    raise ConfigError(f"diversity: got {spec!r}; allowed are {sorted(DIVERSIFIERS)} or a polytta.diversity object.")
