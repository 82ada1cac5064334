import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.program import ROOT, polytta, refusal
from tests.data.writers import mark_generated, write_image


def test_status_lists_present_and_missing(tmp_path: Path) -> None:
    write_image(tmp_path / "imagenet-r/n01443537/a.jpg", 1)
    mark_generated(tmp_path / "imagenet-r")
    done = polytta("data", "status", "--root", tmp_path)
    assert done.returncode == 0, done.stderr
    lines = {line.split()[0]: line for line in done.stdout.splitlines()}
    assert "present (generated)" in lines["imagenet-r"]
    assert "missing" in lines["cifar10-c"]
    assert str(tmp_path / "CIFAR-10-C") in lines["cifar10-c"]
    assert "Zenodo" in lines["cifar10-c"]


def test_status_of_a_folder_that_is_not_there(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert "--root: got" in refusal(capsys, "data", "status", "--root", tmp_path / "nosuch")


def test_status_without_a_folder_looks_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POLYTTA_DATA", raising=False)
    done = polytta("data", "status")
    assert done.returncode == 0
    assert f"missing              {ROOT / 'CIFAR-10-C'}" in done.stdout


def test_the_library_does_not_load_the_program() -> None:
    check = (
        "import sys, polytta, polytta.models, polytta.stream, polytta.data.datasets, polytta.data.corruptions\n"
        "assert not [name for name in sys.modules if name.startswith(('tyro', 'polytta.cli.', 'polytta.lab.demo'))]"
    )
    subprocess.run([sys.executable, "-c", check], cwd=ROOT, check=True, timeout=60)
