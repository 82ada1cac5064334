import numpy as np
import pytest
import torch
from PIL import Image

from polytta.errors import InputError
from polytta.models import Preprocessing
from polytta.models.preprocessing import IMAGENET_MEAN, under_protocol

HALF = Preprocessing((0.5, 0.5, 0.5), (0.5, 0.5, 0.5), size=8, resize=10)


def picture(height, width):
    return np.random.default_rng(0).integers(0, 256, (height, width, 3), np.uint8)


def test_image_of_the_right_size_is_only_normalised():
    image = picture(8, 8)
    expected = torch.from_numpy(image).permute(2, 0, 1) / 127.5 - 1
    assert torch.allclose(HALF([image])[0], expected, atol=1e-6)


def test_other_sizes_are_resized_by_the_shorter_side_and_cut_in_the_middle():
    image = picture(20, 40)
    resized = np.asarray(Image.fromarray(image).resize((20, 10), Image.Resampling.BILINEAR))[1:9, 6:14]
    assert torch.allclose(HALF([image]), HALF([resized]))
    assert HALF([picture(8, 8), picture(33, 9), picture(5, 7)]).shape == (3, 3, 8, 8)


def test_squash_changes_the_aspect_ratio():
    squash = Preprocessing(HALF.mean, HALF.std, 8, 10, "bicubic", "squash")
    image = picture(20, 40)
    resized = np.asarray(Image.fromarray(image).resize((10, 10), Image.Resampling.BICUBIC))[1:9, 1:9]
    assert torch.allclose(squash([image]), squash([resized]))


@pytest.mark.parametrize("image", [np.zeros((8, 8), np.uint8), np.zeros((8, 8, 3)), np.zeros((3, 8, 8), np.uint8)])
def test_refuses_other_arrays(image):
    with pytest.raises(InputError, match="uint8"):
        HALF([image])


def test_protocols():
    assert under_protocol(HALF, "correct", imagenet_model=True) is HALF
    sar = under_protocol(HALF, "sar2023", imagenet_model=True)
    assert sar.mean == IMAGENET_MEAN
    assert sar.protocol == "sar2023"
    with pytest.raises(InputError, match="allowed for ImageNet classifiers"):
        under_protocol(HALF, "sar2023", imagenet_model=False)
    with pytest.raises(InputError, match="allowed are correct and sar2023"):
        under_protocol(HALF, "imagenet", imagenet_model=True)
