"""The shipped weights against their record: hash, size, accuracy; skipped until the files are there."""

from importlib.resources import files

import numpy as np
import pytest
import torch

from polytta.clip import TEMPLATES
from polytta.data.bundled import load_cifar10_subset
from polytta.data.datasets.cifar_classes import CIFAR10_CLASSES
from polytta.models import BUNDLED, bundled_records, create

TARGETS = {"cifar10_resnet_gn": 0.92, "cifar10_vit_ln": 0.88, "cifar10_resnet_bn": 0.93, "mini_clip": 0.85}
MOST_BYTES = {name: 8_000_000 if name == "mini_clip" else 4_000_000 for name in TARGETS}

pytestmark = pytest.mark.skipif(not bundled_records(), reason="no weights in polytta/models/assets yet")


def test_every_model_has_a_record():
    assert set(bundled_records()) >= set(BUNDLED)
    assert set(bundled_records()) <= set(TARGETS)


@pytest.mark.parametrize("name", bundled_records())
def test_record(name):
    record = bundled_records()[name]
    assert record["test_images"] == 10_000
    assert record["test_accuracy"] >= TARGETS[name]
    assert record["bytes"] == files("polytta.models").joinpath("assets", record["file"]).stat().st_size
    assert record["bytes"] <= MOST_BYTES[name]
    made = create(f"bundled/{name}")
    assert made.weights_sha256 == record["sha256"]
    if name in BUNDLED:
        assert record["parameters"] == sum(p.numel() for p in BUNDLED[name].build(10).parameters())
        assert (tuple(record["mean"]), tuple(record["std"])) == (BUNDLED[name].mean, BUNDLED[name].std)
    else:
        assert made.module.classes == CIFAR10_CLASSES == tuple(record["names"][:10])
        assert made.module.templates == TEMPLATES["watt8"]
        reader = create(f"bundled/{name}", classes=["cat", "a thing nobody has seen"], templates="photo")
        assert reader.num_classes == 2


@pytest.mark.parametrize("name", bundled_records())
def test_accuracy_on_the_bundled_images(name):
    """Every other bundled image, for time: 3 points are 3.5 standard errors of a share over 1,000."""
    model, subset = create(f"bundled/{name}"), load_cifar10_subset()
    images, labels = subset.images[::2], subset.labels[::2]
    hits = 0
    with torch.inference_mode():
        for start in range(0, len(images), 250):
            logits = model.module(model.preprocessing(images[start : start + 250]))
            hits += int((logits.argmax(1).numpy() == labels[start : start + 250]).sum())
    assert hits / len(images) == pytest.approx(bundled_records()[name]["test_accuracy"], abs=0.03)


def test_all_that_is_shipped_fits_into_20_mb():
    folders = (files("polytta.models").joinpath("assets"), files("polytta.data").joinpath("bundled"))
    sizes = [entry.stat().st_size for folder in folders for entry in folder.iterdir() if entry.is_file()]
    assert np.sum(sizes) <= 20_000_000
