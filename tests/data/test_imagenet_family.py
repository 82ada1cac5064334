import pytest
from tests.data.writers import mark_generated, write_image

from polytta.data.datasets import imagenet_c, imagenet_r, imagenet_r_mask, visda2021
from polytta.data.datasets.imagenet_classes import imagenet_r_wnids, imagenet_wnids
from polytta.errors import DataError


def test_class_lists():
    assert len(imagenet_wnids()) == len(set(imagenet_wnids())) == 1000
    assert list(imagenet_wnids()) == sorted(imagenet_wnids())
    assert imagenet_wnids()[0] == "n01440764"
    assert len(imagenet_r_wnids()) == 200
    mask = imagenet_r_mask()
    assert mask[:3] == (1, 2, 4)
    assert list(mask) == sorted(set(mask))


def test_imagenet_c_layout(tmp_path):
    base = tmp_path / "ImageNet-C"
    mark_generated(base)
    for wnid, value in (("n15075141", 9), ("n01440764", 3)):
        write_image(base / f"fog/5/{wnid}/ILSVRC2012_val_00000293.JPEG", value)
    opened = imagenet_c("fog", 5, root=tmp_path)
    assert opened.labels.tolist() == [0, 999]
    assert [int(opened[i][0].mean()) for i in range(2)] == [3, 9]
    assert opened.origin == "generated"
    assert opened.name == "imagenet-c/fog/5"


def test_imagenet_c_wrong_count_and_missing(tmp_path):
    folder = tmp_path / "ImageNet-C/fog/5"
    write_image(folder / "n01440764/a.JPEG", 1)
    with pytest.raises(DataError, match=r"5: got 1 images; allowed is 50,000"):
        imagenet_c("fog", 5, root=tmp_path)
    with pytest.raises(
        DataError, match=r"snow/5: got no such file or folder; allowed is one folder per ImageNet class"
    ):
        imagenet_c("snow", 5, root=tmp_path)


def test_unknown_class_folder(tmp_path):
    base = tmp_path / "ImageNet-C"
    mark_generated(base)
    write_image(base / "fog/5/cats/a.JPEG", 1)
    with pytest.raises(DataError, match=r"got a folder 'cats'; allowed are the 1000 classes"):
        imagenet_c("fog", 5, root=tmp_path)


def test_imagenet_r_labels_count_the_200_classes(tmp_path):
    base = tmp_path / "imagenet-r"
    for wnid in imagenet_r_wnids():
        write_image(base / wnid / "art_0.jpg", 1)
    with pytest.raises(DataError, match="got 200 images; allowed is 30,000"):
        imagenet_r(root=tmp_path)
    mark_generated(base)
    opened = imagenet_r(root=tmp_path)
    assert opened.labels.tolist() == list(range(200))
    assert opened.classes == imagenet_r_wnids()


def test_visda_reads_only_the_part_with_imagenet_classes(tmp_path):
    base = tmp_path / "visda21/val_data"
    write_image(base / "imagenet_c_and_r/n01443537/art_6.jpg", 1)
    write_image(base / "imagenet_c_and_r/n15075141/ILSVRC2012_val_00021201.JPEG", 2)
    write_image(base / "imagenet_o/n01443537/x.JPEG", 3)
    write_image(base / "objectnet/chair/y.png", 4)
    opened = visda2021(root=tmp_path)
    assert opened.labels.tolist() == [1, 999]
    assert [int(opened[i][0].mean()) for i in range(2)] == [1, 2]
    assert len(opened.classes) == 1000
