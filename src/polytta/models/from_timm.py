"""``timm/NAME.TAG``: any classifier of timm, with the preprocessing timm records for that tag."""

from __future__ import annotations

from polytta.errors import InputError
from polytta.models._torchvision_cpu import import_zoo
from polytta.models.preprocessing import Preprocessing, triple
from polytta.models.record import SourceModel
from polytta.models.weights import WeightsPath, load_weights, missing_weights


def from_timm(name: str, weights: WeightsPath | None, num_classes: int | None) -> SourceModel:
    """Build a timm model and load its weights from a file."""
    timm = import_zoo("timm")
    architecture = name.partition(".")[0]
    if not timm.is_model(architecture):
        raise InputError(f"model: got timm/{architecture}; allowed is what timm.list_models() lists.")
    if weights is None:
        raise missing_weights(f"timm/{name}", "model.safetensors", f"Hugging Face repository timm/{name}")
    options = {} if num_classes is None else {"num_classes": num_classes}
    try:
        module = timm.create_model(name, pretrained=False, **options)
    except RuntimeError as error:
        raise InputError(f"model: got timm/{name}; allowed are the tags that timm knows of {architecture}.") from error
    digest = load_weights(module, weights)
    config = timm.data.resolve_model_data_config(module)
    size = int(config["input_size"][-1])
    preprocessing = Preprocessing(
        triple(config["mean"]),
        triple(config["std"]),
        size,
        int(size / config["crop_pct"]),
        "bicubic" if config["interpolation"] == "bicubic" else "bilinear",
        "squash" if config["crop_mode"] == "squash" else "crop",
    )
    return SourceModel(f"timm/{name}", module.eval(), preprocessing, int(module.num_classes), digest)
