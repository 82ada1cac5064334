"""One Ctrl-C: no worker is left, one sentence, what was finished is kept, nothing half written stays."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.program import ROOT
from tests.lab.bench.networks import TINY

pytestmark = pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="reads the process table")


def session_of(leader: int) -> list[int]:
    """Living processes of a session."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            state, _, _, session = (entry / "stat").read_text().rpartition(") ")[2].split()[:4]
        except (OSError, ValueError):
            continue
        if int(session) == leader and state != "Z":
            found.append(int(entry.name))
    return found


def hear() -> None:
    """What is started in the background is born deaf to Ctrl-C, and so are its children."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def interrupted(ready: Callable[[int], object], *arguments: object, processes: int = 3) -> tuple[int, list[str]]:
    """Exit code and lines on stderr of a command that is interrupted as a terminal does it.

    As soon as it is ready, by its process, and has so many processes.
    """
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"}
    command = [sys.executable, "-W", "error", "-m", "polytta", *map(str, arguments)]
    how = {"env": environment, "cwd": ROOT, "start_new_session": True, "preexec_fn": hear, "text": True}
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **how, **pipes) as process:  # type: ignore[call-overload]
        deadline = time.monotonic() + 100
        while not (ready(process.pid) and len(session_of(process.pid)) >= processes):
            assert process.poll() is None, process.stderr.read()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        said = ""
        while "polytta: stopped" not in said and (letter := process.stderr.read(1)):
            said += letter
        # When it says that it has stopped, it has: Python's own helpers are gone too.
        assert session_of(process.pid) in ([process.pid], [])
        said += process.stderr.read()
        process.wait(timeout=60)
    deadline = time.monotonic() + 20
    while session_of(process.pid):
        assert time.monotonic() < deadline, "workers outlived the program"
        time.sleep(0.05)
    return process.returncode, [
        line for line in said.replace("\r", "\n").splitlines() if line.strip() and "%|" not in line
    ]


def half_written(folder: Path) -> list[Path]:
    return list(folder.rglob(".*.tmp"))


def is_importing(process: int) -> bool:
    """Whether torch is on its way in; the program itself comes after it."""
    try:
        return "libtorch" in (Path("/proc") / str(process) / "maps").read_text()
    except OSError:
        return False


@pytest.mark.parametrize("command", ["demo", "perf"])
def test_while_importing(command: str) -> None:
    assert interrupted(is_importing, command, processes=1) == (130, ["polytta: stopped."])


@pytest.mark.long
@pytest.mark.parametrize("moment", ["server imports", "workers work"])
def test_corrupt(tmp_path: Path, moment: str) -> None:
    out = tmp_path / "out"
    begun = {"server imports": "polytta-generated.json", "workers work": ".polytta-parts/g*.npy"}[moment]
    code, said = interrupted(
        lambda process: list(out.glob(begun)), "corrupt", "bundled", out, "--set", "cifar", "--workers", 2
    )
    assert code == 130
    assert said == [f"polytta: stopped; what is finished stays in {out}, and the same command goes on from there."]
    assert not half_written(out)


@pytest.mark.long
def test_bench_keeps_what_is_finished(tmp_path: Path) -> None:
    out = tmp_path / "out"
    code, said = interrupted(
        lambda process: list(out.glob("cells/*.json")),
        *("bench", "--models", TINY, "--out", out, "--corruptions", "fog", "frost", "--images", 500, "--jobs", 2),
        *("--variants", "source", "deyo", "naive", "kl", "grad"),
    )
    assert code == 130
    finished = len(list(out.glob("cells/*.json")))
    assert finished
    (sentence,) = said
    assert sentence.startswith(f"polytta: stopped; {finished} of 10 cells are finished and kept in {out}, and the same")
    assert len((out / "table.csv").read_text().splitlines()) == 1 + finished
    assert not half_written(out)


@pytest.mark.long
def test_demo_keeps_what_is_finished(tmp_path: Path) -> None:
    cells = tmp_path / "bench/cells"
    code, said = interrupted(lambda process: list(cells.glob("*.json")), "demo", "--images", 4, "--out", tmp_path)
    assert code == 130
    (sentence,) = said
    finished = len(list(cells.glob("*.json")))
    assert sentence == f"polytta: stopped; {finished} cells are finished, for `polytta report {tmp_path / 'bench'}`."
    assert not half_written(tmp_path)
