"""``python -m polytta.models.fit_torchvision``: ``import torchvision`` (timm, open_clip) beside CPU torch.

The package index has torchvision for CUDA alone. Beside a CPU build of torch its import fails with "operator
torchvision::nms does not exist". Where that is so, a start-up file in the environment declares the two operators it
stumbles over; calling them still fails, and everything else works. Where the builds fit together nothing is written.
"""

import shutil
import subprocess
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path

from polytta.models import _startup_torchvision
from polytta.models._torchvision_cpu import SYMPTOM

NAME = "_polytta_startup_torchvision"


def fit(folder: Path) -> bool:
    """Writes the start-up file into an environment's folder of packages if it is needed; whether it was."""
    if find_spec("torchvision") is None:
        return False
    tried = subprocess.run([sys.executable, "-c", "import torchvision"], capture_output=True, text=True, check=False)
    if SYMPTOM not in tried.stderr:
        return False
    shutil.copyfile(_startup_torchvision.__file__, folder / f"{NAME}.py")
    (folder / f"{NAME}.pth").write_text(f"import {NAME}; {NAME}.wait()\n")
    return True


if __name__ == "__main__":
    if fit(Path(sysconfig.get_paths()["purelib"])):
        print("torchvision was built for another torch; it can be imported now.")
