"""One prediction from K: (..., K, B, C) logits to (..., B, C) log-probabilities, one file each."""

from polytta.aggregate.base import Aggregate as Aggregate
from polytta.aggregate.base import Restart as Restart
from polytta.aggregate.evidence import Evidence as Evidence
from polytta.aggregate.means import MeanLogits as MeanLogits
from polytta.aggregate.means import MeanProbs as MeanProbs
from polytta.roles.registry import Registry

AGGREGATES = Registry("aggregate", Aggregate, (MeanProbs, MeanLogits, Evidence))
register_aggregate = AGGREGATES.register


def resolve_aggregate(spec: object) -> Aggregate:
    """An aggregate object."""
    return AGGREGATES.make(spec)
