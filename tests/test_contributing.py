"""The examples in CONTRIBUTING.md work as printed: as objects, by module:Class, and under the shipped checks."""

import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
import torch

import polytta
import polytta.checks
from polytta.checks.networks import small_model, small_stream
from polytta.diversity import KL, Grad

TEXT = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text()
FILES = dict(re.findall(r"```python\n# (\w+\.py)\n(.*?)```", TEXT, re.DOTALL))


@pytest.fixture(scope="module", autouse=True)
def examples(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with every example as a module, on Python's path."""
    folder = tmp_path_factory.mktemp("examples")
    for name, code in FILES.items():
        (folder / name).write_text(code)
    sys.path.insert(0, str(folder))
    yield folder
    sys.path.remove(str(folder))


def test_every_example_is_a_file_of_less_than_a_hundred_lines() -> None:
    assert set(FILES) == {
        "confident.py", "mean_teacher.py", "spread.py", "agree.py", "lion.py", "grey.py", "cautious.py",
    }  # fmt: skip
    assert TEXT.count("```python") == len(FILES), "a code block without a file name is not run by anybody"
    assert all(len(code.splitlines()) < 100 for code in FILES.values())


def test_the_method_conforms_and_selects() -> None:
    confident = import_module("confident").Confident
    polytta.checks.check_method(confident(threshold=0.5))
    adapted = polytta.adapt(small_model("group"), confident(), lr=0.01, exclude=None)
    for x in small_stream(3, 4):
        adapted(x)
    assert 0 < sum(adapted.totals.selected["confidence"]) < 36


def test_the_method_with_its_own_targets_conforms_and_is_diversified() -> None:
    polytta.checks.check_method(import_module("mean_teacher").MeanTeacher(momentum=0.5))
    runs = {}
    for name, diversity in {"none": "none", "kl": KL(weight=100.0), "grad": Grad(weight=1.0)}.items():
        method = {"name": "mean_teacher:MeanTeacher", "momentum": 0.5}
        adapted = polytta.adapt(small_model("group"), method, diversity=diversity, lr=0.05, exclude=None)
        for x in small_stream(4, 6):
            adapted(x)
        runs[name] = adapted.theta
    drift = float((runs["none"] - adapted.source).norm())
    assert float((runs["kl"] - runs["none"]).norm()) > 0.01 * drift
    assert float((runs["grad"] - runs["none"]).norm()) > 0.01 * drift


def test_the_diversifiers_conform() -> None:
    polytta.checks.check_diversifier("agree:Agree")
    for check in polytta.checks.CHECKS:
        check(polytta.checks.Case("group", arguments={"method": "tent", "diversity": "spread:Spread"}))


@pytest.mark.parametrize(
    ("argument", "part"), [("optimizer", "lion:Lion"), ("lenses", "grey:grey"), ("aggregate", "cautious:Cautious")]
)
def test_the_other_parts_conform(argument: str, part: str) -> None:
    polytta.checks.check_part(argument, part)


def test_the_lion_walks_in_steps_of_one_size() -> None:
    adapted = polytta.adapt(small_model("group"), "tent", particles=1, optimizer="lion:Lion", lr=0.01, exclude=None)
    adapted(small_stream(1, 4)[0])
    assert torch.allclose((adapted.theta - adapted.source).abs(), torch.tensor(0.01, dtype=torch.float64))


def test_a_registered_part_has_a_name() -> None:
    spread = import_module("spread").Spread
    polytta.register_diversity(spread)
    adapted = polytta.adapt(small_model("group"), diversity={"name": "spread", "weight": 0.5})
    assert adapted.config.diversity == spread(weight=0.5)
    with pytest.raises(polytta.errors.ConfigError, match="allowed is a subclass of Method"):
        polytta.register_method(spread)


def test_an_installed_package_brings_names(examples: Path) -> None:
    about = examples / "afar-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: afar\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[polytta.methods]\nconfident = confident:Confident\n")
    adapted = polytta.adapt(small_model("group"), {"name": "confident", "threshold": 0.7})
    assert adapted.config.method == import_module("confident").Confident(threshold=0.7)
    assert "confident" in polytta.methods.METHODS


def test_a_part_from_outside_comes_back_from_a_state_file(tmp_path: Path) -> None:
    model = small_model("group")
    adapted = polytta.adapt(
        model, "mean_teacher:MeanTeacher", lenses=["unchanged", "grey:grey"], optimizer="lion:Lion", lr=0.01
    )
    stream = small_stream(4, 4)
    for x in stream[:2]:
        adapted(x)
    adapted.save(tmp_path / "state")
    back = polytta.load(tmp_path / "state", model)
    assert all(torch.equal(back(x), adapted(x)) for x in stream[2:])


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("no_such_module:Part", "allowed are modules that can be imported"),
        ("confident:Missing", "allowed is a name that 'confident' has"),
        ("grey:grey", "allowed are .*'module:Class', or an object of polytta.methods"),
    ],
)
def test_a_path_that_leads_nowhere_gets_one_clear_sentence(path: str, says: str) -> None:
    with pytest.raises(polytta.errors.ConfigError, match=f"method: got '{path}'.*{says}"):
        polytta.adapt(small_model("group"), path)
