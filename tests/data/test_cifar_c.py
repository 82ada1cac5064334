import numpy as np
import pytest
from tests.data.writers import mark_generated

from polytta.data.datasets import cifar10_c, cifar100_c
from polytta.errors import DataError, InputError


def write(folder, corruption, images_per_severity, generated):
    folder.mkdir(parents=True)
    if generated:
        mark_generated(folder)
    rows = 5 * images_per_severity
    images = np.lib.format.open_memmap(folder / f"{corruption}.npy", "w+", np.uint8, (rows, 32, 32, 3))
    images[::images_per_severity, 0, 0, 0] = np.arange(1, 6)
    labels = np.tile(np.arange(images_per_severity) % 10, 5).astype(np.uint8)
    np.save(folder / "labels.npy", labels)


@pytest.mark.parametrize("severity", [1, 3, 5])
def test_official_layout(tmp_path, severity):
    write(tmp_path / "CIFAR-10-C", "fog", 10_000, generated=False)
    opened = cifar10_c("fog", severity, root=tmp_path)
    assert len(opened) == 10_000
    assert opened.name == f"cifar10-c/fog/{severity}"
    assert opened.origin == "official"
    assert opened[0][0][0, 0, 0] == severity
    assert opened[13][1] == 3
    assert isinstance(opened.images, np.memmap)


def test_generated_data_may_be_smaller_and_say_so(tmp_path, monkeypatch):
    write(tmp_path / "CIFAR-100-C", "snow", 20, generated=True)
    monkeypatch.setenv("POLYTTA_DATA", str(tmp_path))
    opened = cifar100_c("snow", 2)
    assert len(opened) == 20
    assert opened.origin == "generated"
    assert len(opened.classes) == 100


def test_wrong_count_names_path_and_expectation(tmp_path):
    write(tmp_path / "CIFAR-10-C", "fog", 20, generated=False)
    with pytest.raises(DataError, match=r"fog\.npy: got 100 images; allowed is 50,000"):
        cifar10_c("fog", root=tmp_path)


def test_missing_file_names_path_and_expectation(tmp_path):
    write(tmp_path / "CIFAR-10-C", "fog", 20, generated=True)
    with pytest.raises(
        DataError, match=r"snow\.npy: got no such file or folder; allowed is the images of CIFAR-10-C under snow"
    ):
        cifar10_c("snow", root=tmp_path)


@pytest.mark.parametrize(("corruption", "severity"), [("rain", 1), ("fog", 6), ("fog", 0)])
def test_unknown_corruption_or_severity(tmp_path, corruption, severity):
    with pytest.raises(InputError, match=r"got .*; allowed are"):
        cifar10_c(corruption, severity, root=tmp_path)


def test_wrong_shape_and_labels(tmp_path):
    folder = tmp_path / "CIFAR-10-C"
    mark_generated(folder)
    np.save(folder / "labels.npy", np.zeros(5, np.uint8))
    np.save(folder / "fog.npy", np.zeros((5, 32, 32), np.uint8))
    with pytest.raises(DataError, match=r"allowed is uint8 \(N, 32, 32, 3\)"):
        cifar10_c("fog", root=tmp_path)
    np.save(folder / "fog.npy", np.zeros((10, 32, 32, 3), np.uint8))
    with pytest.raises(DataError, match="got 5 labels; allowed is 10"):
        cifar10_c("fog", root=tmp_path)


def test_no_data_folder_is_one_sentence(monkeypatch):
    monkeypatch.delenv("POLYTTA_DATA", raising=False)
    with pytest.raises(InputError, match="root: got none, and POLYTTA_DATA is not set"):
        cifar10_c("fog")
