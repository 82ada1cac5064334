"""How much templates differ for a CLIP: whether methods that go from one to the next have anywhere to go.

    python scripts/template_spread.py [--images 160]

Cosines of the text features of one class in two templates, and of two classes in one template; and the share of bundled
images that two templates take for different classes.
"""

from __future__ import annotations

import argparse

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


if __name__ == "__main__":
    main()
