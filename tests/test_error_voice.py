"""Everything polytta refuses, it refuses in one voice: `argument: got ...; allowed ...`, one sentence."""

import ast
from collections.abc import Iterator
from pathlib import Path

import polytta
from polytta import errors

OURS = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}


def messages() -> Iterator[tuple[str, str]]:
    """(place, text) of every sentence that an error of ours is raised with; what wraps another sentence has none."""
    package = Path(polytta.__file__).parent
    for file in sorted(package.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if not (isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args):
                continue
            if getattr(node.exc.func, "id", "") in OURS:
                text = node.exc.args[0]
                whole = ast.unparse(text)
                if not whole.endswith(("{error}'", 'error}"')):
                    yield f"{file.relative_to(package)}:{node.lineno}", whole


def test_every_sentence_says_what_was_got_and_what_is_allowed() -> None:
    found = list(messages())
    assert len(found) > 100, "the messages were not found, so nothing was tested"
    off = [f"{place}: {text}" for place, text in found if "got" not in text or "allowed" not in text]
    assert not off, "\n".join(off)
