import gzip

import numpy as np
import pytest
from tests.data.writers import write_idx

from polytta.data.datasets import colored_mnist
from polytta.data.datasets.idx import IMAGES, LABELS
from polytta.errors import DataError, InputError

DIGITS = np.arange(60_000) % 10


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    base = tmp_path_factory.mktemp("data")
    images = np.zeros((60_000, 28, 28), np.uint8)
    images[:, 3, 4] = 200
    write_idx(base / f"MNIST/raw/{IMAGES}", images)
    write_idx(base / f"MNIST/raw/{LABELS}", DIGITS)
    return base


def clean(start, stop):
    return (DIGITS[start:stop] >= 5).astype(int)


def test_deyo_test_labels_are_clean_and_colour_misleads(root):
    data = colored_mnist("deyo", "test", root=root)
    assert len(data) == 20_000
    assert (data.labels == clean(40_000, 60_000)).all()
    # red iff flipped label is 0, then flipped w.p. 0.9: red agrees with a clean 0 in 0.75*0.1 + 0.25*0.9
    assert abs((data.red == (data.labels == 0)).mean() - 0.3) < 0.01
    assert isinstance(data.digits, np.memmap)


@pytest.mark.parametrize(("split", "start", "agree"), [("train1", 0, 0.8), ("train2", 20_000, 0.9)])
def test_deyo_training_labels_are_noisy(root, split, start, agree):
    data = colored_mnist("deyo", split, root=root)
    assert len(data) == 20_000
    assert abs((data.labels != clean(start, start + 20_000)).mean() - 0.25) < 0.01
    assert abs((data.red == (data.labels == 0)).mean() - agree) < 0.01


@pytest.mark.parametrize(
    ("split", "size", "agree"), [("train", 30_000, 0.9), ("val", 10_000, 0.9), ("test", 20_000, 0.1)]
)
def test_ttab_labels_are_noisy_everywhere(root, split, size, agree):
    data = colored_mnist("ttab", split, root=root)
    assert len(data) == size
    start = {"train": 0, "val": 30_000, "test": 40_000}[split]
    assert abs((data.labels != clean(start, start + size)).mean() - 0.25) < 0.015
    assert abs((data.red == (data.labels == 0)).mean() - agree) < 0.01


def test_flips_follow_the_reference_order_of_draws(root):
    draws = np.random.RandomState(5)
    expected = []
    for digit in DIGITS[:50]:
        label = int(digit >= 5)
        label ^= int(draws.uniform() < 0.25)
        red = label == 0
        if draws.uniform() < 0.2:
            red = not red
        expected.append((label, red))
    data = colored_mnist("deyo", "train1", seed=5, root=root)
    assert list(zip(data.labels[:50].tolist(), data.red[:50].tolist(), strict=True)) == expected


def test_image_has_one_coloured_channel_and_a_group(root):
    data = colored_mnist(root=root)
    for index in range(4):
        image, label, group = data[index]
        channel = 0 if data.red[index] else 1
        assert image.shape == (28, 28, 3)
        assert image[3, 4].tolist() == [200 * (channel == 0), 200 * (channel == 1), 0]
        assert group == 2 * label + data.red[index]


def test_gzipped_files_and_wrong_counts(tmp_path):
    write_idx(tmp_path / f"MNIST/{IMAGES}", np.zeros((3, 28, 28)))
    write_idx(tmp_path / f"MNIST/{LABELS}", np.zeros(3))
    plain = tmp_path / f"MNIST/{LABELS}"
    (tmp_path / f"MNIST/{LABELS}.gz").write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()
    with pytest.raises(DataError, match="got 3 images; allowed is 60,000"):
        colored_mnist(root=tmp_path)


def test_missing_and_broken_files(tmp_path):
    with pytest.raises(DataError, match="train-images-idx3-ubyte: got no such file"):
        colored_mnist(root=tmp_path)
    write_idx(tmp_path / f"MNIST/raw/{LABELS}", np.zeros(3))
    path = tmp_path / f"MNIST/raw/{IMAGES}"
    path.write_bytes(b"\0\0\x08\x03")
    with pytest.raises(DataError, match="cut short"):
        colored_mnist(root=tmp_path)
    path.write_bytes(b"PNG!")
    with pytest.raises(DataError, match="allowed is an idx file"):
        colored_mnist(root=tmp_path)


def test_unknown_variant_or_split(tmp_path):
    with pytest.raises(InputError, match=r"variant: got .*; allowed are deyo, ttab"):
        colored_mnist("irm", root=tmp_path)
    with pytest.raises(InputError, match=r"split: got .*; allowed are train, val, test"):
        colored_mnist("ttab", "train1", root=tmp_path)
