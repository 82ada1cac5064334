"""Notebooks are committed as they ran, and their pages are what they show; snippets of pages are run elsewhere."""

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.scripts.loading import script

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module")
def runner() -> ModuleType:
    return script("run_notebook")


def cell(code: str) -> dict[str, Any]:
    return {"cell_type": "code", "metadata": {}, "source": [code], "execution_count": None, "outputs": []}


def test_there_is_one() -> None:
    assert [path.name for path in NOTEBOOKS] == ["first_steps.ipynb"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_committed_notebook_has_run_and_its_page_is_made_of_it(runner: ModuleType, path: Path) -> None:
    notebook = json.loads(path.read_text("utf-8"))
    code = [one for one in notebook["cells"] if one["cell_type"] == "code"]
    assert [one["execution_count"] for one in code] == list(range(1, len(code) + 1))
    assert all(one["outputs"] for one in code)
    assert path.with_suffix(".md").read_text("utf-8") == runner.as_page(notebook, path.name)


def test_cells_share_a_namespace_and_show_what_they_print_and_what_they_end_with(runner: ModuleType) -> None:
    picture = "from PIL import Image\nImage.new('RGB', (2, 2))"
    told = runner.executed({"cells": [cell("a = 2"), cell("print('said')\na + 1"), cell(picture)]})
    outputs = [one["outputs"] for one in told["cells"]]
    assert outputs[0] == []
    assert outputs[1][0]["text"] == ["said\n"]
    assert outputs[1][1]["data"] == {"text/plain": ["3"]}
    assert "image/png" in outputs[2][0]["data"]
    page = runner.as_page(told, "some.ipynb")
    assert "```python\nprint('said')\na + 1\n```\n\n```text\nsaid\n```\n\n```text\n3\n```" in page
    assert "](data:image/png;base64," in page


def test_a_cell_that_fails_ends_it(runner: ModuleType) -> None:
    with pytest.raises(ZeroDivisionError):
        runner.executed({"cells": [cell("1 / 0")]})
