"""What a network is allowed to answer, and what is said when it cannot."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from polytta.errors import InputError, ModelError, PolyttaWarning
from polytta.network.calling import PROBABILITIES, described


def check_output(output: object, batch: int) -> Tensor:
    """The model's output if it is (B, C) logits."""
    if not isinstance(output, Tensor) or output.dim() != 2 or output.shape[0] != batch:
        raise ModelError(
            f"model: got {described(output)} for {batch} images; allowed is a (B, C) tensor of logits, or output= of "
            "polytta.adapt, which takes it from what the model returns."
        )
    if output.shape[1] < 2 or not output.is_floating_point():
        raise ModelError(f"model: got {described(output)}; allowed are >= 2 floating-point class logits.")
    return output


def notice_probabilities(output: Tensor) -> None:
    """Warns of a model that ends with a softmax: another one would make all its answers look unsure."""
    exact = output.detach().double()
    if bool((exact >= 0).all()) and bool(((exact.sum(dim=1) - 1).abs() < 1e-3).all()):
        warnings.warn(
            "the model returns probabilities (every row sums to 1), which are taken for logits; let it return logits, "
            f"or say output={PROBABILITIES!r} to polytta.adapt.",
            PolyttaWarning,
            stacklevel=2,
        )


LARGEST = 1e30
"""Of a logit: beyond it differences between classes and sums over particles overflow, as it has nearly done itself."""


NO_ANSWER = -0.0
"""All logits of a row without an answer: a uniform prediction, and minus zeros, which healthy networks do not give."""


def finite_rows(logits: Tensor) -> Tensor:
    """Logits in float32 or better; rows with one that is not finite, or nearly so, become ``NO_ANSWER``.

    What overflowed inside the network may still spoil the gradient; then ``guard.updates`` keeps the particle in place.
    """
    exact = logits if logits.dtype == torch.float64 else logits.float()
    return torch.where((exact.abs() <= LARGEST).all(dim=-1, keepdim=True), exact, torch.full_like(exact, NO_ANSWER))


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
        f"allowed are those it can, or those that input= of polytta.adapt makes; it said: {said}"
    ) from error
