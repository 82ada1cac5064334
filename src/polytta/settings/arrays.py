"""Options that come as NumPy values or tensors, as the plain values they hold."""

from dataclasses import fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from polytta.settings.settings import Settings


def without_arrays(settings: Settings) -> Settings:
    """Arrays and tensors as lists, NumPy's numbers as Python's; tables and objects as they are."""
    return replace(settings, **{f.name: _plain(getattr(settings, f.name)) for f in fields(settings)})


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Tensor) and value.layout is torch.strided and not value.is_nested and value.dim():
        return value.tolist()
    if isinstance(value, np.ndarray) and value.ndim:
        return value.tolist()
    if isinstance(value, list | tuple) and any(isinstance(one, np.generic) for one in value):
        return [_plain(one) for one in value]
    return value
