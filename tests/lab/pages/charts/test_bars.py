from tests.lab.pages.charts.drawn import parsed, texts

from polytta.lab.pages.charts import Bar, bars_svg


def test_bars_start_at_zero_and_gains_carry_their_sign() -> None:
    bars = [Bar("<b>&", 1, -2.0, 1.0), Bar("flat", 2, 0.0), Bar("up", 3, 4.0)]
    root = parsed(bars_svg(bars, "points & more", 'a "plot"', signed=True))
    (zero,) = (line for line in root.iter("line") if line.get("class") == "axis")
    below, flat, above = root.iter("rect")
    at_zero = float(zero.get("x1", ""))
    assert float(below.get("x", "")) + float(below.get("width", "")) == at_zero
    assert float(flat.get("width", "")) == 0
    assert float(above.get("x", "")) == at_zero
    assert float(above.get("width", "")) > float(below.get("width", "")) > 0
    assert {"-2.0", "0.0", "+4.0", "<b>&", "points & more"} <= set(texts(root))


def test_errors_have_whiskers_within_the_axis() -> None:
    root = parsed(bars_svg([Bar("a", 1, 3.0, 5.0), Bar("b", 2, 1.0)], "points", "bars", signed=False))
    (whisker,) = (line for line in root.iter("line") if line.get("class") == "whisker")
    ticks = [float(line.get("x1", "")) for line in root.iter("line") if line.get("class") in ("axis", "grid")]
    assert min(ticks) <= float(whisker.get("x1", "")) < float(whisker.get("x2", "")) <= max(ticks)
    assert "3.0" in texts(root)


def test_long_names_push_the_bars_aside() -> None:
    def start(name: str) -> float:
        root = parsed(bars_svg([Bar(name, 1, 3.0)], "points", "bars", signed=False))
        return float(next(root.iter("rect")).get("x", ""))

    assert start("Zero-shot") > 9 * 8
    assert start("a") == start("Tent")
