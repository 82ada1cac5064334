"""Where kernels can be tested: on a CUDA device, or on the CPU in Triton's interpreter."""

import pytest
import torch

from polytta.gpu import kernels

ON_GPU = torch.cuda.is_available()
DEVICE = "cuda" if ON_GPU else "cpu"
needs_kernels = pytest.mark.skipif(
    not (kernels.AVAILABLE and (ON_GPU or kernels.INTERPRETED)),
    reason="needs Triton and a CUDA device, or TRITON_INTERPRET=1",
)
