import torch

from polytta.aggregate import MeanLogits, MeanProbs


def test_means() -> None:
    logits = torch.randn(3, 4, 5, dtype=torch.float64)
    assert torch.allclose(MeanProbs().combine(logits, {}), logits.softmax(-1).mean(0).log())
    assert torch.allclose(MeanLogits().combine(logits, {}), logits.mean(0).log_softmax(-1))
    assert torch.allclose(MeanProbs().combine(logits[:1], {}), MeanLogits().combine(logits[:1], {}))
