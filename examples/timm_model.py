"""A timm model with its own transforms: whatever size and normalization its weights were trained with."""

import numpy as np
import timm
import torch
from PIL import Image

import polytta


def main() -> torch.Tensor:
    """(4, 10) log-probabilities of a batch of photographs."""
    # In earnest: pretrained=True.
    model = timm.create_model("resnet18", pretrained=False, num_classes=10).eval()
    config = timm.data.resolve_model_data_config(model)
    transform = timm.data.create_transform(**{**config, "input_size": (3, 64, 64)}, is_training=False)
    photographs = [
        Image.fromarray(np.random.default_rng(n).integers(256, size=(80, 100, 3), dtype=np.uint8)) for n in range(4)
    ]
    adapted = polytta.adapt(model, "deyo", particles=3, statistics="blend")
    log_probs = adapted(torch.stack([transform(photograph) for photograph in photographs]))
    print(adapted)
    return log_probs


if __name__ == "__main__":
    main()
