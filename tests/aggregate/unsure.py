"""Answers of somebody who is unsure and biased, as a model is under a shift."""

import torch
from torch import Tensor

CLASSES = 5


def answers(labels: Tensor, right: float = 0.7, seed: int = 0, classes: int = CLASSES) -> Tensor:
    """(1, N, C) log-probabilities of somebody who is right that often, unsure, and says class 0 too often."""
    generator = torch.Generator().manual_seed(seed)
    wrong = torch.rand(len(labels), generator=generator) > right
    guess = torch.where(
        torch.rand(len(labels), generator=generator) < 0.5, 0, torch.randint(classes, labels.shape, generator=generator)
    )
    told = torch.where(wrong, guess, labels)
    noise = torch.randn(len(labels), classes, generator=generator, dtype=torch.float64)
    return (noise + 2.5 * torch.nn.functional.one_hot(told, classes)).log_softmax(dim=-1).unsqueeze(0)
