"""How many images BatchNorm needs before it may go by them alone: stored, blended and batch statistics by batch size.

    python benchmarks/small_batches.py [images per corruption] [method]

The bundled ResNet-BN on bundled images under the four extra corruptions, severities 3 and 5, and clean: none of the
corruptions that results are reported on.
"""

import sys

import numpy as np
import torch

import polytta
from polytta.data.bundled import load_cifar10_subset
from polytta.data.corruption_names import EXTRA_CORRUPTIONS
from polytta.data.corruptions import corrupt

MODEL = "bundled/cifar10_resnet_bn"
SIZES = (2, 4, 8, 16, 32)
KINDS = ("source", "blend", "batch")


def main(count: int = 160, method: str = "norm") -> None:
    torch.set_num_threads(1)
    data = load_cifar10_subset()
    chosen = np.random.default_rng(0).permutation(len(data))[:count]
    images, labels = np.stack([data[int(one)][0] for one in chosen]), torch.from_numpy(data.labels[chosen]).long()
    made = polytta.models.create(MODEL)
    streams = {"clean": images}
    for name in EXTRA_CORRUPTIONS:
        for severity in (3, 5):
            streams[f"{name} {severity}"] = corrupt(images, name, severity, constants="cifar", ids=chosen)
    ready = {name: made.preprocessing(list(stream)) for name, stream in streams.items()}
    print(f"{method}, {count} images of each; percent right, mean (worst over source) over {', '.join(ready)}")
    print(f"{'batch':>6}" + "".join(f"{kind:>18}" for kind in KINDS), flush=True)
    for size in SIZES:
        told, source = [], {}
        for kind in KINDS:
            scores = {}
            for name, x in ready.items():
                adapted = polytta.adapt(made.module, method, statistics=kind, guard="off")
                answers = torch.cat([adapted(x[at : at + size]).argmax(1) for at in range(0, count, size)])
                scores[name] = 100 * float((answers == labels).float().mean())
            source = source or scores
            worst = min(scores[name] - source[name] for name in scores)
            told.append(f"{np.mean(list(scores.values())):.1f} ({worst:+.1f})")
        print(f"{size:>6}" + "".join(f"{one:>18}" for one in told), flush=True)


if __name__ == "__main__":
    main(*(int(one) if one.isdecimal() else one for one in sys.argv[1:]))
