"""Real architectures with random weights, small enough to run in tests. Needs the ``zoo`` extra."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from polytta.models._torchvision_cpu import import_zoo

import_zoo("timm")
import open_clip.transformer  # noqa: E402
import timm  # noqa: E402
import torchvision.models  # noqa: E402
import transformers  # noqa: E402


class Logits(nn.Module):
    """A transformers model reduced to its logits."""

    def __init__(self, model: nn.Module, field: str) -> None:
        super().__init__()
        self.model = model
        self.field = field

    def forward(self, x: Tensor) -> Tensor:
        return getattr(self.model(x), self.field)


def timm_model(name: str, **arguments: object) -> nn.Module:
    torch.manual_seed(0)
    return timm.create_model(name, **arguments)


def open_clip_tower() -> nn.Module:
    return open_clip.transformer.VisionTransformer(
        image_size=32, patch_size=8, width=32, layers=4, heads=2, mlp_ratio=2, output_dim=10
    )


_TINY = {
    "hidden_size": 32,
    "num_hidden_layers": 4,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "image_size": 32,
    "patch_size": 8,
}


def transformers_vit() -> nn.Module:
    config = transformers.ViTConfig(**_TINY, num_labels=10)
    return Logits(transformers.ViTForImageClassification(config), "logits")


def transformers_clip() -> nn.Module:
    config = transformers.CLIPVisionConfig(**_TINY, projection_dim=10)
    return Logits(transformers.CLIPVisionModelWithProjection(config), "image_embeds")


def torch_encoder() -> nn.Module:
    """torch's own encoder, whose fused inference path would read norm weights past a replaced layer."""
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.patches = nn.Conv2d(3, 16, 8, 8)
            self.encoder = nn.TransformerEncoder(layer, 4)
            self.head = nn.Linear(16, 10)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.encoder(self.patches(x).flatten(2).transpose(1, 2)).mean(dim=1))

    return Net()


BUILDERS: dict[str, Callable[[], nn.Module]] = {
    "timm/resnet50_gn": lambda: timm_model("resnet50_gn", num_classes=10),
    "timm/vit_tiny": lambda: timm_model("vit_tiny_patch16_224", num_classes=10, img_size=32),
    "timm/resnet18": lambda: timm_model("resnet18", num_classes=10),
    "timm/convnext_atto": lambda: timm_model("convnext_atto", num_classes=10),
    "timm/convnextv2_atto": lambda: timm_model("convnextv2_atto", num_classes=10),
    "timm/efficientnet_b0": lambda: timm_model("efficientnet_b0", num_classes=10),
    "timm/resnetv2_18 (fused norm + activation)": lambda: timm_model("resnetv2_18", num_classes=10),
    "timm/eva02 (rotary)": lambda: timm_model("eva02_tiny_patch14_224", num_classes=10, img_size=28),
    "torchvision/resnet18": lambda: torchvision.models.resnet18(num_classes=10),
    "torchvision/mobilenet_v3_small": lambda: torchvision.models.mobilenet_v3_small(num_classes=10),
    "torchvision/convnext_tiny (NCHW layer norm)": lambda: torchvision.models.convnext_tiny(num_classes=10),
    "open_clip/visual tower": open_clip_tower,
    "transformers/vit": transformers_vit,
    "transformers/clip": transformers_clip,
    "torch/encoder": torch_encoder,
}


def models() -> Iterator[str]:
    yield from BUILDERS


def build(name: str) -> tuple[nn.Module, int]:
    """A model in double precision with non-trivial norm parameters, and the side of its images."""
    torch.manual_seed(0)
    model = BUILDERS[name]().double().eval()
    with torch.no_grad():
        for module in model.modules():
            if "norm" in type(module).__name__.lower():
                for parameter in module.parameters(recurse=False):
                    parameter.add_(0.1 * torch.randn_like(parameter))
    return model, {"timm/eva02 (rotary)": 28, "timm/efficientnet_b0": 64}.get(name, 32)
