r"""How fine the detail of an image is, whatever its content and contrast.

    f(x) = ln mean |4x - x← - x→ - x↑ - x↓|² - ln mean (|x - x←|² + |x - x↑|²)

The energy of second differences over that of first ones. White noise has ln 5 in every contrast, a smooth image less
and less. Noise raises it, blur lowers it: what a shift did to an image shows here before any network has looked, so
that evidence about the hypotheses can be kept apart for images that need different ones
(``polytta.aggregate.evidence``).
"""

import torch
from torch import Tensor

_LEAST = 1e-6
# Second differences need three pixels.
_SMALLEST_SIDE = 3


def fineness(x: Tensor) -> Tensor:
    """(N,) of images (N, C, H, W); zeros for what is no image."""
    if x.dim() != 4 or min(x.shape[-2:]) < _SMALLEST_SIDE:
        return torch.zeros(x.shape[0], dtype=torch.float32, device=x.device)
    image = x.detach().float()
    middle = image[..., 1:-1, 1:-1]
    left, above = image[..., 1:-1, :-2], image[..., :-2, 1:-1]
    second = 4 * middle - left - above - image[..., 1:-1, 2:] - image[..., 2:, 1:-1]
    first = (middle - left).square() + (middle - above).square()
    energy = second.square().mean(dim=(1, 2, 3)), first.mean(dim=(1, 2, 3))
    return (energy[0] + _LEAST).log() - (energy[1] + _LEAST).log()
