import pytest
import torch
from tests.gpu.kernels.where import DEVICE, needs_kernels

from polytta.diversity.input_gradients import products, through_products
from polytta.gpu import kernels
from polytta.roles.objective import weighted_sums


@needs_kernels
@pytest.mark.parametrize("shape", [(2, 3, 4, 75), (3, 2, 1, 1200), (1, 1, 1, 1)])
def test_sums_are_those_of_matrix_products(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    x = torch.randn(shape, device=DEVICE)
    weights = torch.randn(*shape[:2], *shape[1:3], device=DEVICE)
    expected = torch.einsum("gijb,gjbd->gibd", weights.double(), x.double())
    assert torch.allclose(kernels.mix(weights, x).double(), expected, atol=1e-5)


@needs_kernels
def test_the_slope_through_products_is_that_of_autograd() -> None:
    torch.manual_seed(0)
    gradients = torch.randn(2, 3, 4, 3, 5, 5, device=DEVICE, requires_grad=True)
    mask = torch.ones(2, 3, 4, dtype=torch.bool, device=DEVICE)
    dots = products(gradients, mask)
    slope = torch.randn_like(dots)
    expected = torch.autograd.grad(dots, gradients, slope)[0]
    for sums in (weighted_sums, kernels.mix):
        assert torch.allclose(through_products(slope, gradients.detach(), mask, sums), expected, atol=1e-4)
