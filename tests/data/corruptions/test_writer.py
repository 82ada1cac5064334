"""Layouts, resumption after a kill, and the record that labels the data as generated."""

import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
import warnings
from io import BytesIO
from multiprocessing.synchronize import Barrier
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from polytta.data.corruptions import SEVERITIES, corrupt, write_cifar_c, write_imagenet_c, writer
from polytta.errors import InputError

TYPES = ("gaussian_noise", "contrast")
QUIET = {"workers": 1, "progress": False}


@pytest.fixture
def labels(small_images):
    return np.arange(len(small_images)) % 10


@pytest.fixture
def folder(tmp_path, large_images):
    root = tmp_path / "clean"
    for index, image in enumerate(large_images):
        path = root / f"n{index % 2}" / f"val_{index}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(path)
    return root


def read(path):
    with Image.open(path) as stored:
        return np.array(stored)


def tree(root):
    return {p.relative_to(root): p.stat().st_mtime_ns for p in sorted(root.rglob("*")) if p.is_file()}


def test_cifar_layout(tmp_path, small_images, labels, monkeypatch):
    monkeypatch.setattr(writer, "_IMAGES_PER_JOB", 4)
    root = write_cifar_c(small_images, labels, tmp_path / "out", types=TYPES, seed=3, **QUIET)
    names = {path.name for path in root.iterdir()}
    assert names == {"gaussian_noise.npy", "contrast.npy", "labels.npy", "polytta-generated.json"}
    np.testing.assert_array_equal(np.load(root / "labels.npy"), np.tile(labels, 5))
    for name in TYPES:
        stored = np.load(root / f"{name}.npy").reshape(5, *small_images.shape)
        for severity in SEVERITIES:
            expected = corrupt(small_images, name, severity, constants="cifar", ids=range(len(small_images)), seed=3)
            np.testing.assert_array_equal(stored[severity - 1], expected)


def test_imagenet_layout(tmp_path, folder, large_images):
    root = write_imagenet_c(folder, tmp_path / "out", types=["fog"], severities=[2, 5], resize=False, **QUIET)
    files = {str(path) for path in tree(root)} - {"polytta-generated.json"}
    assert files == {f"fog/{s}/n{i % 2}/val_{i}.JPEG" for s in (2, 5) for i in range(3)}
    image_id = writer.stable_image_id(folder / "n1/val_1.png")
    expected = BytesIO()
    result = corrupt(large_images[1:2], "fog", 5, ids=[image_id])[0]
    Image.fromarray(result).save(expected, "JPEG", quality=85, optimize=True)
    assert (root / "fog/5/n1/val_1.JPEG").read_bytes() == expected.getvalue()


def test_imagenet_images_are_resized_and_cut(tmp_path):
    path = tmp_path / "clean" / "a" / "wide.jpg"
    path.parent.mkdir(parents=True)
    Image.fromarray(np.full((300, 500, 3), 90, np.uint8)).save(path)
    root = write_imagenet_c(tmp_path / "clean", tmp_path / "out", types=["contrast"], severities=[1], **QUIET)
    assert read(root / "contrast/1/a/wide.JPEG").shape == (224, 224, 3)


def test_record_labels_the_data_as_generated(tmp_path, small_images, labels):
    root = write_cifar_c(small_images, labels, tmp_path / "out", types=["contrast"], seed=5, **QUIET)
    record = json.loads((root / "polytta-generated.json").read_text())
    assert record["label"] == "generated"
    assert record["complete"] == {"contrast": [1, 2, 3, 4, 5]}
    assert record["settings"]["constants"] == "cifar"
    assert record["settings"]["seed"] == 5
    assert {"numpy", "pillow", "polytta", "python", "torch"} <= set(record["versions"])


def test_finished_files_are_never_written_again(tmp_path, small_images, labels, folder):
    arrays = write_cifar_c(small_images, labels, tmp_path / "arrays", types=["contrast"], **QUIET)
    before = tree(arrays)
    write_cifar_c(small_images, labels, arrays, types=["contrast", "brightness"], **QUIET)
    after = tree(arrays)
    assert after.items() > {k: v for k, v in before.items() if k.suffix == ".npy"}.items()
    assert json.loads((arrays / "polytta-generated.json").read_text())["complete"].keys() == {
        "brightness",
        "contrast",
    }
    files = write_imagenet_c(folder, tmp_path / "files", types=["contrast"], severities=[1], resize=False, **QUIET)
    (files / "contrast/1/n1/val_1.JPEG").unlink()
    before = tree(files / "contrast")
    write_imagenet_c(folder, files, types=["contrast"], severities=[1, 2], resize=False, **QUIET)
    after = tree(files / "contrast")
    assert len(after) == 6
    assert after.items() > before.items()


KILLED_RUN = """
import sys, time
import numpy as np
from polytta.data.corruptions import writer

writer._IMAGES_PER_JOB = 2
work = writer.corrupt

def slow(*args, **kwargs):
    time.sleep(0.05)
    return work(*args, **kwargs)

writer.corrupt = slow
stored = np.load(sys.argv[1])
writer.write_cifar_c(stored["x"], stored["y"], sys.argv[2], types=("gaussian_noise", "contrast"),
                     workers=1, progress=False)
"""


def test_killed_run_goes_on(tmp_path, small_images, labels, monkeypatch):
    source, root = tmp_path / "clean.npz", tmp_path / "out"
    np.savez(source, x=small_images, y=labels)
    with subprocess.Popen([sys.executable, "-c", KILLED_RUN, source, root]) as process:
        deadline = time.monotonic() + 60
        while len(list(root.glob(".polytta-parts/g*.npy"))) < 5 and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    parts = {k: v for k, v in tree(root).items() if k.parent.name == ".polytta-parts" and k.suffix == ".npy"}
    assert len(parts) >= 5
    assert not (root / "contrast.npy").exists()
    # A half-written file must not be taken for a part.
    (root / ".polytta-parts" / ".contrast-1-00000000.npy.tmp").write_bytes(b"half")
    written = []
    monkeypatch.setattr(writer, "_IMAGES_PER_JOB", 2)
    write_part = writer._write_array_part

    def note_and_write(job, worker):
        written.append(job.path.name)
        write_part(job, worker)

    monkeypatch.setattr(writer, "_write_array_part", note_and_write)
    write_cifar_c(small_images, labels, root, types=TYPES, **QUIET)
    assert not {path.name for path in parts} & set(written)
    whole = write_cifar_c(small_images, labels, tmp_path / "whole", types=TYPES, **QUIET)
    for name in (*TYPES, "labels"):
        assert (root / f"{name}.npy").read_bytes() == (whole / f"{name}.npy").read_bytes()
    assert not (root / ".polytta-parts").exists()


def process_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] != "Z"


def descendants(pid):
    """All processes that a process has started, and those they have."""
    own = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return own + [one for child in own for one in descendants(child)]


POOL_RUN = """
import sys
import numpy as np
from polytta.data.corruptions import writer

if __name__ == "__main__":
    writer._IMAGES_PER_JOB = 2
    stored = np.load(sys.argv[1])
    writer.write_cifar_c(stored["x"], stored["y"], sys.argv[2], workers=2, progress=False)
"""


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="reads the process table")
def test_workers_end_with_a_killed_parent(tmp_path, small_images):
    source, root, script = tmp_path / "clean.npz", tmp_path / "out", tmp_path / "run.py"
    many = np.concatenate([small_images] * 100)
    np.savez(source, x=many, y=np.zeros(len(many), int))
    script.write_text(POOL_RUN)
    with subprocess.Popen([sys.executable, script, source, root]) as process:
        deadline = time.monotonic() + 60
        while not list(root.glob(".polytta-parts/g*.npy")) and time.monotonic() < deadline:
            time.sleep(0.05)
        started = descendants(process.pid)
        process.kill()
    assert len(started) >= 2
    deadline = time.monotonic() + 10
    while any(map(process_alive, started)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(process_alive, started))


def test_processes_write_what_one_process_writes(tmp_path, folder):
    arguments = {"types": TYPES, "severities": [4], "resize": False, "progress": False}
    alone = write_imagenet_c(folder, tmp_path / "alone", workers=1, **arguments)
    writer_jobs = writer._FILES_PER_JOB
    try:
        writer._FILES_PER_JOB = 1
        shared = write_imagenet_c(folder, tmp_path / "shared", workers=2, **arguments)
    finally:
        writer._FILES_PER_JOB = writer_jobs
    assert tree(alone).keys() == tree(shared).keys()
    for path in tree(alone):
        if path.suffix == ".JPEG":
            assert (alone / path).read_bytes() == (shared / path).read_bytes()


def test_other_settings_are_refused(tmp_path, small_images, labels):
    root = write_cifar_c(small_images, labels, tmp_path / "out", types=["contrast"], seed=1, **QUIET)
    with pytest.raises(InputError, match=r"^destination: got .*, written with seed=1, for seed=2; allowed "):
        write_cifar_c(small_images, labels, root, types=["contrast"], seed=2, **QUIET)
    with pytest.raises(InputError, match="written with source_sha256="):
        write_cifar_c(small_images[::-1], labels, root, types=["contrast"], seed=1, **QUIET)


def test_foreign_folder_is_refused(tmp_path, small_images, labels):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=re.escape("allowed is an empty folder, or one with polytta-generated.json")):
        write_cifar_c(small_images, labels, tmp_path, types=["contrast"], **QUIET)


def test_wrong_arguments_write_nothing(tmp_path, small_images, labels):
    root = tmp_path / "out"
    with pytest.raises(InputError, match=r"types: got .*rain"):
        write_cifar_c(small_images, labels, root, types=["rain"], **QUIET)
    with pytest.raises(InputError, match=r"labels: got .* allowed is one per image"):
        write_cifar_c(small_images, labels[1:], root, types=TYPES, **QUIET)
    with pytest.raises(InputError, match="images: got float64"):
        write_cifar_c(small_images / 255, labels, root, types=TYPES, **QUIET)
    with pytest.raises(InputError, match=r"severities: got \[6\]"):
        write_imagenet_c(tmp_path, root, severities=[6], **QUIET)
    with pytest.raises(InputError, match=r"source: got .* without images"):
        write_imagenet_c(tmp_path, root, **QUIET)
    assert not root.exists()


def _write(folder: Path, together: Barrier | None = None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        images, labels = _few_images()
        if together is not None:
            together.wait()
        write_cifar_c(images, labels, folder, types=("fog", "contrast"), workers=1, progress=False)


def _few_images() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.integers(0, 256, (30, 32, 32, 3), dtype=np.uint8), np.arange(30) % 10


def test_two_at_once_both_succeed(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    together = context.Barrier(2)
    processes = [context.Process(target=_write, args=(tmp_path / "both", together)) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0]
    _write(tmp_path / "alone")
    for name in ("fog.npy", "contrast.npy", "labels.npy"):
        assert (tmp_path / "both" / name).read_bytes() == (tmp_path / "alone" / name).read_bytes()
    assert not [path for path in (tmp_path / "both").rglob("*") if path.name.endswith(".tmp")]
