import pytest
import torch

from polytta.diversity.input_gradients import through_products
from polytta.particles import kernels

ON_GPU = torch.cuda.is_available()
DEVICE = "cuda" if ON_GPU else "cpu"


@pytest.mark.skipif(
    not (kernels.AVAILABLE and (ON_GPU or kernels.INTERPRETED)),
    reason="needs Triton and a CUDA device, or TRITON_INTERPRET=1",
)
@pytest.mark.parametrize("shape", [(2, 3, 4, 3, 5, 5), (3, 2, 1, 3, 20, 20), (1, 1, 1, 1)])
def test_sums_are_those_of_matrix_products(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    gradients = torch.randn(shape, device=DEVICE)
    slope = torch.randn(*shape[:2], *shape[1:3], device=DEVICE)
    mask = torch.ones(shape[:3], dtype=torch.bool, device=DEVICE)
    both = (slope + slope.transpose(-3, -2)).double()
    expected = torch.einsum("gijb,gjbd->gibd", both, gradients.double().flatten(3)).reshape(shape)
    assert torch.allclose(through_products(slope, gradients, mask).double(), expected, atol=1e-5)
