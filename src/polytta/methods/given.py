"""What users give methods for numbers and views."""

from collections.abc import Sequence
from math import isfinite
from numbers import Real
from typing import Any

from torch import Tensor

from polytta.errors import ConfigError


def is_count(value: object, least: int = 1) -> bool:
    """Whether it is a whole number from ``least`` on."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def is_number(value: object) -> bool:
    """Whether it is a finite number."""
    return isinstance(value, Real) and not isinstance(value, bool) and isfinite(value)


def views_like(argument: str, made: Any, x: Tensor) -> Sequence[Tensor]:
    """The views a callable returned, of the shape of the images (K, B, ...) they are views of."""
    stacked = isinstance(made, Tensor) and made.dim() == x.dim() + 1
    views: list[Tensor] = []
    for view in made if isinstance(made, list | tuple) or stacked else [made]:
        if not isinstance(view, Tensor) or not _expands_to(x.shape, view.shape):
            got = tuple(view.shape) if isinstance(view, Tensor) else type(view).__name__
            raise ConfigError(
                f"method: got {got} from {argument} for images of {tuple(x.shape)}; allowed is a list of tensors of "
                "their shape."
            )
        views.append(view)
    return views


def _expands_to(whole: Sequence[int], shape: Sequence[int]) -> bool:
    own = (1,) * (len(whole) - len(shape)) + tuple(shape)
    return len(own) == len(whole) and all(one in (1, size) for one, size in zip(own, whole, strict=True))
