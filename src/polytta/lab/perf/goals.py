"""What is measured, and what it should not cost more than."""

VIT, RESNET_GN, RESNET_BN = "timm/vit_base_patch16_224", "timm/resnet50_gn", "timm/resnet50"
BUNDLED = "bundled/cifar10_resnet_gn"
LABELS = {VIT: "ViT-B/16", RESNET_GN: "ResNet-50-GN", RESNET_BN: "ResNet-50-BN", BUNDLED: "bundled ResNet-GN"}
GOALS = {
    (VIT, 1): 0.30,
    (VIT, 64): 0.55,
    (RESNET_GN, 1): 0.40,
    (RESNET_GN, 64): 1.0,
    (RESNET_BN, 64): 1.0,
    (BUNDLED, 1): 0.15,
}
"""{(model, batch): largest wanted time of three particles with Grad over one-model DeYO}."""
GROWTH_GOAL = 2.0
"""Largest wanted time of the most particles over one, on the ViT at batch 1."""
POPULATIONS = (5, 15, 45)
"""Populations in one batch whose cost is shown."""
POPULATIONS_GOAL = (15, 1.5)
"""A number of them, and their largest wanted time over one."""
PARTICLES = (1, 2, 3, 5, 8)
"""Particles whose growth is shown."""
PARTICLES_AT_ONCE = 3
"""Particles in one pass where many are to fit into little memory."""
BATCHES = (1, 4, 16, 64)
"""Batch sizes whose growth is shown."""
PLAIN = "plain"
"""Engine of a reference that is written as the public code is; before, it was polytta's own loop."""
