"""The contracts between rooms (pyproject.toml) hold, and each of them notices when it is broken."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TOOL = Path(sys.executable).with_name("lint-imports")
BREACHES = {
    "Rooms stand on each other in one order": ("roles/measures.py", "polytta.methods.tent"),
    "Nobody imports the GPU room": ("lab/scores.py", "polytta.gpu.graph"),
    "Only the GPU room imports kernels": ("diversity/none.py", "polytta.gpu.kernels"),
    "Methods, optimizers and aggregates know no particles": ("optim/rule.py", "polytta.particles.engine"),
    "The core knows no images, streams or zoos": ("engine/parts.py", "polytta.stream"),
    "Images, streams and zoos know nothing of adaptation or of the program": ("data/groups.py", "polytta.cli"),
    "No cycles between siblings": ("system/files.py", "polytta.lab"),
}
pytestmark = pytest.mark.skipif(not TOOL.exists(), reason="import-linter is not installed")


def verdicts(source: Path) -> dict[str, str]:
    """{contract: KEPT or BROKEN} of the package in a folder."""
    done = subprocess.run(
        [TOOL, "--config", ROOT / "pyproject.toml", "--no-cache"],
        cwd=source,
        env={**os.environ, "PYTHONPATH": str(source), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    return dict(re.findall(r"^(.+?) (KEPT|BROKEN)", done.stdout, re.MULTILINE))


def test_every_contract_is_kept_and_can_be_broken(tmp_path: Path) -> None:
    assert verdicts(ROOT / "src") == dict.fromkeys(BREACHES, "KEPT")
    shutil.copytree(ROOT / "src" / "polytta", tmp_path / "polytta", ignore=shutil.ignore_patterns("*.safetensors"))
    for file, module in BREACHES.values():
        with (tmp_path / "polytta" / file).open("a") as code:
            code.write(f"\nimport {module}\n")
    assert verdicts(tmp_path) == dict.fromkeys(BREACHES, "BROKEN")
