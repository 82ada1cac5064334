"""A source model with everything about it that a result depends on."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from polytta.clip import ZeroShot
from polytta.models.preprocessing import Preprocessing


@dataclass(frozen=True, eq=False)
class SourceModel:
    """A network, how it sees images, and which weights it has.

    Attributes:
        id: The name it was created by.
        module: The network in eval mode; normalised images in, logits out.
        preprocessing: From uint8 images to its input.
        num_classes: Number of logits.
        weights_sha256: Hash of the weights file, or of the parameters themselves where there was no file.
    """

    id: str
    module: nn.Module
    preprocessing: Preprocessing
    num_classes: int
    weights_sha256: str

    def facts(self) -> dict[str, Any]:
        """What a record has to say about the model."""
        facts = {
            "id": self.id,
            "num_classes": self.num_classes,
            "weights_sha256": self.weights_sha256,
            "preprocessing": vars(self.preprocessing),
        }
        if isinstance(self.module, ZeroShot):
            facts |= {"classes": list(self.module.classes), "templates": list(self.module.templates)}
        return facts


def hash_parameters(module: nn.Module) -> str:
    """Hash the names and values of all state."""
    digest = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
