"""Small untrained classifiers and streams that every check runs on, one per way of normalizing."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from polytta.clip import zero_shot

CLASSES = 5
SIDE = 8


class _Block(nn.Module):
    def __init__(self, width: int, norm: nn.Module) -> None:
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm = norm

    def forward(self, x: Tensor) -> Tensor:
        return x + nn.functional.silu(self.norm(self.conv(x)))


class SmallConvNet(nn.Module):
    """Stem, two residual blocks with the given norm layer, pooled head. SiLU keeps gradients smooth for comparisons."""

    def __init__(self, kind: str, width: int = 8) -> None:
        super().__init__()
        make = {
            "batch": lambda: nn.BatchNorm2d(width),
            "group": lambda: nn.GroupNorm(2, width),
            "instance": lambda: nn.InstanceNorm2d(width, affine=True),
        }[kind]
        self.stem = nn.Conv2d(3, width, 3, padding=1)
        self.blocks = nn.Sequential(*[_Block(width, make()) for _ in range(2)])
        self.head = nn.Linear(width, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        """(B, 3, H, W) to (B, 5)."""
        return self.head(self.blocks(self.stem(x)).mean(dim=(2, 3)))


class SmallTransformer(nn.Module):
    """Patches, two pre-norm encoder layers, pooled head; ``token_first`` puts the batch in dimension 1."""

    def __init__(self, kind: str = "layer", *, token_first: bool = False, width: int = 16) -> None:
        super().__init__()
        make = {"layer": nn.LayerNorm, "rms": nn.RMSNorm}[kind]
        self.token_first = token_first
        self.patches = nn.Conv2d(3, width, 4, stride=4)
        self.norms = nn.ModuleList([make(width) for _ in range(4)])
        self.attention = nn.ModuleList([nn.MultiheadAttention(width, 2, batch_first=not token_first) for _ in range(2)])
        self.mlps = nn.ModuleList([nn.Sequential(nn.Linear(width, width), nn.GELU()) for _ in range(2)])
        self.head = nn.Linear(width, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        """(B, 3, H, W) to (B, 5)."""
        tokens = self.patches(x).flatten(2).transpose(1, 2)
        tokens = tokens.transpose(0, 1) if self.token_first else tokens
        for layer in range(2):
            seen = self.norms[2 * layer](tokens)
            tokens = tokens + self.attention[layer](seen, seen, seen, need_weights=False)[0]
            tokens = tokens + self.mlps[layer](self.norms[2 * layer + 1](tokens))
        return self.head(tokens.mean(dim=0 if self.token_first else 1))


class SmallClip(nn.Module):
    """Two encoders into one space of twelve dimensions; the one of text reads words by their letters."""

    def __init__(self, *, width: int = 16, size: int = 12) -> None:
        super().__init__()
        self.visual = SmallTransformer(width=width)
        self.visual.head = nn.Linear(width, size)
        self.words, self.text_norm = nn.Embedding(WORDS, width), nn.LayerNorm(width)
        self.text_projection = nn.Linear(width, size)
        self.logit_scale = nn.Parameter(torch.tensor(3.0))

    def encode_image(self, x: Tensor) -> Tensor:
        """(B, 3, H, W) to (B, 12)."""
        return self.visual(x)

    def encode_text(self, tokens: Tensor) -> Tensor:
        """(N, L) to (N, 12)."""
        places = torch.arange(1, tokens.shape[1] + 1, device=tokens.device).unsqueeze(1) * (tokens > 0).unsqueeze(2)
        return self.text_projection(self.text_norm(self.words(tokens)).mul(places).tanh().sum(dim=1))


WORDS = 97
LENGTH = 16


def tokens_of(sentences: Sequence[str]) -> Tensor:
    """(N, 16) numbers of words, zeros after the last."""
    words = [one.replace(".", " .").split() for one in sentences]
    rows = [[1, *(2 + sum(map(ord, word)) % (WORDS - 2) for word in own)] for own in words]
    return torch.tensor([row + [0] * (LENGTH - len(row)) for row in rows])


def small_clip(*, seed: int = 0, dtype: torch.dtype = torch.float64) -> nn.Module:
    """A small zero-shot classifier with random weights, over five classes and three templates."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = SmallClip().to(dtype).eval()
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if "norm" in name:
                    parameter.add_(0.2 * torch.randn_like(parameter))
    classes = ("cat", "dog", "sailing ship", "truck", "frog")
    return zero_shot(model, tokens_of, classes, ("a photo of a {}", "art of the {}.", "a small {}."))


KINDS = ("batch", "group", "instance", "layer", "layer-token-first", "rms")


def small_model(kind: str, *, seed: int = 0, dtype: torch.dtype = torch.float64, confidence: float = 12.0) -> nn.Module:
    """A small classifier with random weights, a head scaled so that about half of the samples count as confident."""
    if kind == "clip":
        return small_clip(seed=seed, dtype=dtype)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model: nn.Module
        if kind in ("batch", "group", "instance"):
            model = SmallConvNet(kind)
        else:
            model = SmallTransformer(kind.split("-")[0], token_first=kind.endswith("token-first"))
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if "norm" in name:
                    parameter.add_(0.2 * torch.randn_like(parameter))
                if name.startswith("head"):
                    parameter.mul_(confidence)
    return model.to(dtype).eval()


def small_stream(steps: int, batch: int, *, seed: int = 0, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    """Batches of noise images with some structure, the same for the same arguments."""
    generator = torch.Generator().manual_seed(seed)
    coarse = torch.randn(steps, batch, 3, SIDE // 4, SIDE // 4, generator=generator, dtype=torch.float64)
    fine = torch.randn(steps, batch, 3, SIDE, SIDE, generator=generator, dtype=torch.float64)
    images = coarse.repeat_interleave(4, dim=3).repeat_interleave(4, dim=4) + 0.5 * fine
    return list(images.to(dtype))
