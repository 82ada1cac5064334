import pytest

from polytta.lab.reproduce.published import published_rows

TABLES = ("tab:imagenet-c", "tab:noAug", "tab:augoptim", "tab:tent-grad", "tab:cifar-c", "tab:imagenet-c-mild")


def row(table: str, method: str, block: str | None = None, backbone: str | None = None):  # type: ignore[no-untyped-def]
    return next(row for row in published_rows(table, block, backbone) if row.method == method)


@pytest.mark.parametrize("table", TABLES)
def test_averages_are_those_of_their_rows_once_corrected(table: str) -> None:
    for found in published_rows(table):
        cells = [figure.value for column, figure in found.figures.items() if column != "average"]
        assert found.figures["average"].value == pytest.approx(sum(cells) / len(cells), abs=0.0501)


def test_a_wrong_average_keeps_what_was_printed_and_says_why() -> None:
    figure = row("tab:imagenet-c", "KL", "Label Shifts", "ViTBase-LN").figures["average"]
    assert (figure.printed, figure.corrected, figure.value) == (62.24, 63.29, 63.29)
    assert figure.remark is not None
    assert "62.24" in figure.remark


def test_cells_copied_wrongly_are_corrected_and_their_printed_mean_is_then_right() -> None:
    figures = row("tab:watt", "TPT").figures
    assert figures["fog"].printed == 30.81
    assert figures["fog"].value == 38.81
    assert figures["average"].corrected is None
    cells = [figure.value for column, figure in figures.items() if column != "average"]
    assert sum(cells) / len(cells) == pytest.approx(30.46, abs=0.005)


def test_both_columns_headed_gauss_are_there() -> None:
    figures = row("tab:cifar-c", "Grad", "CIFAR-10-C").figures
    assert (figures["gaussian_noise"].value, figures["gaussian_blur"].value) == (62.82, 85.73)
    assert len(figures) == 13


def test_doubted_values_are_marked() -> None:
    assert "normal" not in (row("tab:imagenet-c", "Grad", "Batch Size 1", "ViTBase-LN").figures["fog"].remark or "")
    source = row("tab:imagenet-c", "No adapt", "Batch Size 1", "ViTBase-LN")
    assert all("mean and standard deviation" in (figure.remark or "") for figure in source.figures.values())
    tent = row("tab:imagenet-c-mix-shift", "Tent", backbone="ResNet-50-GN").figures
    assert tent["top5"].remark is not None
    assert tent["accuracy"].remark is None
