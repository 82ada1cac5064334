"""The colours of heights: dark is low, bright is high, in print and for the colour-blind too."""

# Eight stops of viridis (CC0).
_STOPS = (
    (68, 1, 84),
    (70, 50, 127),
    (54, 92, 141),
    (39, 127, 142),
    (31, 161, 135),
    (74, 194, 109),
    (159, 218, 58),
    (253, 231, 37),
)


def colour_at(share: float) -> str:
    """The colour at a share of the way from low (0) to high (1)."""
    place = min(max(share, 0.0), 1.0) * (len(_STOPS) - 1)
    lower = min(int(place), len(_STOPS) - 2)
    mixed = (round(a + (b - a) * (place - lower)) for a, b in zip(_STOPS[lower], _STOPS[lower + 1], strict=True))
    return "#{:02x}{:02x}{:02x}".format(*mixed)


def share_of(value: float, low: float, high: float) -> float:
    """How far a value is on the way from low to high; the middle where there is no way."""
    return (value - low) / (high - low) if high > low else 0.5
