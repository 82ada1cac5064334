"""Kept images are those that were written, or are made again."""

import os
from pathlib import Path

import numpy as np
import pytest
from tests.lab.bench.cells import tiny_cell

from polytta.errors import DiskError
from polytta.lab.bench import kept_array
from polytta.lab.bench.data import CorruptedImages, open_cell_stream

ARRAY = np.arange(3000, dtype=np.uint8).reshape(10, 300)


def changed(file: Path, how: str) -> None:
    content = file.read_bytes()
    if how == "noise":
        file.write_bytes(content[:200] + os.urandom(100) + content[300:])
    elif how == "truncated":
        file.write_bytes(content[: len(content) // 2])
    elif how == "empty":
        file.write_bytes(b"")
    elif how == "no digest":
        file.with_name(file.name + ".sha256").unlink()
    else:
        file.with_name(file.name + ".sha256").write_bytes(b"\xff\x00")
    os.utime(file, ns=(1, 1))


@pytest.mark.parametrize("how", ["noise", "truncated", "empty", "no digest", "broken digest"])
def test_what_is_not_as_it_was_written_is_not_whole(tmp_path: Path, how: str) -> None:
    file = tmp_path / "kept" / "array.npy"
    assert not kept_array.is_whole(file)
    kept_array.write(file, ARRAY)
    assert kept_array.is_whole(file)
    changed(file, how)
    assert not kept_array.is_whole(file)
    kept_array.write(file, ARRAY)
    assert kept_array.is_whole(file)
    assert np.array_equal(np.load(file), ARRAY)
    assert sorted(path.name for path in file.parent.iterdir()) == ["array.npy", "array.npy.sha256"]


@pytest.mark.parametrize("name", ["array.npy", "array.npy.sha256"])
@pytest.mark.parametrize("kind", ["pipe", "endless"])
def test_what_is_no_plain_file_is_never_read(tmp_path: Path, name: str, kind: str) -> None:
    file, odd = tmp_path / "array.npy", tmp_path / name
    kept_array.write(file, ARRAY)
    odd.unlink()
    if kind == "pipe":
        os.mkfifo(odd)
    else:
        odd.symlink_to("/dev/zero")
    assert not kept_array.is_whole(file)
    if odd == file:
        kept_array.write(file, ARRAY)
        assert kept_array.is_whole(file)
    else:
        with pytest.raises(DiskError, match="which is no plain file"):
            kept_array.write(file, ARRAY)


def test_a_folder_in_place_of_an_array_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "array.npy").mkdir()
    assert not kept_array.is_whole(tmp_path / "array.npy")
    with pytest.raises(DiskError, match="which is a folder; allowed is a plain file"):
        kept_array.write(tmp_path / "array.npy", ARRAY)
    assert [path.name for path in tmp_path.iterdir()] == ["array.npy"]


@pytest.mark.parametrize("how", ["noise", "truncated"])
def test_a_benchmark_makes_damaged_images_again(tmp_path: Path, how: str) -> None:
    cell = tiny_cell("source", images=None)

    def images() -> CorruptedImages:
        open_cell_stream.__globals__["_domain"].cache_clear()
        open_cell_stream.__globals__["_stream"].cache_clear()
        domain = open_cell_stream(cell, str(tmp_path)).datasets[0]
        assert isinstance(domain, CorruptedImages)
        domain.make(np.arange(len(domain)))
        return domain

    first = images()
    wanted = np.array([first[n][0] for n in range(0, len(first), 50)])
    assert first.cache_file is not None
    changed(first.cache_file, how)
    again = images()
    assert np.array_equal(np.array([again[n][0] for n in range(0, len(again), 50)]), wanted)


def test_an_interrupted_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "save", interrupted)
    with pytest.raises(KeyboardInterrupt):
        kept_array.write(tmp_path / "array.npy", ARRAY)
    assert list(tmp_path.iterdir()) == []
