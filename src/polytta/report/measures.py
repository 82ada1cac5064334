"""How far apart particles are, in parameters and in predictions."""

from math import log

from torch import Tensor


def distance_to_source(theta: Tensor, source: Tensor) -> Tensor:
    """(K,) Euclidean distances ‖θᵢ - θ⁰‖."""
    return (theta - source).norm(dim=1)


def pairwise_distances(theta: Tensor) -> Tensor:
    """(K, K) Euclidean distances ‖θᵢ - θⱼ‖, computed from differences so that equal rows are exactly 0 apart."""
    return (theta.unsqueeze(0) - theta.unsqueeze(1)).norm(dim=2)


def mean_off_diagonal(square: Tensor) -> float:
    """Mean over ordered pairs of different particles; 0 for one particle."""
    particles = square.shape[0]
    if particles < 2:
        return 0.0
    return float((square.sum() - square.diagonal().sum()) / (particles * (particles - 1)))


def mutual_information(logits: Tensor) -> Tensor:
    """(B,) H(mean of pᵢ) - mean of H(pᵢ) in nats: 0 when all particles agree."""
    log_probs = logits.log_softmax(dim=-1)
    mean = log_probs.logsumexp(dim=0) - log(logits.shape[0])
    of_mean = -(mean.exp() * mean).sum(dim=-1)
    return (of_mean + (log_probs.exp() * log_probs).sum(dim=-1).mean(dim=0)).clamp(min=0)
