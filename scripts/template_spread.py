"""How much templates differ for a CLIP: whether methods that go from one to the next have anywhere to go.

    python scripts/template_spread.py [--images 160]

Cosines of the text features of one class in two templates, and of two classes in one template; the share of bundled
images that two templates take for different classes; and which of the names in "a photo of a A or B or C", the kind of
sentence CLIPArTT writes, that sentence is closest to.
"""

from __future__ import annotations

import argparse
from itertools import permutations

import torch

from polytta.clip import ZeroShot
from polytta.data.bundled import example_batches
from polytta.models import create


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default="bundled/mini_clip")
    parser.add_argument("--images", type=int, default=160)
    parser.add_argument("--corruption", default="gaussian_noise")
    options = parser.parse_args()
    source = create(options.model)
    network = source.module
    assert isinstance(network, ZeroShot)
    text = network.text_features
    templates, classes = text.shape[:2]
    of_templates = torch.einsum("tcd,scd->tsc", text, text)[~torch.eye(templates, dtype=torch.bool)]
    of_classes = torch.einsum("tcd,ted->tce", text, text)[:, ~torch.eye(classes, dtype=torch.bool)]
    print(f"one class, two templates: cosine {of_templates.mean():.4f}, least {of_templates.min():.4f}")
    print(f"two classes, one template: cosine {of_classes.mean():.4f}, most {of_classes.max():.4f}")
    different, seen = 0.0, 0
    network.telling = True
    with torch.no_grad():
        for x, _ in example_batches(source.preprocessing, corruption=options.corruption, images=options.images):
            images = network(x)[:, -network.feature_size :]
            taken = (images @ text.mT).argmax(dim=-1)
            different += float((taken.unsqueeze(0) != taken.unsqueeze(1)).float().mean(dim=(0, 1)).sum())
            seen += len(x)
    share = 100 * different / seen * templates / (templates - 1)
    print(f"{options.corruption}, {seen} images: two templates disagree on {share:.2f} %")
    print(f'"a photo of a A or B or C" is closest to {closest(network)}')


def closest(network: ZeroShot) -> str:
    """Over all orders of three of the first ten classes."""
    names = network.classes[:10]
    alone = network.text.features([f"a photo of a {name}" for name in names])
    orders = torch.tensor(list(permutations(range(len(names)), 3)))
    sentences = [f"a photo of a {' or '.join(names[one] for one in order)}" for order in orders.tolist()]
    found = (network.text.features(sentences) @ alone.mT).argmax(dim=-1, keepdim=True)
    first, second, third = (100 * (found == orders).float().mean(dim=0)).tolist()
    other = 100 - first - second - third
    return f"A in {first:.0f} %, to B in {second:.0f} %, to C in {third:.0f} %, to another class in {other:.0f} %"


if __name__ == "__main__":
    main()
