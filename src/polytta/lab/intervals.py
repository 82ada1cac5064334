"""How far a mean may be off: Student's t where something was repeated, counted images where nothing was.

p = I_x(ν/2, 1/2),  x = ν / (ν + t²)      two-sided, for ν degrees of freedom (Abramowitz and Stegun 26.7.1)
"""

import math
from collections.abc import Sequence
from functools import cache
from statistics import fmean

# Below three values a spread says next to nothing of itself.
FEWEST = 3


def t_chance(t: float, freedom: int) -> float:
    """Probability of a |t| at least this large where there is no difference."""
    return _incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))


@cache
def t_point(freedom: int) -> float:
    """The t that chance exceeds, either way, once in twenty times."""
    low, high = 0.0, 1000.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if t_chance(middle, freedom) > 0.05 else (low, middle)
    return high


def margin_of_mean(values: Sequence[float]) -> float:
    """Half the width of the 95 % interval of the mean of several values."""
    return t_point(len(values) - 1) * spread(values) / math.sqrt(len(values))


def chance_of_mean(values: Sequence[float]) -> float:
    """Probability of a mean at least this far from 0 where the values scatter about 0."""
    error = spread(values) / math.sqrt(len(values))
    if error == 0:
        return 0.0 if any(values) else 1.0
    return t_chance(fmean(values) / error, len(values) - 1)


def margin_of_share(percent: float, images: int) -> float:
    """Half the width of the 95 % interval of a percentage over so many images (Wilson's, the wider side).

    The plain formula would have none right of five be certain.
    """
    if not images:
        return 100.0
    share, z = percent / 100, 1.96
    centre = (share + z * z / (2 * images)) / (1 + z * z / images)
    half = z / (1 + z * z / images) * math.sqrt(share * (1 - share) / images + z * z / (4 * images * images))
    return 100 * (abs(centre - share) + half)


def _incomplete_beta(a: float, b: float, x: float) -> float:
    if x <= 0 or x >= 1:
        return min(max(x, 0.0), 1.0)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    # The continued fraction converges quickly on one side of the mean only.
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(a, b, x) / a
    return 1 - front * _fraction(b, a, 1 - x) / b


def _fraction(a: float, b: float, x: float) -> float:
    """Lentz's evaluation of the continued fraction of the incomplete beta function."""
    tiny = 1e-300
    c, d = 1.0, 1 / _kept_from_zero(1 - (a + b) * x / (a + 1), tiny)
    value = d
    for m in range(1, 300):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / _kept_from_zero(1 + numerator * d, tiny)
            c = _kept_from_zero(1 + numerator / c, tiny)
            value *= c * d
        if abs(c * d - 1) < 1e-14:
            break
    return value


def _kept_from_zero(value: float, tiny: float) -> float:
    return value if abs(value) > tiny else tiny


def spread(values: Sequence[float]) -> float:
    """Sample standard deviation; that of the standard library is exact, and too slow for large tables."""
    mean = fmean(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
