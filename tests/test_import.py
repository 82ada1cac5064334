"""What importing the package must not do."""

import subprocess
import sys

SCRIPT = """
import torch
def asked(*_):
    raise AssertionError("importing asked for a GPU")
torch.cuda.is_available = torch.cuda.init = torch.cuda.device_count = asked
import polytta, polytta.cli, polytta.lab.bench.run_grid, polytta.gpu.graph, polytta.lab.perf.run
"""


def test_importing_leaves_cuda_alone() -> None:
    """A process that has started CUDA must not fork, so looking for a GPU has to wait until one is wanted."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


LAZY = """
import sys
import polytta
rooms = ("polytta.lab", "polytta.gpu", "polytta.checks", "polytta.data")
early = [name for name in sys.modules if name.startswith(rooms)]
assert not early, early
polytta.checks.check_method, polytta.models.create, polytta.bench.Grid, polytta.lab
import polytta.bench
assert "polytta.gpu" not in sys.modules
"""


def test_rooms_that_most_users_never_enter_are_there_when_they_are_asked_for() -> None:
    done = subprocess.run([sys.executable, "-c", LAZY], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
