"""How a source model wants its images: size, resampling and normalisation, as one value for the records.

An image that already has the model's size is only normalised (ImageNet-C is stored cropped). Any other is
resized so that its shorter side, or with ``fit="squash"`` each side, is ``resize``, and cut in the middle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from polytta.errors import InputError

Triple: TypeAlias = tuple[float, float, float]
Protocol: TypeAlias = Literal["correct", "sar2023"]

IMAGENET_MEAN: Triple = (0.485, 0.456, 0.406)
