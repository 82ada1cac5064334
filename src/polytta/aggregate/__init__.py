"""One prediction from K: a room for ways to combine particles, each (K, B, C) logits -> (B, C) log-probabilities."""

from collections.abc import Callable
from math import log

from torch import Tensor

from polytta.errors import ConfigError

Aggregate = Callable[[Tensor], Tensor]


def mean_probs(logits: Tensor) -> Tensor:
    """log of the particles' mean probability: the predictive distribution of an equally weighted population."""
    return logits.log_softmax(dim=-1).logsumexp(dim=0) - log(logits.shape[0])


def mean_logits(logits: Tensor) -> Tensor:
    """log-softmax of the particles' mean logits: a geometric mean, sharper where particles agree."""
    return logits.mean(dim=0).log_softmax(dim=-1)


AGGREGATES: dict[str, Aggregate] = {"probs": mean_probs, "logits": mean_logits}


def resolve_aggregate(name: str) -> Aggregate:
    """The function behind a name."""
    if name not in AGGREGATES:
        raise ConfigError(f"aggregate: got {name!r}; allowed are {sorted(AGGREGATES)}.")
    return AGGREGATES[name]
