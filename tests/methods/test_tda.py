"""TDA's settings: state files, tables, and what they refuse."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch

import polytta
from polytta.checks.networks import small_clip, small_stream
from polytta.errors import ConfigError
from polytta.methods import TDA
from polytta.methods.tda import Cache


@pytest.mark.parametrize("method", ["tda", TDA(positive=Cache(1, 2.0, 4.0), entropies=(0.0, 1.0))])
def test_a_state_file_holds_its_caches_and_their_settings(tmp_path: Path, method: Any) -> None:
    adapted = polytta.adapt(small_clip(), method, particles=2)
    stream = small_stream(8, 3)
    for x in stream[:4]:
        adapted(x)
    adapted.save(tmp_path / "state")
    back = polytta.load(tmp_path / "state", small_clip())
    assert back.config.methods == adapted.config.methods
    for x in stream[4:]:
        assert torch.equal(back(x), adapted(x))
    for name, value in adapted.state_dict().items():
        assert torch.equal(value, back.state_dict()[name]), name


def test_caches_come_from_tables() -> None:
    table = {"name": "tda", "probs": [0.1, 0.9], "positive": {"slots": 1, "alpha": 2.0, "beta": 5.0}}
    adapted = polytta.adapt(small_clip(), table, particles=1)
    assert adapted.config.methods == (TDA(positive=Cache(1, 2.0, 5.0), probs=(0.1, 0.9)),)


@pytest.mark.parametrize("positive", [{"slots": 1}, {"slots": 1, "alpha": 2.0, "beta": 5.0, "gamma": 1.0}, {}])
def test_tables_of_other_fields_get_one_sentence(positive: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"method: got tda.positive={.*}; allowed is a table of slots, alpha, beta"):
        polytta.adapt(small_clip(), {"name": "tda", "positive": positive})


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"entropies": (0.2,)}, r"TDA\(entropies=\(0.2,\)\); allowed is 0 <= low < high <= 1"),
        ({"entropies": "ab"}, r"TDA\(entropies='ab'\); allowed is 0 <= low"),
        ({"probs": None}, r"TDA\(probs=None\); allowed is 0 <= low"),
        ({"probs": (0.1, math.nan)}, r"TDA\(probs=\(0.1, nan\)\); allowed is 0 <= low"),
        (
            {"positive": Cache(2, "a", 1.0)},
            r"positive=Cache.*; allowed is a Cache of 0 slots or more, alpha and beta fi",
        ),
        ({"positive": Cache(2, math.nan, 1.0)}, "positive=Cache.*; allowed is a Cache of"),
        ({"negative": Cache(2, 1.0, math.inf)}, "negative=Cache.*; allowed is a Cache of"),
        ({"negative": Cache(True, 1.0, 1.0)}, "negative=Cache.*; allowed is a Cache of"),
        ({"negative": {"slots": 1}}, "negative={'slots': 1}.*; allowed is a Cache of"),
        ({"scale": "x"}, r"TDA\(scale='x'\); allowed is a number > 0, or None"),
        ({"scale": math.nan}, r"TDA\(scale=nan\); allowed is a number > 0"),
        ({"views": 3}, r"TDA\(views=3\); allowed is a callable"),
        ({"views": lambda x, noise: 3}, "got int from tda.views for images of .*; allowed is a list of tensors"),
    ],
)
def test_wrong_settings_get_one_sentence(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        polytta.adapt(small_clip(), TDA(**settings), particles=1)(small_stream(1, 2)[0])
