"""Names of the corruptions in the order every table prints them (arXiv 1903.12261), and their severities."""

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
