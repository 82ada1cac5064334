"""Files that would fill the memory are refused before anything is allocated, each in one sentence."""

import io
import tarfile
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from polytta.data.corruptions import write_cifar_c
from polytta.data.corruptions.writer import UnreadableImagesError, write_imagenet_c
from polytta.data.datasets import image_folder, npz_images, read_generated, webdataset
from polytta.data.datasets.decode import read_image
from polytta.errors import DataError, InputError
from polytta.models import Preprocessing

HUGE = 2**31 - 1


def narrow(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (4000, 1)).save(path)
    return path


def write_shard(path: Path, name: str, label: str) -> None:
    """One image, and the file that says its label."""
    picture = io.BytesIO()
    Image.new("RGB", (8, 8)).save(picture, "PNG")
    with tarfile.open(path, "w") as tar:
        for member, data in ((tarfile.TarInfo("1.png"), picture.getvalue()), (tarfile.TarInfo(name), label.encode())):
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))


def test_a_row_of_pixels_is_never_resized(tmp_path: Path) -> None:
    path = narrow(tmp_path / "clean/a/narrow.png")
    tracemalloc.start()
    with pytest.raises(DataError, match=r"narrow\.png: got 4000 x 1 pixels; allowed is a longer side of 100 times"):
        read_image(path)
    with pytest.raises(UnreadableImagesError, match=r"narrow\.png"):
        write_imagenet_c(tmp_path / "clean", tmp_path / "out", types=["fog"], workers=1, progress=False)
    with pytest.raises(InputError, match="got 4000 x 1 pixels"):
        Preprocessing((0.5,) * 3, (0.5,) * 3, 224, 256)([np.zeros((1, 4000, 3), np.uint8)])
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 2**25


def test_a_label_is_not_a_number_of_names_to_make(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.zeros((2, 32, 32, 3), np.uint8), y=np.array([0, HUGE]))
    with pytest.raises(DataError, match=f"got the label {HUGE} in y; allowed are 0 to 99999"):
        npz_images(tmp_path / "a.npz")
    for label in (HUGE, 10**30):
        write_shard(tmp_path / "a.tar", "1.cls", str(label))
        with pytest.raises(DataError, match=f"with label {label}; allowed are 0 to 99999"):
            webdataset(tmp_path / "a.tar")
    with pytest.raises(InputError, match=f"labels: got 0 to {HUGE}"):
        write_cifar_c(np.zeros((2, 32, 32, 3), np.uint8), np.array([0, HUGE]), tmp_path / "out", progress=False)


@pytest.mark.parametrize(
    "label",
    ['{"label": 1e400}', '{"label": 1.7}', '{"label": NaN}', '{"label": true}', '{"label": [3]}', "[]", "[" * 200_000],
)
def test_a_label_that_is_no_whole_number_is_a_sentence(tmp_path: Path, label: str) -> None:
    write_shard(tmp_path / "a.tar", "1.json", label)
    with pytest.raises(DataError, match=r"got 1\.json without a label; allowed is one whole number"):
        webdataset(tmp_path / "a.tar")


@pytest.mark.parametrize(
    ("name", "label"), [("1.json", '{"label": 3.0}'), ("1.json", '{"label": "3"}'), ("1.cls", "3")]
)
def test_a_label_may_be_written_as_any_whole_number(tmp_path: Path, name: str, label: str) -> None:
    write_shard(tmp_path / "a.tar", name, label)
    assert webdataset(tmp_path / "a.tar").labels.tolist() == [3]


def test_labels_beyond_a_byte_are_written_as_they_are(tmp_path: Path) -> None:
    images = np.zeros((2, 32, 32, 3), np.uint8)
    write_cifar_c(images, np.array([3, 300]), tmp_path / "out", types=["contrast"], workers=1, progress=False)
    written = read_generated(tmp_path / "out")
    assert written is not None
    assert written.images("contrast", 2, "mine").labels.tolist() == [3, 300]


def test_labels_of_any_kind_of_number_are_read(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.zeros((2, 32, 32, 3), np.uint8), y=np.array([0, 2], np.uint8))
    assert npz_images(tmp_path / "a.npz").classes == ("0", "1", "2")


@pytest.mark.parametrize("cut", [10, 40, 200, 1000])
def test_a_damaged_archive_is_a_sentence(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, x=np.zeros((2, 32, 32, 3), np.uint8), y=np.arange(2))
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(DataError, match=r"a\.npz: got no array"):
        npz_images(path)


def test_an_archive_that_promises_more_than_it_holds_is_a_sentence(tmp_path: Path) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "|u1", "fortran_order": False, "shape": (2**40, 32, 32, 3)})
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x.npy", header.getvalue())
        archive.writestr("y.npy", b"")
    with pytest.raises(DataError, match="got no array x"):
        npz_images(tmp_path / "a.npz")


@pytest.mark.parametrize(
    ("images", "written", "message"),
    [(10**7, 50, "bytes, with 52,428,800 in the archive"), (2**22, 0, "bytes, compressed; allowed are 8,589,934,592")],
)
def test_a_compressed_archive_takes_no_more_memory_than_it_holds(
    tmp_path: Path, images: int, written: int, message: str
) -> None:
    shape = (images, 32, 32, 3)
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("x.npy", "w", force_zip64=True) as file:
            np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": shape})
            for _ in range(written):
                file.write(bytes(2**20))
        if not written:
            archive.getinfo("x.npy").file_size = 2**35
    tracemalloc.start()
    with pytest.raises(DataError, match=f"got x of .* {message}"):
        npz_images(tmp_path / "a.npz")
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 2**24


@pytest.mark.parametrize(("name", "most"), [("1.cls", "1,048,576"), ("1.png", "268,435,456")])
def test_a_sparse_member_of_a_shard_is_not_read(tmp_path: Path, name: str, most: str) -> None:
    member = tarfile.TarInfo(name)
    body = b"1\n0\n1\n".ljust(512, b"\0")
    member.size = len(body)
    member.pax_headers = {
        "GNU.sparse.major": "1",
        "GNU.sparse.minor": "0",
        "GNU.sparse.name": name,
        "GNU.sparse.realsize": str(20 * 2**30),
    }
    with tarfile.open(tmp_path / "a.tar", "w", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(member, io.BytesIO(body))
    with pytest.raises(DataError, match=f"{name} of 21,474,836,480 bytes; allowed are {most}"):
        webdataset(tmp_path / "a.tar")


def test_a_marker_that_is_no_record_is_a_sentence(tmp_path: Path) -> None:
    settings = '{"settings": {"layout": "cifar-c"}, "complete": '
    for text in (settings + "3}", settings + '{"fog": [1e400]}}', "[" * 200_000):
        (tmp_path / "polytta-generated.json").write_text(text)
        with pytest.raises(DataError, match=r"polytta-generated\.json: got no record of generated data"):
            read_generated(tmp_path)
        images, labels = np.zeros((1, 32, 32, 3), np.uint8), np.zeros(1, int)
        with pytest.raises(DataError, match="got no record of generated data"):
            write_cifar_c(images, labels, tmp_path, types=["fog"], progress=False)


def test_a_broken_image_of_a_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/1.jpg").write_bytes(b"\xff\xd8\xff\xe0 and no more")
    with pytest.raises(DataError, match=r"a/1\.jpg: got no readable image"):
        image_folder(tmp_path)[0]
