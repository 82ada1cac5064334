r"""The learning rate the public SAR and DeYO code uses, by model family and batch size.

    convolutional:  2.5e-4 for B >= 32, else 2.5e-4 · B / 32
    transformer:    1e-3 · B / 64

times a method's own factor at batch size 1 (SAR and DeYO double it). Found for SGD with momentum 0.9.
"""

from math import inf

from polytta.errors import ConfigError


def reference_lr(model_family: str, batch_size: int, single_image_factor: float) -> float:
    """Learning rate of SGD."""
    if model_family == "transformer":
        lr = 1e-3 / 64 * batch_size
    else:
        lr = 2.5e-4 if batch_size >= 32 else 2.5e-4 / 64 * batch_size * 2
    return lr * single_image_factor if batch_size == 1 else lr


def lr_multipliers(particles: int, spread: float, span: float | None) -> tuple[float, ...]:
    """Factors on the common learning rate, one per particle.

    Args:
        particles: K.
        spread: evenly from 1 - spread to 1 + spread: (0.8, 1.0, 1.2) breaks the symmetry of three particles.
        span: a factor between neighbours instead, centred on 1: 4 gives (1/4, 1, 4). The best learning rate differs
            by more than that between corruptions, and a population can try several at once.
    """
    if not 0 <= spread < 1:
        raise ConfigError(f"lr_spread: got {spread}; allowed is 0 <= lr_spread < 1.")
    if span is not None and not 1 <= span < inf:
        raise ConfigError(f"lr_span: got {span}; allowed is a finite lr_span >= 1, or None.")
    if particles == 1:
        return (1.0,)
    if span is not None:
        return tuple(float(span ** (k - (particles - 1) / 2)) for k in range(particles))
    return tuple(1 - spread + 2 * spread * k / (particles - 1) for k in range(particles))
