"""The rival: one model adapted by DeYO, written as its public code is.

The module's own parameters, ``torch.optim.SGD``, boolean indexing, one eager pass after the other, and nothing of ours:
what somebody gets who takes the code beside the paper. It computes what polytta's loop does, which is tested.
"""

from math import log

import torch
from torch import Tensor, nn

from polytta.network.targets import choose_layers

_TILES = 4


class PlainDeYO:
    """Predicts and learns.

    Args:
        model: changed at every call.
        lr: learning rate.
        entropy_threshold: as a fraction of ln C.
        plpd_threshold: least difference that destroying shapes must make.
        reference_entropy: as a fraction of ln C.
    """

    def __init__(
        self,
        model: nn.Module,
        lr: float,
        entropy_threshold: float = 0.5,
        plpd_threshold: float = 0.2,
        reference_entropy: float = 0.4,
    ) -> None:
        self.model = model.eval().requires_grad_(False)
        self.entropy_threshold, self.plpd_threshold = entropy_threshold, plpd_threshold
        self.reference_entropy = reference_entropy
        for module in model.modules():
            if isinstance(module, nn.modules.batchnorm._BatchNorm):
                module.track_running_stats = False
                module.running_mean = module.running_var = None
        self.parameters = [
            parameter.requires_grad_(True)
            for name in choose_layers(model, None, "auto")
            for parameter in model.get_submodule(name).parameters()
        ]
        self.optimizer = torch.optim.SGD(self.parameters, lr, momentum=0.9)

    def __call__(self, x: Tensor) -> Tensor:
        """Logits before the step."""
        outputs = self.model(x)
        self.optimizer.zero_grad()
        entropies = -(outputs.softmax(1) * outputs.log_softmax(1)).sum(1)
        most = log(outputs.shape[1])
        confident = torch.where(entropies < self.entropy_threshold * most)
        entropies = entropies[confident]
        if not len(entropies):
            return outputs
        shuffled = _shuffled(x[confident].detach())
        with torch.no_grad():
            outputs_shuffled = self.model(shuffled)
        probs, probs_shuffled = outputs[confident].softmax(1), outputs_shuffled.softmax(1)
        label = probs.argmax(dim=1).reshape(-1, 1)
        plpd = (torch.gather(probs, 1, label) - torch.gather(probs_shuffled, 1, label)).reshape(-1)
        shaped = torch.where(plpd > self.plpd_threshold)
        entropies, plpd = entropies[shaped], plpd[shaped]
        if not len(entropies):
            return outputs
        weight = 1 / torch.exp(entropies.detach() - self.reference_entropy * most) + 1 / torch.exp(-plpd.detach())
        loss = entropies.mul(weight).mean(0)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return outputs


def _shuffled(x: Tensor) -> Tensor:
    """Images whose sides are multiples of four, their tiles in random order."""
    batch, channels, height, width = x.shape
    h, w = height // _TILES, width // _TILES
    tiles = x.reshape(batch, channels, _TILES, h, _TILES, w).permute(0, 2, 4, 1, 3, 5).flatten(1, 2)
    order = torch.argsort(torch.rand(tiles.shape[0], tiles.shape[1]), dim=-1)
    moved = tiles[torch.arange(batch).unsqueeze(-1), order].unflatten(1, (_TILES, _TILES))
    return moved.permute(0, 3, 1, 4, 2, 5).reshape(x.shape)
