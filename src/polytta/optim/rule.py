r"""The learning rate the public SAR and DeYO code uses, by model family and batch size.

    convolutional:  2.5e-4 for B >= 32, else 2.5e-4 · B / 32
    transformer:    1e-3 · B / 64

times a method's own factor at batch size 1 (SAR and DeYO double it). Found for SGD with momentum 0.9.
"""

from polytta.particles.norms import NormRecipe


def family(recipes: list[NormRecipe]) -> str:
    """ "transformer" when most adapted layers normalize the last dimension (token features), else "convolutional"."""
    token_norms = sum(recipe.kind in ("layer", "rms") and not recipe.channel_first for recipe in recipes)
    return "transformer" if 2 * token_norms > len(recipes) else "convolutional"


def reference_lr(model_family: str, batch_size: int, single_image_factor: float) -> float:
    """Learning rate of SGD."""
    if model_family == "transformer":
        lr = 1e-3 / 64 * batch_size
    else:
        lr = 2.5e-4 if batch_size >= 32 else 2.5e-4 / 64 * batch_size * 2
    return lr * single_image_factor if batch_size == 1 else lr
