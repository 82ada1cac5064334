"""Trains the mini CLIP that ships with polytta, contrastively, on one GPU in minutes.

    PYTHONPATH=src python scripts/train_mini_clip.py --data cifar10.npz [MORE.npz ...] --minutes 4

Every file holds x_train, y_train, x_test, y_test (uint8, N x 32 x 32 x 3) and class names as ``names``; the first is
the one whose test accuracy is recorded, the others widen the vocabulary. A caption is a template, drawn anew at every
step, with a name of the image's class. Crops, flips, cutout and colours are the only augmentation: noise and blur stay
out of it, so that the model meets the corruptions of the test streams for the first time there. What templates say
beside the class is learnt afterwards, by scripts/teach_templates.py.

Writes mini_clip.safetensors (fp16), mini_clip.json (byte pairs) and the entry of assets.json beside them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from train_sources import PAD, RECIPES, SIZE, Augmenter, Average, make_optimizer, rate, record

from polytta.clip import TEMPLATES, zero_shot
from polytta.models.bundled import BUNDLED
from polytta.models.byte_pairs import BytePairs, learn_pairs
from polytta.models.mini_clip import LENGTH, MiniClip, contrastive_loss

PAIRS = 900
CAPTIONS = (
    *TEMPLATES["watt8"],
    "{}", "a {}", "the {}", "a picture of a {}", "an image of the {}.", "a photo of one {}.",
    "a close-up photo of a {}.", "a photo of my {}.", "a cropped photo of the {}.", "a bright photo of a {}.",
    "a dark photo of the {}.", "a good photo of a {}.", "a blurry photo of a {}.", "a low resolution photo of the {}.",
    "a drawing of a {}.", "a painting of the {}.", "a rendering of a {}.", "a sketch of the {}.", "a toy {}.",
    "a plastic {}.", "the nice {}.", "a photo of the cool {}.", "a photo of many {}.",
    "there is a {} in this picture.", "this is a {}.",
)  # fmt: skip
SAYINGS = {
    "airplane": ("airplane", "plane", "aeroplane", "jet"),
    "automobile": ("automobile", "car", "passenger car"),
    "cat": ("cat", "kitten", "house cat"),
    "deer": ("deer", "stag", "elk"),
    "dog": ("dog", "puppy", "hound"),
    "frog": ("frog", "toad"),
    "horse": ("horse", "pony", "mare"),
    "ship": ("ship", "boat", "vessel"),
    "truck": ("truck", "lorry", "fire truck"),
    "bird": ("bird", "small bird", "songbird"),
}
"""What people also call a class."""


def read(paths: list[Path], limit: int | None) -> tuple[dict[str, np.ndarray], list[str]]:
    """All files as one, classes of later ones after those of earlier ones; test images are the first file's."""
    names: list[str] = []
    parts: dict[str, list[np.ndarray]] = {"x_train": [], "y_train": []}
    found: dict[str, np.ndarray] = {}
    for path in paths:
        with np.load(path) as stored:
            own = [str(name) for name in stored["names"]]
            parts["x_train"].append(stored["x_train"][:limit])
            parts["y_train"].append(stored["y_train"][:limit].astype(np.int64) + len(names))
            if not found:
                found = {"x_test": stored["x_test"][:limit], "y_test": stored["y_test"][:limit].astype(np.int64)}
            names += own
    return {**found, **{name: np.concatenate(own) for name, own in parts.items()}}, names


class Captions:
    """(classes, sayings, templates, L) token numbers, drawn from on the device.

    Args:
        kinds: templates of each kind of caption.
    """

    def __init__(
        self, names: list[str], kinds: Sequence[Sequence[str]], tokenizer: BytePairs, device: torch.device
    ) -> None:
        said = [SAYINGS.get(name, (name,)) for name in names]
        most = max(map(len, said))
        filled = [(own * most)[:most] for own in said]
        templates = [one for kind in kinds for one in kind]
        tokens = [[tokenizer([one.replace("{}", way) for one in templates]) for way in own] for own in filled]
        self.tokens = torch.stack([torch.stack(own) for own in tokens]).to(device)
        self.counts = torch.tensor([len(kind) for kind in kinds], device=device)
        self.firsts = self.counts.cumsum(dim=0) - self.counts

    def draw(self, labels: Tensor, said: Tensor) -> Tensor:
        """(N, L) a caption each, of the kind ``said``."""
        way = torch.randint(self.tokens.shape[1], labels.shape, device=labels.device)
        template = (torch.rand(labels.shape, device=labels.device) * self.counts[said]).long()
        return self.tokens[labels, way, self.firsts[said] + template]


@torch.no_grad()
def accuracy(model: MiniClip, tokenizer: BytePairs, names: list[str], seen: Augmenter, x: Tensor, y: Tensor) -> float:
    """Zero-shot over these names, answered by WATT's eight templates."""
    network = zero_shot(model, tokenizer, names, "watt8")
    parts = zip(x.split(1000), y.split(1000), strict=True)
    return sum(int((network(seen.normalise(own)).argmax(1) == right).sum()) for own, right in parts) / len(x)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, nargs="+", required=True)
    parser.add_argument("--out", type=Path, default=Path("src/polytta/models/assets"))
    parser.add_argument("--minutes", type=float, default=4.0)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--smoke", action="store_true", help="a few steps on a few images: does it run at all?")
    options = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(options.seed)
    arrays, names = read(options.data, 256 if options.smoke else None)
    first = len(np.unique(arrays["y_test"]))
    sayings = [way for name in names for way in SAYINGS.get(name, (name,))]
    pairs = learn_pairs([one.replace("{}", way) for one in CAPTIONS for way in sayings], PAIRS)
    tokenizer = BytePairs(pairs, LENGTH)
    recipe = replace(RECIPES["cifar10_vit_ln"], batch=64 if options.smoke else options.batch, epochs=0)
    seen = Augmenter(BUNDLED["cifar10_vit_ln"], recipe, device)
    padded = np.pad(arrays["x_train"], ((0, 0), (PAD, PAD), (PAD, PAD), (0, 0)), mode="reflect")
    x, y = torch.from_numpy(padded).to(device), torch.from_numpy(arrays["y_train"]).to(device)
    tests = torch.from_numpy(arrays["x_test"]).to(device), torch.from_numpy(arrays["y_test"]).to(device)
    model = MiniClip(tokenizer.size).to(device)
    captions, optimizer, average = (
        Captions(names, [CAPTIONS], tokenizer, device),
        make_optimizer(model, recipe),
        Average(model, 0.999),
    )
    started, steps, limit = time.perf_counter(), 0, 60 * options.minutes * 0.95
    while True:
        progress = steps / 6 if options.smoke else (time.perf_counter() - started) / limit
        if progress >= 1:
            break
        for group in optimizer.param_groups:
            group["lr"] = rate(progress, recipe)
        index = torch.randint(len(x), (recipe.batch,), device=device)
        with torch.autocast("cuda", torch.bfloat16) if device.type == "cuda" else nullcontext():
            images = model.encode_image(seen(x, index))
            text = model.encode_text(captions.draw(y[index], torch.zeros_like(index)))
        true = y[index].unsqueeze(1) == y[index].unsqueeze(0)
        loss = contrastive_loss(images.float(), text.float(), model.logit_scale.clamp(max=math.log(100)), true)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.clip_norm)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        average.update()
        steps += 1
        if steps % 500 == 0:
            print(f"step {steps} loss {loss.item():.3f} {100 * progress:.0f} % of the time", flush=True)
    average.copy_to_module()
    model.logit_scale.data.clamp_(max=math.log(100))
    options.out.mkdir(parents=True, exist_ok=True)
    file = options.out / "mini_clip.safetensors"
    save_file({name: value.half().contiguous().cpu() for name, value in model.state_dict().items()}, file)
    file.chmod(0o644)
    (options.out / "mini_clip.json").write_text(json.dumps({"pairs": pairs, "length": LENGTH}) + "\n")
    model.load_state_dict({name: value.float() for name, value in load_file(file).items()})
    scored = accuracy(model.eval(), tokenizer, names[:first], seen, *tests)
    entry = {
        "file": file.name,
        "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
        "bytes": file.stat().st_size,
        "parameters": sum(p.numel() for p in model.parameters()),
        "image_size": SIZE,
        "test_accuracy": scored,
        "test_images": len(tests[0]),
        "trained_on": [path.stem for path in options.data],
        "names": names,
        "recipe": {**asdict(recipe), "epochs": round(steps * recipe.batch / len(x), 1)},
        "seed": options.seed,
        "torch": torch.__version__,
        "minutes": round((time.perf_counter() - started) / 60, 2),
    }
    record(options.out, "mini_clip", entry)
    print(f"mini_clip: {100 * scored:.2f} % zero-shot, {entry['bytes']} bytes, {steps} steps", flush=True)


if __name__ == "__main__":
    main()
