"""A batch of one class is told from a shift of images of many."""

import pytest
import torch
from torch import Tensor, nn

import polytta
from polytta.data.bundled import example_batches
from polytta.models import create
from polytta.network.one_sided import OneSided


@pytest.fixture(scope="module")
def network() -> nn.Module:
    return create("bundled/cifar10_resnet_bn").module


def pictures(
    corruption: str | None, *, label: int | None = None, images: int = 32, seed: int = 0
) -> tuple[Tensor, Tensor]:
    """Of one class, or of all."""
    preprocessing = create("bundled/cifar10_resnet_bn").preprocessing
    wanted = images if label is None else 20 * images
    x, labels = next(example_batches(preprocessing, corruption=corruption, images=wanted, batch_size=wanted, seed=seed))
    kept = torch.arange(wanted) if label is None else torch.nonzero(labels == label).flatten()
    return x[kept[:images]], labels[kept[:images]]


@pytest.mark.parametrize("label", [0, 8])
@pytest.mark.parametrize("corruption", [None, "jpeg_compression"])
def test_one_class_is_noticed(network: nn.Module, corruption: str | None, label: int) -> None:
    x, labels = pictures(corruption, label=label)
    assert len(x) == 32
    assert OneSided(network)(x)
    found = polytta.adapt(network, "norm", particles=1, guard="default")(x).argmax(dim=1)
    assert float((found == labels).float().mean()) > 0.7, "statistics of the batch hide the class"


@pytest.mark.parametrize("corruption", [None, "contrast", "defocus_blur", "pixelate", "fog"])
def test_no_shift_of_many_classes_is_taken_for_one(network: nn.Module, corruption: str | None) -> None:
    x, _ = pictures(corruption)
    assert not OneSided(network)(x)


@pytest.mark.parametrize("seed", [1, 3])
def test_a_shift_that_looks_like_a_class_is_adapted_to(network: nn.Module, seed: int) -> None:
    """Pixelated images move late layers and leave early ones, as a class does, but make the network unsure."""
    x, labels = pictures("pixelate", seed=seed)
    assert OneSided(network)._moved_late(x[::4]), "the test needs a reason to doubt"
    stored = polytta.adapt(network, "source", particles=1, statistics="source", guard="default")
    guarded = polytta.adapt(network, "norm", particles=1, guard="default")
    right = [float((adapted(x).argmax(dim=1) == labels).float().mean()) for adapted in (stored, guarded)]
    assert right[1] > right[0] + 0.15
