"""A folder of a million images is walked from end to end without memory growing with it."""

import subprocess
import sys

import pytest
from tests.data.writers import write_image

SCRIPT = """
import resource, sys
from pathlib import Path
import numpy as np
from polytta.data.datasets import image_folder
from polytta.data.datasets import base
from polytta.stream import Mixed, open_stream

# The pixels are beside the point here and decoding a million files would take minutes.
one, real, seen = np.zeros((1, 1, 3), np.uint8), base.read_image, 0
real(Path(sys.argv[2]))
base.read_image = lambda path: real(path) if seen % 1000 == 0 else one
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
stream = open_stream(Mixed(), image_folder(sys.argv[1]))
for batch in stream.batches():
    seen += len(batch.labels)
stream.sha256
print(seen, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss counts kilobytes only there")
def test_a_million_images_grow_memory_by_less_than_200_mb(tmp_path):
    """A thousand class folders link to one folder of a thousand files: a million paths, few inodes."""
    shared = tmp_path / "files"
    first = shared / "ILSVRC2012_val_00000000.png"
    write_image(first, 1, size=1)
    for number in range(1, 1000):
        (shared / f"ILSVRC2012_val_{number:08d}.png").hardlink_to(first)
    data = tmp_path / "data"
    data.mkdir()
    for number in range(1000):
        (data / f"n{number:08d}").symlink_to(shared)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(data), str(first)], capture_output=True, text=True, check=True
    )
    seen, growth = done.stdout.split()
    assert int(seen) == 1_000_000
    assert float(growth) < 200, f"memory grew by {growth} MB"
