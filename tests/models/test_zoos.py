"""timm, torchvision and open_clip by name, weights from files; skipped where a zoo is not installed."""

import importlib

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from tests.extras import needs

from polytta.errors import DataError, InputError
from polytta.models import Preprocessing, _torchvision_cpu, create
from polytta.models._torchvision_cpu import import_zoo
from polytta.models.preprocessing import IMAGENET_MEAN, IMAGENET_STD


@pytest.mark.parametrize(
    ("model_id", "file"),
    [
        pytest.param("timm/resnet50_gn.a1h_in1k", "model.safetensors", marks=needs("timm")),
        pytest.param("timm/vit_base_patch16_224.augreg_in21k_ft_in1k", "model.safetensors", marks=needs("timm")),
        pytest.param("open_clip/ViT-B-32/laion2b_s34b_b79k", "open_clip_model.safetensors", marks=needs("open_clip")),
        pytest.param("torchvision/resnet50", "resnet50-0676ba61.pth", marks=needs("torchvision")),
    ],
)
def test_without_weights_the_file_to_supply_is_named(model_id, file):
    with pytest.raises(DataError, match=f"weights: got none for {model_id}; allowed is {file}"):
        create(model_id)


@needs("timm")
def test_timm_with_its_own_and_with_the_published_normalisation(tmp_path):
    timm = import_zoo("timm")
    name = "vit_tiny_patch16_224.augreg_in21k_ft_in1k"
    source = timm.create_model(name)
    save_file(source.state_dict(), tmp_path / "model.safetensors")
    own = create(f"timm/{name}", weights=tmp_path / "model.safetensors")
    assert own.preprocessing.mean == own.preprocessing.std == (0.5, 0.5, 0.5)
    assert (own.preprocessing.size, own.preprocessing.resize) == (224, 248)
    assert own.preprocessing.interpolation == "bicubic"
    assert own.num_classes == 1000
    assert torch.equal(own.module.head.weight, source.head.weight)
    sar = create(f"timm/{name}", weights=tmp_path / "model.safetensors", normalisation="sar2023")
    assert (sar.preprocessing.mean, sar.preprocessing.std) == (IMAGENET_MEAN, IMAGENET_STD)
    assert sar.weights_sha256 == own.weights_sha256


@needs("torchvision")
@pytest.mark.parametrize("shape", [(300, 400), (401, 257), (100, 90)])
@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
def test_resizing_and_cropping_is_that_of_torchvision(shape, interpolation):
    import_zoo("torchvision")
    transforms = importlib.import_module("torchvision.transforms")
    image = np.random.default_rng(0).integers(0, 256, (*shape, 3), np.uint8)
    ours = Preprocessing((0.0,) * 3, (1.0,) * 3, 224, 248, interpolation)([image])[0]
    mode = transforms.InterpolationMode(interpolation)
    chain = transforms.Compose([transforms.Resize(248, mode), transforms.CenterCrop(224), transforms.ToTensor()])
    assert torch.equal(ours, chain(Image.fromarray(image)))


@needs("torchvision")
def test_declared_operators_are_only_a_cpu_matter():
    import_zoo("torchvision")
    assert len(_torchvision_cpu._declared) <= 1
    if torch.version.cuda:
        assert not _torchvision_cpu._declared


@needs("timm")
def test_timm_unknown_names(tmp_path):
    with pytest.raises(InputError, match="got timm/resnet51"):
        create("timm/resnet51")
    with pytest.raises(InputError, match="allowed are the tags"):
        create("timm/resnet18.no_such_tag", weights=tmp_path)


@needs("torchvision")
def test_torchvision(tmp_path):
    zoo = import_zoo("torchvision").models
    torch.save(zoo.resnet18(num_classes=2).state_dict(), tmp_path / "w.pth")
    model = create("torchvision/resnet18", weights=tmp_path / "w.pth", num_classes=2)
    assert model.num_classes == 2
    assert (model.preprocessing.mean, model.preprocessing.std) == (IMAGENET_MEAN, IMAGENET_STD)
    assert (model.preprocessing.size, model.preprocessing.resize) == (224, 256)
    with pytest.raises(InputError, match=r"fc\.weight has shape \(2, 512\); allowed is \(1000, 512\)|fc\.bias"):
        create("torchvision/resnet18", weights=tmp_path / "w.pth")
    with pytest.raises(InputError, match="got torchvision/resnet51"):
        create("torchvision/resnet51")


@needs("open_clip")
def test_open_clip_is_a_zero_shot_classifier(tmp_path, monkeypatch):
    open_clip = import_zoo("open_clip")
    torch.manual_seed(0)
    small = open_clip.CLIP(
        embed_dim=16,
        vision_cfg={"layers": 1, "width": 64, "patch_size": 16, "image_size": 32, "head_width": 32},
        text_cfg={"context_length": 77, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 1},
    )
    monkeypatch.setattr(open_clip, "create_model", lambda *_, **__: small)
    save_file(small.state_dict(), tmp_path / "w.safetensors")
    given = {"weights": tmp_path / "w.safetensors", "classes": ("cat", "dog", "ship")}
    model_id = "open_clip/ViT-B-32/laion2b_s34b_b79k"
    model = create(model_id, **given, templates=("a photo of a {}", "art of the {}."))
    assert model.num_classes == 3
    assert model.preprocessing.mean[0] == pytest.approx(0.4815, abs=1e-4)
    assert model.preprocessing.interpolation == "bicubic"
    assert model.module.text_features.shape == (2, 3, 16)
    x = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        logits = model.module(x)
        image = torch.nn.functional.normalize(small.encode_image(x), dim=-1)
    expected = small.logit_scale.exp() * image @ model.module.class_features.T
    assert torch.allclose(logits, expected, atol=1e-5)
    assert not any(name.startswith(("transformer", "token")) for name in model.module.state_dict())
    with pytest.raises(InputError, match="classes: got none"):
        create(model_id, weights=given["weights"])
    with pytest.raises(InputError, match="templates: got"):
        create(model_id, **given, templates=("a photo",))


@needs("open_clip")
def test_open_clip_unknown_tag():
    with pytest.raises(InputError, match="got 'ViT-B-32' with 'nothing'"):
        create("open_clip/ViT-B-32/nothing")


def test_zoo_that_is_not_installed():
    with pytest.raises(InputError, match=r"needs no_such_zoo; allowed with pip install 'polytta\[zoo\]'"):
        import_zoo("no_such_zoo")
