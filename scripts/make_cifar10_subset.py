"""Cut the bundled images out of the CIFAR-10 test set: 200 per class by a fixed seed, exact pixels.

    PYTHONPATH=src python scripts/make_cifar10_subset.py --data cifar10.npz

Writes one lossless mosaic (40 rows of 50 images) and a table of indices, labels and pixel hash.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path

import numpy as np
from PIL import Image

from polytta.data.bundled import COLUMNS, MOSAIC, ROWS, TABLE

SEED = 2026
PER_CLASS = 200


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="npz with x_test and y_test")
    parser.add_argument("--out", type=Path, default=Path("src/polytta/data/bundled"))
    args = parser.parse_args()
    with np.load(args.data) as archive:
        images, labels = archive["x_test"], archive["y_test"]
    rng = np.random.default_rng(SEED)
    chosen = [rng.choice(np.flatnonzero(labels == c), PER_CLASS, replace=False) for c in range(10)]
    indices = np.sort(np.concatenate(chosen))
    pixels = np.ascontiguousarray(images[indices])
    tiles = pixels.reshape(ROWS, COLUMNS, 32, 32, 3).transpose(0, 2, 1, 3, 4)
    mosaic = Image.fromarray(tiles.reshape(32 * ROWS, 32 * COLUMNS, 3))
    mosaic.save(args.out / MOSAIC, "WEBP", lossless=True, quality=100, method=6)
    table = {
        "name": "cifar10-test-2000",
        "seed": SEED,
        "pixels_sha256": hashlib.sha256(pixels.tobytes()).hexdigest(),
        "test_indices": indices.tolist(),
        "labels": labels[indices].tolist(),
    }
    (args.out / TABLE).write_text(json.dumps(table, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
