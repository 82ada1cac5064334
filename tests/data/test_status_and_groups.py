import numpy as np
import pytest
from tests.data.writers import mark_generated, write_idx, write_image

from polytta.data.datasets import status
from polytta.data.datasets.idx import IMAGES, LABELS
from polytta.data.groups import group_accuracy
from polytta.errors import InputError


def test_status_lists_every_dataset_with_path_and_source(tmp_path):
    listed = status(tmp_path)
    assert [s.name for s in listed] == [
        "imagenet-c",
        "cifar10-c",
        "cifar100-c",
        "colored-mnist",
        "waterbirds",
        "imagenet-r",
        "visda2021",
    ]
    assert not any(s.present for s in listed)
    assert all(s.source and s.path.parent == tmp_path and s.origin is None for s in listed)


def test_status_finds_what_is_there(tmp_path):
    write_idx(tmp_path / f"MNIST/raw/{IMAGES}", np.zeros((1, 2, 2)))
    write_idx(tmp_path / f"MNIST/{LABELS}", np.zeros(1))
    write_image(tmp_path / "imagenet-r/n01443537/a.jpg", 1)
    mark_generated(tmp_path / "imagenet-r")
    found = {s.name: s.origin for s in status(tmp_path) if s.present}
    assert found == {"colored-mnist": "official", "imagenet-r": "generated"}


def test_group_accuracy():
    result = group_accuracy([1, 1, 1, 0, 1, 0], [0, 0, 0, 0, 3, 3])
    assert result.plain == pytest.approx(4 / 6)
    assert result.per_group == {0: 0.75, 3: 0.5}
    assert result.group_mean == pytest.approx(0.625)
    assert result.worst_group == 0.5


@pytest.mark.parametrize(("correct", "groups"), [([], []), ([1], [1, 2])])
def test_group_accuracy_refuses(correct, groups):
    with pytest.raises(InputError, match="equally long"):
        group_accuracy(correct, groups)
