"""Names of corruptions as the heads of narrow columns."""

SHORT_NAMES = {
    "gaussian_noise": "Gauss.",
    "shot_noise": "Shot",
    "impulse_noise": "Impl.",
    "speckle_noise": "Speckle",
    "defocus_blur": "Defoc.",
    "glass_blur": "Glass",
    "motion_blur": "Motion",
    "zoom_blur": "Zoom",
    "gaussian_blur": "G. blur",
    "snow": "Snow",
    "frost": "Frost",
    "fog": "Fog",
    "brightness": "Brit.",
    "spatter": "Spatter",
    "contrast": "Contr.",
    "elastic_transform": "Elastic",
    "pixelate": "Pixel",
    "jpeg_compression": "JPEG",
    "saturate": "Satur.",
    "all": "All",
}


def short_name(column: str) -> str:
    """The short name of a column, or its own where it has none."""
    return SHORT_NAMES.get(column, column)
