"""Teaches the mini CLIP's text encoder what templates say, in minutes on two CPU cores.

    python scripts/teach_templates.py --data cifar10.npz fashion_mnist.npz mnist.npz

The second half of its training. Captions of the first (scripts/train_mini_clip.py) say the class alone, and a text
encoder that learns from them hears nothing else: all templates become one. Here the image encoder is locked and the
text encoder learns on, contrastively, from images that are also shrunk, cut, recoloured and the like, with captions
that say so (scripts/caption_styles.py). Locking the image encoder is Zhai et al., "LiT: Zero-Shot Transfer with
Locked-image text Tuning", CVPR 2022; it lets all images be encoded once, before. The archives are those of the first
half.

Writes mini_clip.safetensors (fp16) and its entry of assets.json anew. Noise, blur and what else test streams are
corrupted by is in no image and in no caption.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from caption_styles import STYLES, styled, true_of
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn import functional as F
from tqdm import tqdm
from train_mini_clip import Captions, accuracy, read
from train_sources import PAD, RECIPES, Augmenter, Average, make_optimizer, rate, record

from polytta.models.bundled import BUNDLED
from polytta.models.byte_pairs import BytePairs
from polytta.models.mini_clip import MiniClip, contrastive_loss

AT_ONCE = 500


@torch.no_grad()
def encoded(model: MiniClip, seen: Augmenter, padded: Tensor, index: Tensor, share: float) -> tuple[Tensor, Tensor]:
    """(N, D) unit features of images, that share of them in a style other than the first, and (N,) which."""
    features, styles = list[Tensor](), list[Tensor]()
    for part in tqdm(index.split(AT_ONCE), desc=f"images, {share:.0%} in a style", unit_scale=AT_ONCE, unit=" images"):
        shown, style = styled(seen(padded, part), share)
        features.append(F.normalize(model.encode_image(shown), dim=-1))
        styles.append(style)
    return torch.cat(features), torch.cat(styles)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, nargs="+", required=True)
    parser.add_argument("--assets", type=Path, default=Path("src/polytta/models/assets"), help="read and written")
    parser.add_argument("--images", type=int, help="of the training images; all by default")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    started = time.perf_counter()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(options.seed)
    arrays, names = read(options.data, None)
    stored = json.loads((options.assets / "mini_clip.json").read_text())
    tokenizer = BytePairs([(first, second) for first, second in stored["pairs"]], stored["length"])
    model, file = MiniClip(tokenizer.size), options.assets / "mini_clip.safetensors"
    model.load_state_dict({name: value.float() for name, value in load_file(file).items()})
    model = model.to(device).eval().requires_grad_(False)
    recipe = replace(RECIPES["cifar10_vit_ln"], batch=options.batch, epochs=0, peak_lr=1e-3)
    seen = Augmenter(BUNDLED["cifar10_vit_ln"], recipe, device)
    padded = np.pad(arrays["x_train"], ((0, 0), (PAD, PAD), (PAD, PAD), (0, 0)), mode="reflect")
    x, y = torch.from_numpy(padded).to(device), torch.from_numpy(arrays["y_train"]).to(device)
    index = torch.randperm(len(x), device=device)[: options.images]
    parts = [encoded(model, seen, x, index, share) for share in (0.0, 1.0)]
    features, style = (torch.cat(own) for own in zip(*parts, strict=True))
    labels = y[index].repeat(2)

    read_by = [part for name, part in model.named_parameters() if not name.startswith("visual.")]
    for one in read_by:
        one.requires_grad_(True)
    kinds = [one.captions for one in STYLES]
    captions = Captions(names, kinds, tokenizer, device)
    learning = torch.nn.ParameterDict({str(number): one for number, one in enumerate(read_by)})
    optimizer, average = make_optimizer(learning, recipe), Average(model, 0.999)
    for step in (progress := tqdm(range(options.steps), desc="captions", unit=" steps")):
        for group in optimizer.param_groups:
            group["lr"] = rate(step / options.steps, recipe)
        drawn = torch.randint(len(labels), (recipe.batch,), device=device)
        # What is true of all is said of half of the others too.
        said = torch.where(torch.rand(recipe.batch, device=device) < 0.5, style[drawn], torch.zeros_like(style[drawn]))
        tokens = captions.draw(labels[drawn], said)
        # What comes after a sentence is not read.
        text = model.encode_text(tokens[:, : int(tokens.argmax(dim=1).max()) + 1])
        true = true_of(labels[drawn], style[drawn], said)
        loss = contrastive_loss(features[drawn], text, model.logit_scale.clamp(max=math.log(100)), true)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(read_by, recipe.clip_norm)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        average.update()
        if step % 100 == 0:
            progress.set_postfix(loss=f"{loss.item():.3f}")
    average.copy_to_module()

    save_file({name: value.half().contiguous().cpu() for name, value in model.state_dict().items()}, file)
    file.chmod(0o644)
    model.load_state_dict({name: value.float() for name, value in load_file(file).items()})
    tests = torch.from_numpy(arrays["x_test"]).to(device), torch.from_numpy(arrays["y_test"]).to(device)
    first = len(np.unique(arrays["y_test"]))
    scored = accuracy(model, tokenizer, names[:first], seen, *tests)
    entry = json.loads((options.assets / "assets.json").read_text())["models"]["mini_clip"]
    entry |= {
        "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
        "bytes": file.stat().st_size,
        "test_accuracy": scored,
        "templates_taught": {
            "images": len(index),
            "steps": options.steps,
            "batch": recipe.batch,
            "peak_lr": recipe.peak_lr,
            "seed": options.seed,
            "torch": torch.__version__,
            "minutes": round((time.perf_counter() - started) / 60, 2),
        },
    }
    record(options.assets, "mini_clip", entry)
    print(f"mini_clip: {100 * scored:.2f} % zero-shot, {entry['bytes']} bytes")


if __name__ == "__main__":
    main()
