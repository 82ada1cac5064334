from polytta.lab.bench.labels import distinct_names, shortened


def test_only_namesakes_say_in_what_they_differ() -> None:
    settings = [{"lr": 1, "seed": 0}, {"lr": 2, "seed": 0}, {"lr": 3, "seed": 0}]
    assert distinct_names(["tent", "tent", "sar"], settings) == ["tent (lr=1)", "tent (lr=2)", "sar"]


def test_a_setting_that_only_one_has_tells_them_apart() -> None:
    assert distinct_names(["tent", "tent"], [{"lr": 1}, {}]) == ["tent (lr=1)", "tent"]


def test_long_values_are_cut() -> None:
    assert shortened("x" * 80) == "x" * 80
    assert shortened("x" * 81) == "x" * 80 + "..."
