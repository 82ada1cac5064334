import torch

from polytta.aggregate import MeanLogits, MeanProbs


def test_means() -> None:
    logits, fineness = torch.randn(3, 4, 5, dtype=torch.float64), torch.zeros(4)
    assert torch.allclose(MeanProbs().combine(logits, {}, fineness), logits.softmax(-1).mean(0).log())
    assert torch.allclose(MeanLogits().combine(logits, {}, fineness), logits.mean(0).log_softmax(-1))
    assert torch.allclose(MeanProbs().combine(logits[:1], {}, fineness), MeanLogits().combine(logits[:1], {}, fineness))
