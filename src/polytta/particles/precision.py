"""How exactly the frozen trunk computes. Norm layers, losses and optimizers always work in float32 or better.

    fp32: as torch's own settings say (by default convolutions on a GPU already use TF32)
    tf32: matrix products and convolutions round their factors to 10 bits of mantissa
    bf16: weights and activations of the trunk are bfloat16; norm layers compute in float32 in between

bf16 is there on a CPU as well, and quicker where the processor has instructions for it (AVX-512 BF16, AMX). Weights are
converted once: autocast would convert frozen ones again in every pass. It stays on all the same, for models that mix
types on the way.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import torch
from torch import Tensor, nn

from polytta.errors import ConfigError
from polytta.network.norms import is_norm

Precision = Literal["fp32", "tf32", "bf16"]

FASTER_ON: dict[str, tuple[Precision, ...]] = {"cuda": ("tf32", "bf16"), "cpu": ("bf16",)}
"""What there is beside fp32, for float32 models on a kind of device."""


def prepare(network: nn.Module, precision: Precision, *, channels_last: bool) -> None:
    """Converts the frozen weights of a shared copy; the original keeps its own."""
    if precision == "fp32" and not channels_last:
        return
    first = next(network.parameters())
    faster = FASTER_ON.get(first.device.type, ()) if first.dtype == torch.float32 else ()
    if precision not in ("fp32", *faster):
        allowed = " or ".join(repr(one) for one in ("fp32", *faster))
        got = f"{precision!r} for a {first.dtype} model on {first.device.type}"
        raise ConfigError(f"precision: got {got}; allowed there is {allowed}.")
    layout = torch.channels_last if channels_last else torch.preserve_format
    converted: dict[int, Tensor] = {}
    for module in network.modules():
        # Frozen norm layers may have no scale of their own kind, but statistics that need their digits.
        keeps_float32 = is_norm(module) or "norm" in type(module).__name__.lower()
        for held in (module._parameters, module._buffers):
            for name, tensor in held.items():
                if tensor is None or not tensor.is_floating_point():
                    continue
                if id(tensor) not in converted:
                    dtype = torch.bfloat16 if precision == "bf16" and not keeps_float32 else tensor.dtype
                    moved = tensor.detach().to(dtype, memory_format=layout if tensor.dim() == 4 else None)
                    wrapped = nn.Parameter(moved, requires_grad=False) if isinstance(tensor, nn.Parameter) else moved
                    converted[id(tensor)] = wrapped
                held[name] = converted[id(tensor)]  # type: ignore[assignment]


def is_convolutional(network: nn.Module) -> bool:
    """More than the one convolution that cuts a transformer's image into patches."""
    return sum(isinstance(module, nn.Conv2d) for module in network.modules()) > 1


def prefers_channels_last(network: nn.Module, precision: Precision, *, fused: bool) -> bool:
    """Whether it is quicker so: convolutions of short numbers are, and kernels that take images in no other way.

    On a CPU neither is there. Convolutions that may not round to TF32 are much slower so.
    """
    first = next(network.parameters())
    if not first.is_cuda or not is_convolutional(network):
        return False
    rounds = first.dtype == torch.float32 and _convolutions_use_tf32()
    return precision != "fp32" or (fused and rounds)


def entering(x: Tensor, precision: Precision, *, channels_last: bool) -> Tensor:
    """The images as the trunk wants them."""
    if precision == "bf16":
        x = x.bfloat16()
    if channels_last and x.dim() == 4:
        x = x.contiguous(memory_format=torch.channels_last)
    return x


@contextmanager
def arithmetic(precision: Precision, device_type: str) -> Iterator[None]:
    """Torch's settings for the passes, put back afterwards."""
    if precision == "fp32":
        yield
    elif precision == "bf16":
        with torch.autocast(device_type, torch.bfloat16):
            yield
    else:
        products, convolutions = torch.get_float32_matmul_precision(), _convolutions_use_tf32()
        torch.set_float32_matmul_precision("high")
        torch.backends.cudnn.allow_tf32 = True
        try:
            yield
        finally:
            torch.set_float32_matmul_precision(products)
            torch.backends.cudnn.allow_tf32 = convolutions


@contextmanager
def plain_attention() -> Iterator[None]:
    """Torch's fused transformer inference path reads norm weights itself, past any replaced norm layer.

    The switch is one for all threads: the first pass under way turns it off, the last one puts it back.
    """
    with _SWITCH.lock:
        if not _SWITCH.passes:
            _SWITCH.before = torch.backends.mha.get_fastpath_enabled()
            torch.backends.mha.set_fastpath_enabled(False)
        _SWITCH.passes += 1
    try:
        yield
    finally:
        with _SWITCH.lock:
            _SWITCH.passes -= 1
            if not _SWITCH.passes:
                torch.backends.mha.set_fastpath_enabled(_SWITCH.before)


class _Switch:
    """Who has turned torch's fused path off."""

    lock = threading.Lock()
    passes = 0
    before = True


_SWITCH = _Switch()


def _convolutions_use_tf32() -> bool:
    try:
        return torch.backends.cudnn.allow_tf32
    except RuntimeError:  # set through torch's newer switches, which the older one then refuses to speak for
        return bool(getattr(torch.backends.cudnn, "conv").fp32_precision == "tf32")  # noqa: B009


def rounding(network: nn.Module, precision: Precision) -> float:
    """Relative rounding error of what the trunk computes, for those who take differences of it."""
    first = next(network.parameters())
    if precision == "bf16":
        return 2.0**-8
    on_tf32 = first.is_cuda and is_convolutional(network) and _convolutions_use_tf32()
    if first.dtype == torch.float32 and (precision == "tf32" or on_tf32):
        return 2.0**-10
    return torch.finfo(first.dtype).eps
