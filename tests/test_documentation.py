"""Documentation does as it says: every Python snippet runs, every link leads somewhere, the site has every page."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
SNIPPET = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!`)\[[^\]]*\]\(([^)\s]+)\)")
NEEDS_A_DOWNLOAD = re.compile(r'from_pretrained\(|pretrained="')
WITH_SNIPPETS = [page for page in PAGES if SNIPPET.search(page.read_text())]


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def test_snippets_were_found() -> None:
    assert {name(page) for page in WITH_SNIPPETS} >= {"README.md", "docs/quickstart.md", "docs/how-to/own-model.md"}


@pytest.mark.parametrize("page", WITH_SNIPPETS, ids=name)
def test_snippets_run_as_printed(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__snippet__"}
    for number, code in enumerate(SNIPPET.findall(page.read_text())):
        made = compile(code, f"{name(page)}, snippet {number}", "exec")
        if not NEEDS_A_DOWNLOAD.search(code):
            exec(made, namespace)


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "ARCHITECTURE.md"], ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    broken = []
    for address in LINK.findall(text):
        if re.match(r"[a-z]+:", address):
            continue
        place, _, anchor = address.partition("#")
        target = page if not place else (page.parent / place)
        if not target.exists() or (anchor and anchor not in _anchors(target)):
            broken.append(address)
    assert not broken


def test_every_page_is_on_the_site() -> None:
    listed = set(re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text().partition("nav:")[2]))
    assert listed == {page.relative_to(ROOT / "docs").as_posix() for page in PAGES if page.name != "README.md"}


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings}
