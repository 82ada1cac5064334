import io
import json
import tarfile

import numpy as np
import pytest
from PIL import Image
from tests.data.writers import mark_generated, write_image

from polytta.data.datasets import image_folder, npz_images, webdataset
from polytta.data.datasets.decode import decode_image
from polytta.errors import DataError


def png(value, size=(4, 4)):
    file = io.BytesIO()
    Image.new("RGB", size, (value, value, value)).save(file, "PNG")
    return file.getvalue()


def write_tar(path, members, mode="w"):
    with tarfile.open(path, mode) as tar:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))


def test_image_folder_sorts_classes_and_files(tmp_path):
    write_image(tmp_path / "dog/2.png", 4)
    write_image(tmp_path / "dog/10.png", 3)
    write_image(tmp_path / "cat/1.PNG", 1)
    (tmp_path / "cat/notes.txt").write_text("not an image")
    opened = image_folder(tmp_path)
    assert opened.classes == ("cat", "dog")
    assert opened.labels.tolist() == [0, 1, 1]
    assert [int(opened[i][0].mean()) for i in range(3)] == [1, 3, 4]
    assert opened.origin == "own"
    mark_generated(tmp_path)
    assert image_folder(tmp_path).origin == "generated"


def test_image_folder_without_classes_or_images(tmp_path):
    with pytest.raises(DataError, match="got no folders; allowed is one folder per class"):
        image_folder(tmp_path)
    (tmp_path / "cat").mkdir()
    with pytest.raises(DataError, match="got no images"):
        image_folder(tmp_path)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz(tmp_path, save):
    x = np.arange(3 * 4 * 4 * 3, dtype=np.uint8).reshape(3, 4, 4, 3)
    save(tmp_path / "toy.npz", x=x, y=np.array([2, 0, 1]))
    opened = npz_images(tmp_path / "toy.npz")
    assert (opened[1][0] == x[1]).all()
    assert opened.labels.tolist() == [2, 0, 1]
    assert opened.classes == ("0", "1", "2")
    assert isinstance(opened.images, np.memmap) == (save is np.savez)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": np.zeros((2, 4, 4, 3), np.uint8)}, "got no array y"),
        ({"x": np.zeros((2, 4, 4, 3)), "y": np.zeros(2, int)}, r"allowed is uint8 \(N, H, W, 3\)"),
        ({"x": np.zeros((2, 4, 4, 3), np.uint8), "y": np.zeros(3, int)}, "3 labels in y; allowed is 2"),
        ({"x": np.zeros((1, 4, 4, 3), np.uint8), "y": np.array([-1])}, "allowed are N labels from 0"),
        ({"x": np.zeros((1, 4, 4, 3), np.uint8), "y": np.array([{}])}, "as Python objects"),
    ],
)
def test_npz_refusals(tmp_path, arrays, message):
    np.savez(tmp_path / "toy.npz", **arrays)
    with pytest.raises(DataError, match=message):
        npz_images(tmp_path / "toy.npz")


def test_npz_that_is_no_archive(tmp_path):
    (tmp_path / "toy.npz").write_bytes(b"nothing")
    with pytest.raises(DataError, match="allowed is an npz archive"):
        npz_images(tmp_path / "toy.npz")
    with pytest.raises(DataError, match="got no such file"):
        npz_images(tmp_path / "none.npz")


def test_webdataset_reads_both_label_forms_over_shards(tmp_path):
    write_tar(
        tmp_path / "s-000.tar",
        [("a/0001.png", png(1)), ("a/0001.cls", b"2"), ("b/0001.cls", b"0\n"), ("b/0001.png", png(5))],
    )
    write_tar(tmp_path / "s-001.tar", [("0003.json", json.dumps({"label": 1}).encode()), ("0003.png", png(9))])
    opened = webdataset(tmp_path)
    assert opened.labels.tolist() == [2, 0, 1]
    assert [int(opened[i][0].mean()) for i in range(3)] == [1, 5, 9]
    assert opened.classes == ("0", "1", "2")
    assert len(webdataset(tmp_path / "s-001.tar")) == 1


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([("1.png", png(1))], "got 1 without a label"),
        ([("1.cls", b"1"), ("2.png", png(1)), ("2.cls", b"1")], "got 1 without an image"),
        ([("1.png", png(1)), ("1.cls", b"cat")], "got 1.cls without a label"),
        ([("1.png", png(1)), ("1.cls", b"-1")], "got 1.cls with label -1"),
        ([], "got no samples"),
    ],
)
def test_webdataset_refusals(tmp_path, members, message):
    write_tar(tmp_path / "s.tar", members)
    with pytest.raises(DataError, match=message):
        webdataset(tmp_path)


def test_webdataset_compressed_or_absent(tmp_path):
    with pytest.raises(DataError, match="got no shards"):
        webdataset(tmp_path)
    write_tar(tmp_path / "s.tar", [("1.png", png(1)), ("1.cls", b"1")], mode="w:gz")
    with pytest.raises(DataError, match="allowed is an uncompressed tar"):
        webdataset(tmp_path)


def test_decoding_refuses_other_formats_and_huge_images(monkeypatch):
    gif = io.BytesIO()
    Image.new("RGB", (4, 4)).save(gif, "GIF")
    with pytest.raises(DataError, match=r"x\.gif: got no readable image; allowed are JPEG, PNG, WEBP"):
        decode_image(gif.getvalue(), "x.gif")
    with pytest.raises(DataError, match="got no readable image"):
        decode_image(png(1)[:40], "cut.png")
    monkeypatch.setattr("polytta.data.datasets.decode.MAX_PIXELS", 100)
    with pytest.raises(DataError, match="got 20 x 20 pixels; allowed are 100 in all"):
        decode_image(png(1, (20, 20)), "big.png")
