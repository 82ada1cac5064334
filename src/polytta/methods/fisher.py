r"""Diagonal Fisher information of the norm parameters on clean images, EATA's anchor.

    F = 1/N · Σ_n (∇_θ CE(f(X_n; θ⁰), ŷ_n))²,   ŷ_n = argmax f(X_n; θ⁰)

as EATA's public code estimates it: the gradient of each *batch's mean* loss is squared, with BatchNorm on batch
statistics. 2,000 shuffled images at the batch size of the stream is the reference setting.
"""

from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from polytta.errors import ConfigError
from polytta.network.copies import share_structure, unwrap
from polytta.network.layout import Layout
from polytta.network.statistics import use_statistics
from polytta.network.targets import norm_layers


def estimate_fisher(model: nn.Module, batches: Iterable[Tensor]) -> dict[str, Tensor]:
    """{parameter name: Fisher information} for ``EATA(fisher=...)``; ``model`` is not changed."""
    with torch.inference_mode(False), torch.enable_grad():
        network = share_structure(unwrap(model))
        use_statistics(network, "batch")
        layout = Layout.of(network, norm_layers(network))
        parameters = [network.get_parameter(slot.name).requires_grad_() for slot in layout.slots]
        total = [torch.zeros_like(parameter) for parameter in parameters]
        count = 0
        for x in batches:
            logits = network(x.clone() if x.is_inference() else x)
            loss = F.cross_entropy(logits, logits.argmax(dim=1))
            gradients = torch.autograd.grad(loss, parameters, allow_unused=True)
            for summed, gradient in zip(total, gradients, strict=True):
                if gradient is not None:
                    summed += gradient.square()
            count += 1
    if count == 0:
        raise ConfigError("batches: got none; allowed is any iterable with at least one batch of clean images.")
    return {slot.name: (summed / count).detach() for slot, summed in zip(layout.slots, total, strict=True)}
