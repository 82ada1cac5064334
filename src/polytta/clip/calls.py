"""Which parts of a model each of its encoders calls, and what is left of it without those of the other."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

_USUAL_SIZES = (224, 32, 256, 336, 384, 448, 512, 28, 48, 64, 96, 112, 128, 160, 192, 240, 288, 320, 378, 518)
"""Of images, for models that do not say theirs."""
_LARGEST = 1024
Parts = set[nn.Module]


def called(model: nn.Module, run: Callable[[], object]) -> Parts:
    """The parts of a model, at any depth, that are called."""
    seen: Parts = set()
    handles = [part.register_forward_hook(lambda part, *_: seen.add(part)) for part in model.modules()]
    try:
        with torch.no_grad(), torch.inference_mode(False):
            run()
    finally:
        for handle in handles:
            handle.remove()
    return seen


def called_by_image(model: nn.Module, look: Callable[[Tensor], object]) -> Parts | None:
    """Of an image encoder; None where no image is found that it takes."""
    conv = next((part for part in model.modules() if isinstance(part, nn.Conv2d)), None)
    like = next((one for one in (conv or model).parameters() if one.is_floating_point()), None)
    for height, width in dict.fromkeys(_sizes(model)):
        image = torch.zeros(1, conv.in_channels if conv else 3, height, width)
        try:
            return called(model, partial(look, image if like is None else image.to(like)))
        except Exception:
            # It takes images of another size, or needs more than an image.
            continue
    return None


def _sizes(model: nn.Module) -> Iterator[tuple[int, int]]:
    """Of images that a model may take, those it names first."""
    for part in model.modules():
        config = getattr(part, "config", None)
        for holder in (part, getattr(config, "vision_config", None), config):
            found: Any = getattr(holder, "image_size", getattr(holder, "img_size", None))
            both = (found, found) if isinstance(found, int) else found
            named = isinstance(both, tuple | list) and len(both) == 2 and all(isinstance(one, int) for one in both)
            if named and min(both) > 0 and max(both) <= _LARGEST:
                yield both[0], both[1]
    for size in _USUAL_SIZES:
        yield size, size


def without_text(model: nn.Module, reads: Parts, looks: Parts | None) -> None:
    """Takes out what only reading calls."""
    for name, part in list(model._modules.items()):
        if part is None or not _any_of(part, reads):
            continue
        if not _any_of(part, looks) if looks is not None else part in reads:
            model._modules[name] = None
        else:
            without_text(part, reads, looks)


def without_images(model: nn.Module, reads: Parts, looks: Parts | None, *, top: bool = True) -> None:
    """Takes out what only looking calls, and of the model's own parts all that reading does not call."""
    for name, part in list(model._modules.items()):
        if part is None:
            continue
        if _any_of(part, reads):
            without_images(part, reads, looks, top=False)
        elif top or _any_of(part, looks):
            model._modules[name] = None


def _any_of(part: nn.Module, parts: Parts | None) -> bool:
    """Whether a part, or one within it, is among others."""
    return parts is not None and any(one in parts for one in part.modules())
