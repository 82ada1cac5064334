"""Scripts are no package: loads one by its name."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        # Some stand on others.
        patch.syspath_prepend(str(SCRIPTS))
        # Dataclasses look their module up.
        patch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
    return module
