"""Packs photographs from tar files into one archive that `polytta bench` corrupts and reads.

    python scripts/pack_photographs.py OUT.npz IMAGES.tar [MORE.tar ...] [--first 384] [--every 4 [--remainder 2]]

The tar files hold JPEG files named CLASS/anything, CLASS the number of the class, all of one size (224 x 224 for
ImageNet models, which then only normalise them). Archives follow one another in the order of their members' names.
"""

import argparse
import io
import tarfile
from pathlib import Path

import numpy as np
from PIL import Image


def photographs(path: Path) -> tuple[list[np.ndarray], list[int]]:
    with tarfile.open(path) as archive:
        members = sorted((member for member in archive.getmembers() if member.isfile()), key=lambda one: one.name)
        images = []
        for member in members:
            stored = archive.extractfile(member)
            assert stored is not None
            images.append(np.asarray(Image.open(io.BytesIO(stored.read())).convert("RGB")))
    return images, [int(member.name.split("/")[-2]) for member in members]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("tars", type=Path, nargs="+")
    parser.add_argument("--first", type=int, help="only so many, spread evenly over the classes")
    parser.add_argument("--every", type=int, default=1, help="only classes whose number is a multiple of this")
    parser.add_argument("--remainder", type=int, default=0, help="or, divided by it, leaves this")
    options = parser.parse_args()
    packed = [photographs(path) for path in options.tars]
    images = np.stack([image for own, _ in packed for image in own])
    labels = np.array([label for _, own in packed for label in own])
    wanted = labels % options.every == options.remainder
    if not wanted.any():
        parser.error(f"--remainder: got {options.remainder}; allowed are numbers from 0 to {options.every - 1}.")
    images, labels = images[wanted], labels[wanted]
    if options.first is not None:
        chosen = np.linspace(0, len(images) - 1, options.first).astype(int)
        images, labels = images[chosen], labels[chosen]
    np.savez(options.out, x=images, y=labels)
    print(f"wrote {len(images)} images of {images.shape[1]} x {images.shape[2]} to {options.out}")


if __name__ == "__main__":
    main()
