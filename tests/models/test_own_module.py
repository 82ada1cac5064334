import sys

import pytest
import torch
from safetensors.torch import save_file

from polytta.errors import DataError, InputError
from polytta.models import create

SOURCE = """
import torch
from polytta.models import Preprocessing, SourceModel

def build():
    torch.manual_seed(0)
    module = torch.nn.Conv2d(3, 2, 8)
    colours = {"mean": (0.5,) * 3, "std": (0.25,) * 3}
    module.pretrained_cfg = {"input_size": (3, 8, 8), "num_classes": 2, **colours}
    return module

def whole():
    return SourceModel("x", build(), Preprocessing((0.0,) * 3, (1.0,) * 3, 8, 8), 2, "")

def bare():
    return torch.nn.Conv2d(3, 2, 8)
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "own_models.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    yield "own_models"
    sys.modules.pop("own_models", None)


def test_network_with_timm_like_configuration(module, tmp_path):
    model = create(f"{module}:build")
    assert model.id == "own_models:build"
    assert model.preprocessing.std == (0.25, 0.25, 0.25)
    assert model.num_classes == 2
    assert create(f"{module}:build").weights_sha256 == model.weights_sha256
    save_file({k: v + 1 for k, v in model.module.state_dict().items()}, tmp_path / "w.safetensors")
    other = create(f"{module}:build", weights=tmp_path / "w.safetensors")
    assert other.weights_sha256 != model.weights_sha256
    assert torch.equal(other.module.weight, model.module.weight + 1)


def test_whole_record(module):
    model = create(f"{module}:whole")
    assert model.id == "own_models:whole"
    assert model.preprocessing.std == (1.0, 1.0, 1.0)
    assert len(model.weights_sha256) == 64


def test_refusals(module):
    with pytest.raises(InputError, match="allowed is a SourceModel, or a torch module"):
        create(f"{module}:bare")
    with pytest.raises(InputError, match="allowed is a function that"):
        create(f"{module}:nothing")
    with pytest.raises(InputError, match="'nowhere' cannot"):
        create("nowhere:build")
    with pytest.raises(InputError, match=r"model: got .*; allowed are"):
        create("resnet50")


def test_weights_may_be_said_beside_the_name(module, tmp_path):
    file = tmp_path / "w.safetensors"
    state = {name: value + 1 for name, value in create(f"{module}:build").module.state_dict().items()}
    save_file(state, file)
    said = create(f"{module}:build={file}")
    assert said.id == "own_models:build"
    assert torch.equal(said.module.weight, state["weight"])
    assert said.facts() == create(f"{module}:build", weights=file).facts()
    with pytest.raises(InputError, match=r"weights: got .* beside own_models:build=.*; allowed is one of the two"):
        create(f"{module}:build={file}", weights=file)
    with pytest.raises(DataError, match=r"weights: got .*, which is missing"):
        create(f"{module}:build=")
