r"""Images made by an attacker who knows the model: other people's images in the batch, or the updates, are the target.

    max over δ of  CE(f(x_benign; θ'), y),   θ' = θ - η ∇_θ H(f([x_benign, x_own + δ]; θ))

the gradient taken through the adaptation step and through the statistics of the batch. With benign images in the same
batch this is the attack of Wu et al. ("Uncovering Adversarial Risks of Test-Time Adaptation", ICML 2023) on batch
neighbours; with benign images that come later it poisons the model as Cong et al. ("Test-Time Poisoning Attacks Against
Test-Time Adaptation Models", IEEE S&P 2024) do. The attacker knows the source model, not what has been learnt since.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call

from polytta.network.copies import share_structure
from polytta.network.statistics import use_statistics
from polytta.network.targets import norm_layers
from polytta.roles.measures import entropy


class Attacker:
    """Makes images against one network.

    Args:
        network: the source network; never changed.
        rate: η, of the step that is looked through.
        rounds: of ascent by the sign of the gradient.
        by_batch: whether BatchNorm layers go by the batch.
    """

    def __init__(self, network: nn.Module, rate: float, rounds: int, *, by_batch: bool) -> None:
        self._network = share_structure(network)
        if by_batch:
            use_statistics(self._network, "batch")
        self._rate, self._rounds = rate, rounds
        self._names = [
            name
            for layer in norm_layers(self._network)
            for name in (f"{layer}.weight", f"{layer}.bias")
            if name in dict(self._network.named_parameters())
        ]

    def against(self, own: Tensor, benign: Tensor, labels: Tensor, *, together: bool) -> Tensor:
        """The attacker's images (M, ...) after the ascent, within the range of values that benign ones (N, ...) have.

        Args:
            own: images to begin with.
            benign: whom to hurt.
            labels: (N,) their classes, or what the model says of them.
            together: whether all are in one batch, or benign ones come after it.
        """
        low, high = float(benign.amin()), float(benign.amax())
        crafted = best = own.clamp(low, high)
        most = float("-inf")
        for round_ in range(self._rounds + 1):
            harm, uphill = self._harm(crafted, benign, labels, together=together)
            if harm > most:
                best, most = crafted, harm
            # Large steps first, since images may be anything, then smaller ones.
            step = (high - low) / 2 ** (2 + round_)
            crafted = best if harm < most else crafted
            crafted = (crafted + step * uphill.sign()).clamp(low, high)
        return best

    def _harm(self, own: Tensor, benign: Tensor, labels: Tensor, *, together: bool) -> tuple[float, Tensor]:
        """The benign images' loss after the step, and its slope by the attacker's images."""
        theta = [self._network.get_parameter(name).detach().clone().requires_grad_() for name in self._names]
        with torch.enable_grad():
            crafted = own.detach().requires_grad_()
            batch = torch.cat([benign, crafted]) if together else crafted
            taught = entropy(self._answers(theta, batch)).mean()
            slopes = torch.autograd.grad(taught, theta, create_graph=True)
            moved = [value - self._rate * slope for value, slope in zip(theta, slopes, strict=True)]
            answers = self._answers(moved, batch if together else benign)[: len(benign)]
            harm = nn.functional.cross_entropy(answers, labels)
            uphill = torch.autograd.grad(harm, crafted)[0]
        return float(harm.detach()), uphill.detach()

    def _answers(self, theta: Sequence[Tensor], x: Tensor) -> Tensor:
        answers: Tensor = functional_call(self._network, dict(zip(self._names, theta, strict=True)), (x,))
        return answers
