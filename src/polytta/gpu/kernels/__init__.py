"""GPU kernels: norm layers with their affine and what follows, max pooling, the stem, Grad's weighted sums, the guard.

Torch normalizes, scales and activates in separate passes over memory, and has no layer whose affine depends on the row.
These kernels read bfloat16 or float32, compute in float32, and are checked against the plain modules. They need Triton,
which torch brings along on Linux with CUDA; without it the plain modules run.
"""

import os
from importlib.util import find_spec

import torch
from torch import Tensor

AVAILABLE = find_spec("triton") is not None

if AVAILABLE:
    from polytta.gpu.kernels.channel_norm import channel_norm as channel_norm
    from polytta.gpu.kernels.channel_norm import marked as marked
    from polytta.gpu.kernels.examine import examine as examine
    from polytta.gpu.kernels.max_pool import max_pool as max_pool
    from polytta.gpu.kernels.mix import mix as mix
    from polytta.gpu.kernels.stem_convolution import Geometry as Geometry
    from polytta.gpu.kernels.stem_convolution import stem_convolution as stem_convolution
    from polytta.gpu.kernels.stem_convolution import takes_stem as takes_stem
    from polytta.gpu.kernels.token_norm import token_norm as token_norm

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"


def run_on(x: Tensor) -> bool:
    """Whether the kernels can take a tensor.

    The tensor is asked: asking torch for a GPU would start CUDA, and a process that has started it must not fork.
    """
    return AVAILABLE and (x.is_cuda or INTERPRETED) and x.dtype in (torch.bfloat16, torch.float32)


def run_on_images(x: Tensor) -> bool:
    """Whether the kernels for channels-last images can take a tensor; they count its places with 32 bits."""
    laid_out = x.dim() == 4 and x.is_contiguous(memory_format=torch.channels_last)
    return laid_out and x.numel() < 2**31 and run_on(x)
