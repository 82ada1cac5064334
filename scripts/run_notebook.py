"""Runs a notebook, keeps what its cells show, and writes it as a page of the documentation beside it.

    python scripts/run_notebook.py docs/notebooks/first_steps.ipynb [--page-only]

Needs no Jupyter, which would bring thirty packages for one page: cells run in order in one namespace; what they print
is kept, and what their last line is (pictures as pictures). Any Jupyter opens the result. The first cell that fails
ends it.
"""

import argparse
import ast
import base64
import contextlib
import io
import json
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image


def executed(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook with the outputs of this run."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    cells, count = [], 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            count += 1
            outputs = _outputs("".join(cell["source"]), namespace, f"cell {count}", count)
            cell = {**cell, "execution_count": count, "outputs": outputs}
        cells.append(cell)
    return {**notebook, "cells": cells}


def _outputs(code: str, namespace: dict[str, Any], name: str, count: int) -> list[dict[str, Any]]:
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    said, value = io.StringIO(), None
    with contextlib.redirect_stdout(said):
        exec(compile(tree, name, "exec"), namespace)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), name, "eval"), namespace)
    outputs: list[dict[str, Any]] = []
    if said.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": _lines(said.getvalue())})
    if value is not None:
        shown = {"output_type": "execute_result", "execution_count": count, "metadata": {}, "data": _data(value)}
        outputs.append(shown)
    return outputs


def _data(value: Any) -> dict[str, Any]:
    if isinstance(value, Image.Image):
        stored = io.BytesIO()
        value.save(stored, "PNG", optimize=True)
        return {"image/png": base64.b64encode(stored.getvalue()).decode("ascii"), "text/plain": ["<picture>"]}
    return {"text/plain": _lines(repr(value))}


def as_page(notebook: dict[str, Any], file: str) -> str:
    """The notebook as Markdown: code as snippets, outputs below them."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {})
            if "image/png" in data:
                parts.append(f"![What the cell above shows](data:image/png;base64,{data['image/png']})")
            else:
                text = "".join(output.get("text", data.get("text/plain", [])))
                parts.append(f"```text\n{text.rstrip()}\n```")
    made = f"python scripts/run_notebook.py docs/notebooks/{file}"
    origin = f"Made from [{file}]({file}), which opens in any Jupyter, by `{made}`."
    return "\n\n".join([*parts, origin]) + "\n"


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("notebook", type=Path)
    parser.add_argument("--page-only", action="store_true", help="write the page from the outputs that are there")
    given = parser.parse_args()
    notebook = json.loads(given.notebook.read_text("utf-8"))
    if not given.page_only:
        # What cells save is no part of the documentation.
        with tempfile.TemporaryDirectory() as elsewhere, contextlib.chdir(elsewhere):
            notebook = executed(notebook)
        given.notebook.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")
    given.notebook.with_suffix(".md").write_text(as_page(notebook, given.notebook.name), "utf-8")


if __name__ == "__main__":
    main()
