"""A CLIP small enough to ship: the bundled ViT beside a text transformer of a fifth of its size.

``scripts/train_mini_clip.py`` trains it contrastively on images with captions. Images are 32 x 32, both encoders end in
128 dimensions.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from polytta.models.small_vit import Mlp, SmallViT

FEATURES = 128
WIDTH, DEPTH, HEADS, LENGTH = 128, 3, 4, 32


class TextBlock(nn.Module):
    """Pre-norm attention to what was read before, and MLP."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = Mlp(width, 2 * width)

    def forward(self, x: Tensor) -> Tensor:
        """(N, L, width) to the same."""
        parts = self.qkv(self.norm1(x)).unflatten(-1, (3, self.heads, -1))
        query, key, value = (part.transpose(1, 2) for part in parts.unbind(dim=2))
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(diagonal=1)
        scores = (query @ key.mT / math.sqrt(query.shape[-1])).masked_fill(later, -torch.inf)
        x = x + self.proj((scores.softmax(dim=-1) @ value).transpose(1, 2).flatten(2))
        out: Tensor = x + self.mlp(self.norm2(x))
        return out


class MiniClip(nn.Module):
    """Two encoders into one space; ``logit_scale`` is the logarithm of the factor on cosines."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.visual = SmallViT(FEATURES)
        self.token_embedding = nn.Embedding(vocabulary, WIDTH)
        self.positional_embedding = nn.Parameter(0.02 * torch.randn(LENGTH, WIDTH))
        self.text_blocks = nn.Sequential(*(TextBlock(WIDTH, HEADS) for _ in range(DEPTH)))
        self.text_norm, self.text_projection = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, FEATURES, bias=False)
        self.logit_scale = nn.Parameter(torch.tensor(math.log(1 / 0.07)))
        nn.init.normal_(self.token_embedding.weight, std=0.02)

    def encode_image(self, x: Tensor) -> Tensor:
        """(N, 3, 32, 32) to (N, 128)."""
        found: Tensor = self.visual(x)
        return found

    def encode_text(self, tokens: Tensor) -> Tensor:
        """(N, L) to (N, 128), read off where the sentence ends, which is its largest number."""
        placed = self.token_embedding(tokens) + self.positional_embedding[: tokens.shape[1]]
        states = self.text_norm(self.text_blocks(placed))
        found: Tensor = self.text_projection(states[torch.arange(len(tokens), device=tokens.device), tokens.argmax(-1)])
        return found


def contrastive_loss(images: Tensor, text: Tensor, scale: Tensor, true: Tensor) -> Tensor:
    """CLIP's loss where several captions (columns of ``true``) may be right of an image (row), and the reverse."""
    logits = scale.exp() * F.normalize(images, dim=-1) @ F.normalize(text, dim=-1).mT
    both = []
    for told, right in ((logits, true), (logits.mT, true.mT)):
        wanted = right.to(told.dtype) / right.sum(dim=1, keepdim=True)
        both.append(-(wanted * told.log_softmax(dim=-1)).sum(dim=-1).mean())
    return (both[0] + both[1]) / 2
