"""Runs the program as a user does, in a process of its own with warnings as errors, and reads what it refuses."""

import subprocess
import sys
from pathlib import Path

import pytest

from polytta.cli import main

ROOT = Path(__file__).parents[2]


def polytta(*arguments: object, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    # Isolated, as a program on the path is: only the program itself can make the current folder importable.
    isolated = [] if cwd == ROOT else ["-I"]
    command = [sys.executable, *isolated, "-W", "error", "-m", "polytta", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120)


def refusal(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The one sentence the program ends with; in this process, which saves the time of starting another."""
    assert main([str(argument) for argument in arguments]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("polytta: ")
    assert lines[0].endswith(".")
    return lines[0]
