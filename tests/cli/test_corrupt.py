from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.cli.program import polytta, refusal

from polytta.data.corruptions import corrupt
from polytta.data.datasets import cifar10_c, imagenet_c


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    images = np.random.default_rng(0).integers(0, 256, (4, 32, 32, 3), dtype=np.uint8)
    np.savez(tmp_path / "images.npz", x=images, y=np.arange(4))
    return tmp_path / "images.npz"


def test_cifar_layout(archive: Path, tmp_path: Path) -> None:
    arguments = ("corrupt", archive, tmp_path / "CIFAR-10-C", "--set", "cifar", "--types", "fog", "contrast")
    done = polytta(*arguments, "--seed", 3, "--workers", 1)
    assert done.returncode == 0, done.stderr
    assert str(tmp_path / "CIFAR-10-C") in done.stdout
    written = cifar10_c("contrast", 2, root=tmp_path)
    clean = np.load(archive)["x"]
    assert written.origin == "generated"
    assert (written.images == corrupt(clean, "contrast", 2, constants="cifar", ids=range(4), seed=3)).all()


def test_imagenet_layout(tmp_path: Path) -> None:
    picture = np.random.default_rng(0).integers(0, 256, (300, 260, 3), dtype=np.uint8)
    (tmp_path / "clean/n01440764").mkdir(parents=True)
    Image.fromarray(picture).save(tmp_path / "clean/n01440764/a.JPEG")
    arguments = ("corrupt", tmp_path / "clean", tmp_path / "ImageNet-C", "--set", "imagenet", "--workers", 1)
    done = polytta(*arguments, "--types", "brightness", "--severity", 1, 4)
    assert done.returncode == 0, done.stderr
    assert imagenet_c("brightness", 4, root=tmp_path)[0][0].shape == (224, 224, 3)
    assert sorted(path.name for path in (tmp_path / "ImageNet-C/brightness").iterdir()) == ["1", "4"]


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        (("--types", "rain"), "rain"),
        (("--severity", "2"), "--severity"),
        (("--workers", "0"), "--workers"),
        (("--seed", "-1"), "-1"),
    ],
)
def test_refuses_in_one_sentence(
    capsys: pytest.CaptureFixture[str], archive: Path, tmp_path: Path, wrong: tuple[str, str], named: str
) -> None:
    assert named in refusal(capsys, "corrupt", archive, tmp_path / "out", "--set", "cifar", *wrong)
    assert not (tmp_path / "out").exists()


def test_missing_source_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    missing = tmp_path / "none.npz"
    assert str(missing) in refusal(capsys, "corrupt", missing, tmp_path / "out", "--set", "cifar")
