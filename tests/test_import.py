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
