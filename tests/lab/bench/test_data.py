import io
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.lab.bench.records import CELL

from polytta.data.bundled import cifar10_subset_indices, load_cifar10_subset
from polytta.data.corruptions import corrupt
from polytta.errors import InputError
from polytta.lab.bench.corrupted_images import CorruptedImages
from polytta.lab.bench.data import (
    _clean,
    _domain,
    _stream,
    data_facts,
    default_corruptions,
    open_cell_stream,
    prepare,
)


def test_bundled_images_are_corrupted_as_in_the_whole_test_set_and_only_those_needed() -> None:
    stream = open_cell_stream(replace(CELL, corruption="contrast", images=30))
    prepare([stream])
    domain = stream.datasets[0]
    assert isinstance(domain, CorruptedImages)
    assert domain._ready is not None
    assert set(np.flatnonzero(domain._ready)) == set(stream.order.item)
    clean, item = load_cifar10_subset(), int(stream.order.item[7])
    ids = cifar10_subset_indices()[[item]]
    expected = corrupt(clean.images[[item]], "contrast", 5, constants="cifar", ids=ids, seed=0)
    assert (domain[item][0] == expected[0]).all()
    assert domain[item][1] == clean.labels[item]
    missing = int(np.flatnonzero(~domain._ready)[0])
    assert domain[missing][0].shape == (32, 32, 3)


def test_whole_datasets_are_kept_on_disk_and_read_from_there(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "a.npz", x=rng.integers(0, 256, (12, 32, 32, 3), dtype=np.uint8), y=np.arange(12) % 10)
    cell = replace(CELL, dataset="cifar10", data_path=str(tmp_path / "a.npz"), images=None, corruption="fog")
    stream = open_cell_stream(cell, str(tmp_path / "data"))
    prepare([stream])
    (file,) = (tmp_path / "data").glob("*.npy")
    assert (np.load(file) == np.stack([stream.datasets[0][i][0] for i in range(12)])).all()
    facts = data_facts(stream)
    assert facts["corrupted_here"]
    assert stream.facts()["domains"][0]["name"] == "cifar10/fog/5"
    other = data_facts(open_cell_stream(CELL))
    assert facts["clean_sha256"] != other["clean_sha256"]


def test_images_are_of_each_corruption_whatever_the_scenario() -> None:
    lengths = {}
    for scenario in ("batch1", "mild", "label_shift", "mixed", "continual", "markov"):
        pooled = scenario in ("mixed", "continual", "markov")
        corruption = ("fog", "snow") if pooled else "fog"
        cell = replace(CELL, scenario=scenario, batch_size=1 if scenario == "batch1" else 8, corruption=corruption)
        stream = open_cell_stream(cell)
        assert stream.spec.batch_size == cell.batch_size
        assert len(stream.order.starts) == (2 if scenario == "continual" else 1)
        assert "segment" not in stream.spec.reset or len(stream.order.starts) == 1
        lengths[scenario] = len(stream)
    assert lengths == {"batch1": 40, "mild": 40, "label_shift": 40, "mixed": 80, "continual": 80, "markov": 80}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"images": 2001}, "2001"),
        ({"dataset": "cifar11"}, "cifar11"),
        ({"dataset": "cifar10-c", "corruption": None, "severity": None}, "cifar10-c"),
    ],
)
def test_what_is_not_there_is_named(change: dict[str, object], named: str) -> None:
    with pytest.raises(InputError, match=named):
        open_cell_stream(replace(CELL, **change))  # type: ignore[arg-type]


def test_label_shift_over_a_thousand_classes_has_the_published_length(tmp_path: Path) -> None:
    labels = np.repeat(np.arange(1000), 2)
    np.savez(tmp_path / "a.npz", x=np.zeros((2000, 8, 8, 3), np.uint8), y=labels)
    cell = replace(CELL, dataset="large", data_path=str(tmp_path / "a.npz"), corruption=None, severity=None)
    shift = replace(cell, scenario="label_shift", batch_size=64)
    assert len(open_cell_stream(replace(shift, images=None))) == 100 * 1000
    assert len(open_cell_stream(replace(shift, images=2000))) == 2000


def _official_cifar(root: Path, seed: int) -> None:
    folder = root / "CIFAR-10-C"
    folder.mkdir(parents=True)
    np.save(folder / "labels.npy", np.tile(np.arange(10), 5000))
    fog, snow = np.zeros((50_000, 32, 32, 3), np.uint8), np.zeros((50_000, 32, 32, 3), np.uint8)
    snow[-1] = seed
    np.save(folder / "fog.npy", fog)
    np.save(folder / "snow.npy", snow)


def test_images_of_every_corruption_of_a_pooled_stream_are_pinned(tmp_path: Path) -> None:
    pooled = replace(CELL, dataset="cifar10-c", corruption=("fog", "snow"), scenario="mixed", images=20)
    facts = []
    for seed in (0, 1):
        _official_cifar(tmp_path / str(seed), seed)
        facts.append(data_facts(open_cell_stream(replace(pooled, data_path=str(tmp_path / str(seed))))))
    assert facts[0]["sha256"][0] == facts[1]["sha256"][0]
    assert facts[0]["sha256"][1] != facts[1]["sha256"][1]


def test_files_of_images_are_pinned_by_name_and_size_wherever_they_lie(tmp_path: Path) -> None:
    def facts(folder: str, size: int, name: str = "a.png") -> object:
        for label in ("cat", "dog"):
            (tmp_path / folder / label).mkdir(parents=True)
            Image.new("RGB", (size, 8)).save(tmp_path / folder / label / name)
        cell = replace(CELL, dataset="mine", corruption=None, severity=None, images=None)
        return data_facts(open_cell_stream(replace(cell, data_path=str(tmp_path / folder))))

    first = facts("first", 8)
    assert facts("again", 8) == first
    assert facts("wider", 800) != first
    assert facts("renamed", 8, "b.png") != first


def test_tar_shards_are_a_dataset_that_comes_as_it_is(tmp_path: Path) -> None:
    def shard(name: str, values: tuple[int, ...]) -> None:
        with tarfile.open(tmp_path / name, "w") as tar:
            for value in values:
                picture = io.BytesIO()
                Image.new("RGB", (8, 8), (value,) * 3).save(picture, "PNG")
                for suffix, data in (("png", picture.getvalue()), ("cls", str(value % 10).encode())):
                    member = tarfile.TarInfo(f"{value}.{suffix}")
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))

    shard("one.tar", (11, 12))
    shard("two.tar", (23,))
    cell = replace(CELL, dataset="mine", corruption=None, severity=None, images=None)
    for path, expected in ((tmp_path, {11, 12, 23}), (tmp_path / "two.tar", {23})):
        assert default_corruptions("mine", str(path)) == ("clean",)
        stream = open_cell_stream(replace(cell, data_path=str(path)))
        pairs = (pair for batch in stream.batches() for pair in zip(batch.images, batch.labels, strict=True))
        seen = {(int(image.mean()), int(label)) for image, label in pairs}
        assert seen == {(value, value % 10) for value in expected}
    (pinned,) = data_facts(stream)["files_sha256"]
    shard("two.tar", (24,))
    _domain.cache_clear()
    _stream.cache_clear()
    _clean.cache_clear()
    assert data_facts(open_cell_stream(replace(cell, data_path=str(tmp_path / "two.tar"))))["files_sha256"] != [pinned]
