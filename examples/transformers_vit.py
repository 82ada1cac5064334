"""A transformers image classifier: its record with ``.logits`` and its ``pixel_values=`` are understood as they are."""

import torch
from transformers import ViTConfig, ViTForImageClassification

import polytta


def main() -> torch.Tensor:
    """(8, 10) log-probabilities of a batch."""
    # In earnest: ViTForImageClassification.from_pretrained("google/vit-base-patch16-224"), and pixel_values from its
    # image processor.
    config = ViTConfig(
        hidden_size=32,
        num_hidden_layers=4,
        num_attention_heads=2,
        intermediate_size=64,
        image_size=32,
        patch_size=8,
        num_labels=10,
    )
    model = ViTForImageClassification(config)
    adapted = polytta.adapt(model)
    for _ in range(3):
        batch = {"pixel_values": torch.randn(8, 3, 32, 32), "labels": torch.zeros(8)}
        log_probs = adapted(**batch)
    print(adapted.summary())
    return log_probs


if __name__ == "__main__":
    main()
