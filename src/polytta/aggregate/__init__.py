"""One prediction from K: (..., K, B, C) logits to (..., B, C) log-probabilities."""

from collections.abc import Mapping

from torch import Tensor

from polytta.aggregate import evidence as evidence
from polytta.aggregate.means import mean_logits, mean_probs
from polytta.errors import ConfigError

AGGREGATES = ("probs", "logits", "evidence")


def check_aggregate(name: str) -> None:
    """Raises ConfigError when there is no such way."""
    if name not in AGGREGATES:
        raise ConfigError(f"aggregate: got {name!r}; allowed are {list(AGGREGATES)}.")


def aggregate(name: str, logits: Tensor, observed: Mapping[str, Tensor]) -> Tensor:
    """Combines particles; ``observed`` is the evidence so far, empty before the first batch."""
    if name == "evidence" and observed:
        return evidence.combine(observed, logits)
    return mean_probs(logits) if name == "probs" else mean_logits(logits)
