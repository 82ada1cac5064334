import pytest
import torch
from torch import nn

import polytta
from polytta.checks.networks import small_model
from polytta.errors import ConfigError, ModelError
from polytta.network.layout import Layout
from polytta.network.targets import choose_layers, norm_layers

zoo = pytest.importorskip("tests.particles.zoo")


def scalars(model: nn.Module, layers: tuple[str, ...]) -> int:
    return Layout.of(model, layers).total


def test_reference_exclusion_on_the_reference_models() -> None:
    resnet, vit = zoo.timm_model("resnet50_gn"), zoo.timm_model("vit_base_patch16_224")
    assert scalars(resnet, choose_layers(resnet, None, "auto")) == 30_592
    assert scalars(vit, choose_layers(vit, None, "auto")) == 27_648
    assert not any("layer4" in name for name in choose_layers(resnet, None, "auto"))
    assert choose_layers(vit, None, "auto")[-1] == "blocks.8.norm2"


def test_other_models_freeze_their_top_quarter() -> None:
    convnext = zoo.timm_model("convnext_atto")
    kept = choose_layers(convnext, None, "auto")
    assert any(name.startswith("stages.2") for name in kept)
    assert not any(name.startswith(("stages.3", "head")) for name in kept)
    plain = nn.Sequential(*[nn.LayerNorm(4) if i % 2 else nn.Linear(4, 4) for i in range(16)])
    assert choose_layers(plain, None, "auto") == ("1", "3", "5", "7", "9", "11")


def test_names_prefixes_and_regular_expressions() -> None:
    model = small_model("group")
    assert norm_layers(model) == ("blocks.0.norm", "blocks.1.norm")
    assert choose_layers(model, "blocks.0", None) == ("blocks.0.norm",)
    assert choose_layers(model, [r"1\.norm$"], None) == ("blocks.1.norm",)
    assert choose_layers(model, None, ["blocks.0.norm"]) == ("blocks.1.norm",)
    assert choose_layers(model, "blocks", "auto") == norm_layers(model), "an explicit choice is not trimmed"


@pytest.mark.parametrize("argument", ["targets", "exclude"])
def test_a_pattern_that_matches_nothing_lists_what_exists(argument: str) -> None:
    arguments = {"targets": None, "exclude": None, argument: "layer9"}
    with pytest.raises(ConfigError, match=rf"{argument}: got 'layer9', which matches no norm layer.*'blocks\.0\.norm'"):
        choose_layers(small_model("group"), **arguments)


def test_excluding_everything_and_models_without_norms_are_refused() -> None:
    with pytest.raises(ConfigError, match="leaves no layer"):
        choose_layers(small_model("group"), None, ".*")
    with pytest.raises(ConfigError, match="allowed are names and regular expressions"):
        choose_layers(small_model("group"), "(", None)
    with pytest.raises(ModelError, match="without a normalization layer"):
        choose_layers(nn.Linear(3, 2), None, "auto")


def test_auxiliary_heads_are_left_alone() -> None:
    """Nobody calls them but in training, so they could not adapt."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norms = nn.ModuleDict({f"n{number}": nn.LayerNorm(4) for number in range(4)})
            self.AuxLogits = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4))
            self.head = nn.Linear(4, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for norm in self.norms.values():
                x = norm(x)
            return self.head(x)

    assert choose_layers(Net(), None, "auto") == ("norms.n0", "norms.n1", "norms.n2")
    assert polytta.adapt(Net(), "tent")(torch.randn(4, 4)).shape == (4, 3)
