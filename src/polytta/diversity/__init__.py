"""Interaction between particles: one file each. Nothing here knows which base method it meets."""

from polytta.diversity.base import Diversifier as Diversifier
from polytta.diversity.grad import Grad as Grad
from polytta.diversity.kl import KL as KL
from polytta.diversity.none import Independent as Independent
from polytta.diversity.svgd import SVGD as SVGD
from polytta.roles import Objective as Objective
from polytta.roles.registry import Registry

DIVERSIFIERS = Registry("diversity", Diversifier, (Independent, KL, SVGD, Grad))
register_diversity = DIVERSIFIERS.register


def resolve_diversity(spec: object) -> Diversifier:
    """A diversifier object."""
    return DIVERSIFIERS.make(spec)
