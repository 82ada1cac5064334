"""A small residual network for 32x32 images, with GroupNorm or BatchNorm.

The basic block of He et al. 2016 (arXiv 1512.03385) in four stages named ``layer1`` to ``layer4`` as in timm
and torchvision, so that rules which leave out the top layers by name apply unchanged. Widths are chosen so
that the fp16 weights stay under 3.5 MB and one image costs about 0.17 G multiply-adds.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn
from torch.nn import functional as F

Norm = Callable[[int], nn.Module]

WIDTHS = (48, 96, 144, 192)
BLOCKS = (1, 2, 2, 1)
GROUPS = 8


def group_norm(channels: int) -> nn.Module:
    """GroupNorm with the eight groups this family uses at every width."""
    return nn.GroupNorm(GROUPS, channels)


class BasicBlock(nn.Module):
    """Two 3x3 convolutions and a shortcut; a strided or widening block projects its shortcut."""

    def __init__(self, width_in: int, width: int, stride: int, norm: Norm) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width_in, width, 3, stride, 1, bias=False)
        self.bn1 = norm(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = norm(width)
        self.downsample: nn.Module = nn.Identity()
        if stride != 1 or width_in != width:
            self.downsample = nn.Sequential(nn.Conv2d(width_in, width, 1, stride, bias=False), norm(width))

    def forward(self, x: Tensor) -> Tensor:
        """Apply the block."""
        out = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(out)) + self.downsample(x))


class SmallResNet(nn.Module):
    """Stem, four stages of basic blocks, global average pooling and a linear head."""

    def __init__(self, norm: Norm, num_classes: int = 10) -> None:
        super().__init__()
        self.num_classes = num_classes
        self.conv1 = nn.Conv2d(3, WIDTHS[0], 3, 1, 1, bias=False)
        self.bn1 = norm(WIDTHS[0])
        self.layer1 = _stage(WIDTHS[0], WIDTHS[0], BLOCKS[0], 1, norm)
        self.layer2 = _stage(WIDTHS[0], WIDTHS[1], BLOCKS[1], 2, norm)
        self.layer3 = _stage(WIDTHS[1], WIDTHS[2], BLOCKS[2], 2, norm)
        self.layer4 = _stage(WIDTHS[2], WIDTHS[3], BLOCKS[3], 2, norm)
        self.fc = nn.Linear(WIDTHS[3], num_classes)
        self._initialise()

    def forward(self, x: Tensor) -> Tensor:
        """Map normalised images (N, 3, 32, 32) to logits (N, num_classes)."""
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        logits: Tensor = self.fc(x.mean((2, 3)))
        return logits

    def _initialise(self) -> None:
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        for module in self.modules():
            if isinstance(module, BasicBlock):
                # Every block starts as its shortcut, which admits a large learning rate from the start.
                nn.init.zeros_(module.bn2.weight)  # type: ignore[arg-type]


def _stage(width_in: int, width: int, blocks: int, stride: int, norm: Norm) -> nn.Sequential:
    first = BasicBlock(width_in, width, stride, norm)
    return nn.Sequential(first, *(BasicBlock(width, width, 1, norm) for _ in range(blocks - 1)))


def cifar10_resnet_gn(num_classes: int = 10) -> SmallResNet:
    """Build the GroupNorm network."""
    return SmallResNet(group_norm, num_classes)


def cifar10_resnet_bn(num_classes: int = 10) -> SmallResNet:
    """Build the BatchNorm network."""
    return SmallResNet(nn.BatchNorm2d, num_classes)
