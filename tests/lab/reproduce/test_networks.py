from pathlib import Path

import numpy as np
import pytest

from polytta.errors import DataError
from polytta.lab.reproduce import networks
from polytta.models import create


def test_colored_mnist_model_sees_digits_as_they_are() -> None:
    source = create("polytta.lab.reproduce.networks:resnet18_two")
    digits = [np.full((28, 28, 3), value, np.uint8) for value in (0, 255)]
    x = source.preprocessing(digits)
    assert x.shape == (2, 3, 28, 28)
    assert x[0, 2].eq(0).all()  # the third channel, which digits do not use, is not centred
    assert source.module(x).shape == (2, source.num_classes)


def test_waterbirds_model_sees_the_whole_picture() -> None:
    source = create("polytta.lab.reproduce.networks:resnet50_two")
    assert source.preprocessing([np.zeros((300, 400, 3), np.uint8)]).shape == (1, 3, 224, 224)
    assert source.preprocessing.fit == "squash"


@pytest.mark.parametrize(
    ("build", "file"),
    [
        (networks.clip_cifar10, "clip_vit_b32_laion2b"),
        (networks.clip_cifar100, "clip_vit_b32_laion2b"),
        (networks.openai_clip_cifar100, "clip_vit_b32_openai"),
    ],
)
def test_clip_says_where_its_weights_belong(
    build: object, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POLYTTA_DATA", str(tmp_path))
    with pytest.raises(DataError, match=file):
        build()  # type: ignore[operator]
