import numpy as np

from polytta.lab.pages.charts.colours import colour_at, share_of


def test_higher_is_brighter() -> None:
    green = [int(colour_at(share)[3:5], 16) for share in np.linspace(0, 1, 20)]
    assert green == sorted(green)
    assert colour_at(-1) == colour_at(0)
    assert colour_at(2) == colour_at(1)


def test_share_of_the_way() -> None:
    assert share_of(3.0, 2.0, 6.0) == 0.25
    assert share_of(2.0, 2.0, 2.0) == 0.5
