"""Lets torchvision be imported beside a torch that its compiled operators do not load with.

``polytta.models.fit_torchvision`` copies this file into an environment, where it is imported whenever Python starts. So
it imports nothing itself, and does nothing before somebody imports torchvision.
"""

import sys
from typing import Any

SIGNATURE = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"


class _BeforeTorchvision:
    """Declares the operators that torchvision describes, where its own library cannot."""

    declared: Any = None

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Finds nothing; being asked for torchvision is what it waits for."""
        if name != "torchvision":
            return
        sys.meta_path.remove(self)
        if "torchvision" in sys.modules or _BeforeTorchvision.declared is not None:
            return
        from importlib.util import find_spec
        from pathlib import Path

        found = find_spec(name)
        if found is None or found.origin is None:
            return
        import torch

        for compiled in Path(found.origin).parent.glob("_C*.so"):
            try:
                torch.ops.load_library(str(compiled))
            except OSError:
                library = torch.library.Library("torchvision", "DEF")
                for operator in ("nms", "qnms"):
                    library.define(operator + SIGNATURE)
                # Declarations vanish with the object.
                _BeforeTorchvision.declared = library


def wait() -> None:
    """Begins to wait, once: some environments read their start-up files twice."""
    if not any(type(finder).__name__ == _BeforeTorchvision.__name__ for finder in sys.meta_path):
        sys.meta_path.insert(0, _BeforeTorchvision())
