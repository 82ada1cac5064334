"""What a network is allowed to answer, and what is said when it cannot."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from polytta.errors import InputError, ModelError


def check_output(output: object, batch: int) -> Tensor:
    """The model's output if it is (B, C) logits."""
    got = tuple(output.shape) if isinstance(output, Tensor) else type(output).__name__
    if not isinstance(output, Tensor) or output.dim() != 2 or output.shape[0] != batch:
        raise ModelError(f"model: got {got} for {batch} images; allowed is a (B, C) tensor of logits.")
    if output.shape[1] < 2 or not output.is_floating_point():
        raise ModelError(f"model: got {got} of {output.dtype}; allowed are >= 2 floating-point class logits.")
    return output


def finite_rows(logits: Tensor) -> Tensor:
    """Logits in float32 or better; rows with a non-finite one become zeros, that is a uniform prediction.

    What overflowed inside the network may still spoil the gradient; then ``guard.updates`` keeps the particle in place.
    """
    exact = logits if logits.dtype == torch.float64 else logits.float()
    return torch.where(exact.isfinite().all(dim=-1, keepdim=True), exact, torch.zeros_like(exact))


@contextmanager
def model_errors_as_input_errors(x: Tensor) -> Iterator[None]:
    """What a model says about a shape it cannot take is the user's to hear, in one sentence."""
    try:
        yield
    except Exception as error:
        raise_as_input_error(error, x)


def raise_as_input_error(error: Exception, x: Tensor) -> None:
    """Raises what a model said of images (B, ...) as an InputError; errors about other things stay what they are."""
    ours = isinstance(error, InputError | ModelError | torch.OutOfMemoryError)
    if ours or not isinstance(error, RuntimeError | ValueError | IndexError | TypeError | AssertionError):
        raise error
    said = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    raise InputError(
        f"x: got images of shape {tuple(x.shape[1:])} and {x.dtype}, which the model cannot take; "
        f"allowed are those it can; it said: {said}"
    ) from error
