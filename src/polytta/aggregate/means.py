r"""Equal weights: p = 1/K Σ pᵢ (an equally weighted mixture), or p ∝ exp(1/K Σ zᵢ) over logits (a geometric mean)."""

from math import log

from torch import Tensor


def mean_probs(logits: Tensor) -> Tensor:
    """log of the particles' mean probability."""
    return logits.log_softmax(dim=-1).logsumexp(dim=-3) - log(logits.shape[-3])


def mean_logits(logits: Tensor) -> Tensor:
    """log-softmax of the particles' mean logits: sharper where particles agree."""
    return logits.mean(dim=-3).log_softmax(dim=-1)
