"""Severity constants of ImageNet-C and CIFAR-C.

Numbers are those of Hendrycks & Dietterich, "Benchmarking Neural Network Robustness to Common Corruptions and
Perturbations" (ICLR 2019, https://arxiv.org/abs/1903.12261), as published in the generation scripts
`make_imagenet_c.py` (224 pixels) and `make_cifar_c.py` (32 pixels) of hendrycks/robustness. What each number
means is written at the top of the module that uses it.
"""

from typing import Literal

ConstantSet = Literal["imagenet", "cifar"]
Params = tuple[float, ...]
SeverityTable = dict[str, tuple[Params, Params, Params, Params, Params]]

COMMON_CORRUPTIONS: tuple[str, ...] = (
    "gaussian_noise",
    "shot_noise",
    "impulse_noise",
    "defocus_blur",
    "glass_blur",
    "motion_blur",
    "zoom_blur",
    "snow",
    "frost",
    "fog",
    "brightness",
    "contrast",
    "elastic_transform",
    "pixelate",
    "jpeg_compression",
)
EXTRA_CORRUPTIONS: tuple[str, ...] = ("speckle_noise", "gaussian_blur", "spatter", "saturate")
# The position in this tuple keys the random streams: append, never reorder.
CORRUPTIONS: tuple[str, ...] = COMMON_CORRUPTIONS + EXTRA_CORRUPTIONS
SEVERITIES: tuple[int, ...] = (1, 2, 3, 4, 5)

IMAGENET: SeverityTable = {
    "gaussian_noise": ((0.08,), (0.12,), (0.18,), (0.26,), (0.38,)),
    "shot_noise": ((60,), (25,), (12,), (5,), (3,)),
    "impulse_noise": ((0.03,), (0.06,), (0.09,), (0.17,), (0.27,)),
    "speckle_noise": ((0.15,), (0.2,), (0.35,), (0.45,), (0.6,)),
    "gaussian_blur": ((1,), (2,), (3,), (4,), (6,)),
    "glass_blur": ((0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2)),
    "defocus_blur": ((3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)),
    "motion_blur": ((10, 3), (15, 5), (15, 8), (15, 12), (20, 15)),
    "zoom_blur": ((1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03)),
    "fog": ((1.5, 2), (2, 2), (2.5, 1.7), (2.5, 1.5), (3, 1.4)),
    "frost": ((1, 0.4, 1), (0.8, 0.6, 1), (0.7, 0.7, 1), (0.65, 0.7, 1), (0.6, 0.75, 1)),
    "snow": (
        (0.1, 0.3, 3, 0.5, 10, 4, 0.8),
        (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
        (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
        (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
        (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
    ),
    "spatter": (
        (0.65, 0.3, 4, 0.69, 0.6, 0),
        (0.65, 0.3, 3, 0.68, 0.6, 0),
        (0.65, 0.3, 2, 0.68, 0.5, 0),
        (0.65, 0.3, 1, 0.65, 1.5, 1),
        (0.67, 0.4, 1, 0.65, 1.5, 1),
    ),
    "contrast": ((0.4,), (0.3,), (0.2,), (0.1,), (0.05,)),
    "brightness": ((0.1,), (0.2,), (0.3,), (0.4,), (0.5,)),
    "saturate": ((0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (20, 0.2)),
    "jpeg_compression": ((25,), (18,), (15,), (10,), (7,)),
    "pixelate": ((0.6,), (0.5,), (0.4,), (0.3,), (0.25,)),
    # 244 is what the published script says (its author meant 224); the released images were made with it.
    "elastic_transform": (
        (244 * 2, 244 * 0.7, 244 * 0.1),
        (244 * 2, 244 * 0.08, 244 * 0.2),
        (244 * 0.05, 244 * 0.01, 244 * 0.02),
        (244 * 0.07, 244 * 0.01, 244 * 0.02),
        (244 * 0.12, 244 * 0.01, 244 * 0.02),
    ),
}

CIFAR: SeverityTable = {
    "gaussian_noise": ((0.04,), (0.06,), (0.08,), (0.09,), (0.10,)),
    "shot_noise": ((500,), (250,), (100,), (75,), (50,)),
    "impulse_noise": ((0.01,), (0.02,), (0.03,), (0.05,), (0.07,)),
    "speckle_noise": ((0.06,), (0.1,), (0.12,), (0.16,), (0.2,)),
    "gaussian_blur": ((0.4,), (0.6,), (0.7,), (0.8,), (1,)),
    "glass_blur": ((0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2)),
    "defocus_blur": ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1)),
    "motion_blur": ((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5)),
    "zoom_blur": ((1.06, 0.01), (1.11, 0.01), (1.16, 0.01), (1.21, 0.01), (1.26, 0.01)),
    "fog": ((0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75)),
    "frost": ((1, 0.2, 5), (1, 0.3, 5), (0.9, 0.4, 5), (0.85, 0.4, 5), (0.75, 0.45, 5)),
    "snow": (
        (0.1, 0.2, 1, 0.6, 8, 3, 0.95),
        (0.1, 0.2, 1, 0.5, 10, 4, 0.9),
        (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
        (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85),
        (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
    ),
    "spatter": (
        (0.62, 0.1, 0.7, 0.7, 0.5, 0),
        (0.65, 0.1, 0.8, 0.7, 0.5, 0),
        (0.65, 0.3, 1, 0.69, 0.5, 0),
        (0.65, 0.1, 0.7, 0.69, 0.6, 1),
        (0.65, 0.1, 0.5, 0.68, 0.6, 1),
    ),
    "contrast": ((0.75,), (0.5,), (0.4,), (0.3,), (0.15,)),
    "brightness": ((0.05,), (0.1,), (0.15,), (0.2,), (0.3,)),
    "saturate": ((0.3, 0), (0.1, 0), (1.5, 0), (2, 0.1), (2.5, 0.2)),
    "jpeg_compression": ((80,), (65,), (58,), (50,), (40,)),
    "pixelate": ((0.95,), (0.9,), (0.85,), (0.75,), (0.65,)),
    "elastic_transform": (
        (0, 0, 32 * 0.08),
        (32 * 0.05, 32 * 0.2, 32 * 0.07),
        (32 * 0.08, 32 * 0.06, 32 * 0.06),
        (32 * 0.1, 32 * 0.04, 32 * 0.05),
        (32 * 0.1, 32 * 0.03, 32 * 0.03),
    ),
}

CONSTANT_SETS: dict[ConstantSet, SeverityTable] = {"imagenet": IMAGENET, "cifar": CIFAR}
