"""How far apart particles are, in parameters and in predictions; and what confidence is worth."""

from math import log

import torch
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


def disagreement_with_others(logits: Tensor, populations: int) -> Tensor:
    """(G·K,) share of images, of (G·K, B, C) answers, that others of a particle's population give another class."""
    answers = logits.argmax(dim=-1).unflatten(0, (populations, -1))
    differs = (answers.unsqueeze(2) != answers.unsqueeze(1)).to(torch.float64).mean(dim=-1)
    return (differs.sum(dim=2) / max(1, answers.shape[1] - 1)).flatten()


def mutual_information(logits: Tensor) -> Tensor:
    """(B,) H(mean of pᵢ) - mean of H(pᵢ) in nats: 0 when all particles agree."""
    log_probs = logits.log_softmax(dim=-1)
    mean = log_probs.logsumexp(dim=0) - log(logits.shape[0])
    of_mean = -(mean.exp() * mean).sum(dim=-1)
    return (of_mean + (log_probs.exp() * log_probs).sum(dim=-1).mean(dim=0)).clamp(min=0)


def selective_risk(confidence: Tensor, right: Tensor) -> Tensor:
    """(B,) share of wrong answers among the 1, 2, ..., B most confident ones; equally confident ones count alike.

    Args:
        confidence: (B,) the more, the sooner an answer is given.
        right: (B,) whether it is right.
    """
    order = confidence.argsort(descending=True, stable=True)
    _, group, sizes = torch.unique_consecutive(confidence[order], return_inverse=True, return_counts=True)
    wrong = (~right[order].bool()).to(torch.float64)
    # Among equals nobody knows which comes first, so each is as wrong as they are on average.
    errors = torch.zeros(len(sizes), dtype=torch.float64, device=wrong.device).index_add(0, group, wrong) / sizes
    return errors[group].cumsum(dim=0) / torch.arange(1, len(wrong) + 1, device=wrong.device)


def area_under_risk(confidence: Tensor, right: Tensor) -> float:
    """AURC: the mean of ``selective_risk`` over all numbers of answers; 0 is best."""
    return float(selective_risk(confidence, right).mean())
