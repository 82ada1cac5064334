import pytest
import torch
from safetensors.torch import save_file

from polytta.data.bundled import load_cifar10_subset
from polytta.errors import DataError, InputError
from polytta.models import BUNDLED, create, shipped

NORMS = {
    "cifar10_resnet_gn": torch.nn.GroupNorm,
    "cifar10_resnet_bn": torch.nn.BatchNorm2d,
    "cifar10_vit_ln": torch.nn.LayerNorm,
}


@pytest.fixture
def weights(tmp_path, request):
    """Write random fp16 weights of a bundled architecture."""
    torch.manual_seed(0)
    module = BUNDLED[request.param].build(10)
    halves = {k: v.half() if v.is_floating_point() else v for k, v in module.state_dict().items()}
    save_file(halves, tmp_path / "w.safetensors")
    return request.param, tmp_path / "w.safetensors", halves


@pytest.mark.parametrize("name", BUNDLED)
def test_small_enough_and_one_kind_of_norm(name):
    module = BUNDLED[name].build(10)
    assert 2 * sum(p.numel() for p in module.parameters()) < 3_600_000
    norms = {type(m) for m in module.modules() if "Norm" in type(m).__name__}
    assert norms == {NORMS[name]}


def test_names_that_layer_rules_rely_on():
    vit = {name for name, _ in BUNDLED["cifar10_vit_ln"].build(10).named_modules()}
    assert {"blocks.0.norm1", "blocks.9.norm2", "blocks.11.norm1", "norm"} <= vit
    resnet = {name for name, _ in BUNDLED["cifar10_resnet_gn"].build(10).named_modules()}
    assert {"layer1", "layer2", "layer3", "layer4", "bn1", "layer4.0.bn2"} <= resnet


@pytest.mark.parametrize("name", BUNDLED)
def test_second_derivatives_exist(name):
    torch.manual_seed(0)
    module = BUNDLED[name].build(3).eval()
    x = torch.randn(2, 3, 32, 32, requires_grad=True)
    logits = module(x)
    assert logits.shape == (2, 3)
    (slope,) = torch.autograd.grad(logits.square().sum(), x, create_graph=True)
    slope.square().sum().backward()
    assert x.grad is not None
    assert torch.isfinite(x.grad).all()


@pytest.mark.parametrize("weights", BUNDLED, indirect=True)
def test_create_with_weights(weights):
    name, path, halves = weights
    model = create(f"bundled/{name}", weights=path)
    assert model.num_classes == 10
    assert len(model.weights_sha256) == 64
    assert not model.module.training
    assert model.preprocessing.size == 32
    for key, value in model.module.state_dict().items():
        assert torch.equal(value, halves[key].to(value.dtype))
    images = [load_cifar10_subset()[i][0] for i in range(3)]
    with torch.no_grad():
        assert model.module(model.preprocessing(images)).shape == (3, 10)
    assert model.facts()["preprocessing"]["mean"] == (0.4914, 0.4822, 0.4465)


def test_unknown_name():
    with pytest.raises(InputError, match="are cifar10_resnet_gn, cifar10_vit_ln, cifar10_resnet_bn, mini_clip"):
        create("bundled/resnet")


def test_missing_and_altered_weights(tmp_path, monkeypatch):
    monkeypatch.setattr(shipped, "ASSETS", tmp_path)
    record = {"file": "cifar10_resnet_bn.safetensors", "sha256": "0" * 64}
    monkeypatch.setattr(shipped, "bundled_records", lambda: {"cifar10_resnet_bn": record})
    with pytest.raises(DataError, match=r"got no cifar10_resnet_gn\.safetensors"):
        create("bundled/cifar10_resnet_gn")
    save_file(BUNDLED["cifar10_resnet_bn"].build(10).state_dict(), tmp_path / record["file"])
    with pytest.raises(DataError, match="allowed is 0000"):
        create("bundled/cifar10_resnet_bn")
