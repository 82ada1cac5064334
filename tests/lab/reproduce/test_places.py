from pathlib import Path

import pytest

from polytta.errors import DataError
from polytta.lab.reproduce.places import BACKBONES, Place
from polytta.lab.reproduce.recipes.imagenet_c import RECIPE


def test_the_papers_own_data_and_protocol(tmp_path: Path) -> None:
    (tmp_path / "weights").mkdir()
    for file in ("resnet50_gn.safetensors", "vit_base_patch16_224.pth"):
        (tmp_path / "weights" / file).touch()
    grids = [block.grid(Place(tmp_path)) for block in RECIPE.blocks]
    weights = tmp_path / "weights" / "vit_base_patch16_224.pth"
    assert grids[1].models == (f"timm/vit_base_patch16_224.augreg_in21k_ft_in1k={weights}",)
    for grid in grids:
        assert grid.datasets == (f"imagenet-c={tmp_path}",)
        assert grid.normalisation == "sar2023"
        assert len(grid.seeds) == 5
        assert grid.images is None
        assert grid.lrs == ()
        assert len(grid.cells()) == 15 * 8 * 5
        grads = [cell for cell in grid.cells() if cell.variant == "grad"]
        assert all(cell.option("diversity") == {"name": "grad", "scale": "literal"} for cell in grads)


def test_label_shift_on_imagenet_is_counted_in_draws(tmp_path: Path) -> None:
    single, shifted = (block for block in RECIPE.blocks if block.backbone == "ViTBase-LN")
    assert shifted.scenario == "label_shift"
    assert shifted.images(Place(tmp_path)) == 2 * single.images(Place(tmp_path)) == 15 * 8 * 5 * 100_000


def test_missing_weights_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"weights.resnet50_gn\.safetensors: got no file"):
        Place(tmp_path).model("ResNet-50-GN")


def test_every_backbone_has_a_bundled_stand_in() -> None:
    assert all(Place().model(name).startswith("bundled/") for name in BACKBONES)
