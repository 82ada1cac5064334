import torch

from polytta.aggregate.means import mean_logits, mean_probs


def test_means() -> None:
    logits = torch.randn(3, 4, 5, dtype=torch.float64)
    assert torch.allclose(mean_probs(logits), logits.softmax(-1).mean(0).log())
    assert torch.allclose(mean_logits(logits), logits.mean(0).log_softmax(-1))
    assert torch.allclose(mean_probs(logits[:1]), mean_logits(logits[:1]))
