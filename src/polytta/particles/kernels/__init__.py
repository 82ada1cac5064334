"""Norm layers as single GPU kernels: statistics, each particle's affine and the activation in one go.

Torch normalizes, scales and activates in separate passes over memory, and has no layer whose affine depends on the row.
These kernels read bfloat16 or float32, compute in float32, and are checked against the plain modules. They need Triton,
which torch brings along on Linux with CUDA; without it the plain modules run.
"""

import os
from importlib.util import find_spec

import torch

AVAILABLE = find_spec("triton") is not None

if AVAILABLE:
    from polytta.particles.kernels.channel_norm import channel_norm as channel_norm
    from polytta.particles.kernels.token_norm import token_norm as token_norm

RUNS_HERE = AVAILABLE and (torch.cuda.is_available() or os.environ.get("TRITON_INTERPRET") == "1")
