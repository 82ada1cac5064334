"""The toy CLIP of the recordings in ``tests/methods/vectors/clip``: two small transformers and a tokenizer of words."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional as F

VECTORS = Path(__file__).parents[1] / "methods" / "vectors" / "clip"
BOOK = json.loads((VECTORS / "cases.json").read_text())
LENGTH = 16
_KNOWN = (
    ". a an the of or in on my one this that photo picture sketch painting drawing image print toy view shot small "
    "large old dark bright blurry noisy plain nice good bad many few close far plane airplane car motor bird cat deer "
    "dog frog horse ship truck boat wild sport delivery sailing tree song green red blue white black grey x"
)
WORDS = _KNOWN.split()
NUMBERS = {word: number for number, word in enumerate(WORDS, start=1)}
BEGIN, END = len(WORDS) + 1, len(WORDS) + 2


def tokenize(sentences: Sequence[str]) -> Tensor:
    """(N, 16): begin, words, end, zeros."""
    rows = []
    for sentence in sentences:
        words = sentence.lower().replace("_", " ").replace(".", " . ").split()
        row = [BEGIN, *(NUMBERS[word] for word in words), END]
        rows.append(row + [0] * (LENGTH - len(row)))
    return torch.tensor(rows)


class Block(nn.Module):
    def __init__(self, width: int, heads: int, *, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc1, self.fc2 = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        parts = self.qkv(self.ln1(x)).unflatten(-1, (3, self.heads, -1))
        query, key, value = (part.transpose(1, 2) for part in parts.unbind(dim=2))
        scores = query @ key.mT / (width // self.heads) ** 0.5
        if self.causal:
            scores = scores + torch.full_like(scores[0, 0], -torch.inf).triu(diagonal=1)
        mixed = (scores.softmax(dim=-1) @ value).transpose(1, 2).reshape(batch, length, width)
        x = x + self.out(mixed)
        return x + self.fc2(F.gelu(self.fc1(self.ln2(x))))


class Visual(nn.Module):
    def __init__(self, width: int, depth: int, heads: int, size: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 8, stride=8, bias=False)
        self.cls, self.pos = nn.Parameter(torch.zeros(width)), nn.Parameter(torch.zeros(17, width))
        # In the order in which the recordings list parameters.
        self.ln_pre = nn.LayerNorm(width)
        self.blocks = nn.Sequential(*[Block(width, heads, causal=False) for _ in range(depth)])
        self.ln_post = nn.LayerNorm(width)
        self.proj = nn.Parameter(torch.zeros(width, size))

    def forward(self, x: Tensor) -> Tensor:
        patches = self.conv1(x).flatten(2).mT
        tokens = torch.cat([self.cls.expand(x.shape[0], 1, -1), patches], dim=1) + self.pos
        return self.ln_post(self.blocks(self.ln_pre(tokens))[:, 0]) @ self.proj


class TinyClip(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        sizes = BOOK["config"]
        width = sizes["text_width"]
        self.visual = Visual(sizes["width"], sizes["depth"], sizes["heads"], sizes["embed"])
        self.token_embedding = nn.Embedding(END + 1, width)
        self.positional_embedding = nn.Parameter(torch.zeros(LENGTH, width))
        self.text_blocks = nn.Sequential(
            *[Block(width, sizes["text_heads"], causal=True) for _ in range(sizes["text_depth"])]
        )
        self.ln_final = nn.LayerNorm(width)
        self.text_projection = nn.Parameter(torch.zeros(width, sizes["embed"]))
        self.logit_scale = nn.Parameter(torch.zeros(()))

    def encode_image(self, x: Tensor) -> Tensor:
        found: Tensor = self.visual(x)
        return found

    def encode_text(self, tokens: Tensor) -> Tensor:
        states = self.ln_final(self.text_blocks(self.token_embedding(tokens) + self.positional_embedding))
        return states[torch.arange(len(tokens)), tokens.argmax(dim=-1)] @ self.text_projection


def tiny_clip(dtype: torch.dtype = torch.float32) -> TinyClip:
    """With its stored weights."""
    model = TinyClip()
    model.load_state_dict(load_file(VECTORS / "TinyClip.safetensors"))
    return model.to(dtype).eval()


def as_input(images: np.ndarray) -> Tensor:
    """uint8 (N, 32, 32, 3) as the model gets them."""
    return (torch.from_numpy(np.ascontiguousarray(images)).permute(0, 3, 1, 2).float() - 128) / 64


def cut(image: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Views of an image: rows (top, left, side, mirrored) of crops, enlarged by repeating pixels."""
    found = []
    for top, left, side, mirrored in table.astype(int):
        places = np.arange(32) * side // 32
        view = image[top + places][:, left + places]
        found.append(view[:, ::-1] if mirrored else view)
    return np.stack(found)


def calls(case: dict) -> list[Tensor]:
    """What a recorded method was given, call by call."""
    stored = np.load(VECTORS / "inputs.npz")
    found = []
    for number in range(case["steps"]):
        if case["input"] == "single":
            images = stored["single"][number : number + 1]
        elif case["input"] == "batch":
            first = case["start"] + number * case["batch"]
            images = stored["batch"][first : first + case["batch"]]
        else:
            images = cut(stored["view_image"][number], stored["view_table"][number][: case["views"]])
            if case["input"] == "diff":
                images = np.concatenate([images, stored["generated"][number][: case["generated"]]])
        found.append(as_input(images))
    return found
