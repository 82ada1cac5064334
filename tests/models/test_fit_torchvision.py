"""In the environment that the Makefile sets up, users' own scripts import the zoos as they are used to."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.extras import needs

from polytta.models import fit_torchvision


@needs("timm")
def test_timm_and_torchvision_are_imported_without_us() -> None:
    code = "import timm, torchvision; timm.create_model('resnet18'); torchvision.models.resnet18(); print('polytta' in"
    code += " __import__('sys').modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "False"), done.stderr


@needs("torchvision")
def test_nothing_is_written_where_builds_fit_together(tmp_path: Path) -> None:
    assert not fit_torchvision.fit(tmp_path)
    assert not list(tmp_path.iterdir())


@needs("torchvision")
def test_a_startup_file_is_written_where_they_do_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit_torchvision, "SYMPTOM", "")  # as if the import had failed
    assert fit_torchvision.fit(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    code = f"import site; site.addsitedir({str(tmp_path)!r}); import torchvision.transforms"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
