r"""What is known of a particle's health without labels, for whoever watches: numbers beside the guard's verdict.

    entropy       mean_b H(p_b) / ln C                        sureness of single answers
    disagreement  mean_{j != i} share of images with argmax p_i != argmax p_j
    drift         |θ - θ⁰| / |θ⁰|
    loss, gradient_norm, selected_share                       of the step, as it found them

All but the last three are worked out when somebody reads them. Of these numbers the guard judges drift, and a gradient
that is not finite; entropy and balance it compares with the source's (``polytta.guard.policy``). The others look alike
on healthy streams and on those that ruin a particle, or better on the latter: docs/guard.md has the figures.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Signals:
    """Of one particle at one step.

    Attributes:
        loss: what it descended; 0 where nothing was selected.
        gradient_norm: length of the direction; infinite where it was not finite.
        selected_share: of the images that its losses were offered, those they were taken of.
        entropy: of its answers, in units of ln C.
        disagreement: share of images that another particle of its population gives another class, over all others.
        drift: distance to the source, relative to the source's norm.
        broken: share of images without a finite answer.
    """

    loss: float
    gradient_norm: float
    selected_share: float
    entropy: float
    disagreement: float
    drift: float
    broken: float
