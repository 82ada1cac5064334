"""A small vision transformer for 32x32 images with LayerNorm.

The pre-norm encoder of Dosovitskiy et al. 2021 (arXiv 2010.11929) with 4x4 patches, a convolutional stem
instead of one patch projection (Xiao et al. 2021, arXiv 2106.14881; it is what lets so small a model learn
from 50,000 images) and mean pooling over the tokens. Names follow timm: ``patch_embed``, ``blocks.0`` to
``blocks.11``, ``norm``, ``head``. Attention is written out but on a GPU, where torch's fused form is
several times as fast (it has no second derivative; ``polytta`` asks torch for another where it needs one).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

WIDTH = 128
DEPTH = 12
HEADS = 4
MLP_RATIO = 2
TOKENS = 64


class ConvStem(nn.Module):
    """Three 3x3 convolutions that turn every 4x4 patch, seen with its surroundings, into one token."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 48, 3, 1, 1)
        self.conv2 = nn.Conv2d(48, 96, 3, 2, 1)
        self.proj = nn.Conv2d(96, width, 3, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Map images (N, 3, 32, 32) to tokens (N, 64, width)."""
        x = F.gelu(self.conv1(x))
        x = F.gelu(self.conv2(x))
        tokens: Tensor = self.proj(x).flatten(2).transpose(1, 2)
        return tokens


class Attention(nn.Module):
    """Multi-head self-attention."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Mix tokens (N, T, width)."""
        batch, tokens, width = x.shape
        qkv = self.qkv(x).reshape(batch, tokens, 3, self.heads, width // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        if x.is_cuda:
            seen = F.scaled_dot_product_attention(query, key, value)
        else:
            seen = (query @ key.transpose(-2, -1) * (width // self.heads) ** -0.5).softmax(-1) @ value
        mixed: Tensor = self.proj(seen.transpose(1, 2).reshape(batch, tokens, width))
        return mixed


class Mlp(nn.Module):
    """Two linear layers with a GELU between."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(width, hidden)
        self.fc2 = nn.Linear(hidden, width)

    def forward(self, x: Tensor) -> Tensor:
        """Transform every token on its own."""
        out: Tensor = self.fc2(F.gelu(self.fc1(x)))
        return out


class Block(nn.Module):
    """Pre-norm attention and MLP, each on a residual branch."""

    def __init__(self, width: int, heads: int, mlp_ratio: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width, eps=1e-6)
        self.attn = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width, eps=1e-6)
        self.mlp = Mlp(width, mlp_ratio * width)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the block."""
        x = x + self.attn(self.norm1(x))
        out: Tensor = x + self.mlp(self.norm2(x))
        return out


class SmallViT(nn.Module):
    """Stem, position embedding, twelve blocks, final norm, mean over tokens, linear head."""

    def __init__(self, num_classes: int = 10) -> None:
        super().__init__()
        self.num_classes = num_classes
        self.patch_embed = ConvStem(WIDTH)
        self.pos_embed = nn.Parameter(torch.zeros(1, TOKENS, WIDTH))
        self.blocks = nn.Sequential(*(Block(WIDTH, HEADS, MLP_RATIO) for _ in range(DEPTH)))
        self.norm = nn.LayerNorm(WIDTH, eps=1e-6)
        self.head = nn.Linear(WIDTH, num_classes)
        self._initialise()

    def forward(self, x: Tensor) -> Tensor:
        """Map normalised images (N, 3, 32, 32) to logits (N, num_classes)."""
        x = self.blocks(self.patch_embed(x) + self.pos_embed)
        logits: Tensor = self.head(self.norm(x).mean(1))
        return logits

    def _initialise(self) -> None:
        nn.init.trunc_normal_(self.pos_embed, std=0.02)
        for name, module in self.named_modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
            elif isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
            if isinstance(module, nn.Conv2d | nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)
            if name.endswith(("attn.proj", "mlp.fc2")):
                # The sum over 24 residual branches keeps the variance of one only if each is scaled down.
                module.weight.data.mul_((2 * DEPTH) ** -0.5)


def cifar10_vit_ln(num_classes: int = 10) -> SmallViT:
    """Build the transformer."""
    return SmallViT(num_classes)
