"""``bundled/mini_clip``: the CLIP shipped with the package, a zero-shot classifier over any class names.

``scripts/train_mini_clip.py`` makes its weights and byte pairs.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from polytta.clip import zero_shot
from polytta.errors import DataError
from polytta.models.bundled import BUNDLED
from polytta.models.byte_pairs import BytePairs
from polytta.models.mini_clip import MiniClip
from polytta.models.preprocessing import Preprocessing
from polytta.models.record import SourceModel
from polytta.models.shipped import ASSETS, bundled_records, load_shipped
from polytta.models.weights import WeightsPath, load_weights

NAME = "mini_clip"
_FIRST_CLASSES = 10
"""CIFAR-10's, which come first among the names it was trained on."""


def from_mini_clip(
    weights: WeightsPath | None, classes: Sequence[str] | None, templates: str | Sequence[str] | None
) -> SourceModel:
    """Over CIFAR-10's class names and WATT's eight templates unless others are given."""
    record = bundled_records().get(NAME)
    pairs = ASSETS.joinpath(f"{NAME}.json")
    if record is None or not pairs.is_file():
        raise DataError(f"model: got no {NAME} among the assets; allowed is what scripts/train_mini_clip.py makes.")
    read = json.loads(pairs.read_text("utf-8"))
    tokenizer = BytePairs([(first, second) for first, second in read["pairs"]], read["length"])
    clip = MiniClip(tokenizer.size)
    digest = load_weights(clip, weights) if weights is not None else load_shipped(NAME, clip)
    names = tuple(record["names"][:_FIRST_CLASSES]) if classes is None else classes
    module = zero_shot(clip.eval(), tokenizer, names, "watt8" if templates is None else templates)
    # It was trained on images as its image encoder's twin was.
    seen = BUNDLED["cifar10_vit_ln"]
    preprocessing = Preprocessing(seen.mean, seen.std, seen.image_size, seen.image_size)
    return SourceModel(f"bundled/{NAME}", module, preprocessing, len(module.classes), digest)
