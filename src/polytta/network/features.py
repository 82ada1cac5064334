"""Networks that tell what their logits are made of, for methods that compare images with one another or with text."""

from torch import nn


def tell_features(network: nn.Module) -> int:
    """Lets a network append its features (B, D) to its logits (B, C) from now on; D, or 0 for one that has none.

    Such a network has an attribute ``feature_size`` (D), and does so while its attribute ``telling`` is true.
    """
    size = getattr(network, "feature_size", 0)
    if not isinstance(size, int) or size < 1 or not hasattr(network, "telling"):
        return 0
    setattr(network, "telling", True)  # noqa: B010 - a plain attribute of whatever class the network is
    return size


def keep_features(network: nn.Module) -> None:
    """Lets a network return its logits alone again."""
    if hasattr(network, "telling"):
        setattr(network, "telling", False)  # noqa: B010
