import numpy as np
import pytest
import torch

from polytta.lab.pages.calibration import calibration_error
from polytta.models._torchvision_cpu import import_zoo


@pytest.mark.parametrize("sharpness", [0.3, 1.0, 4.0])
def test_calibration_error_agrees_with_torchmetrics(sharpness: float) -> None:
    probs = (sharpness * torch.randn(500, 10)).softmax(dim=1)
    labels = torch.multinomial(probs.sqrt(), 1).squeeze(1)
    # torchmetrics imports torchvision where there is one, so it needs the same care.
    reference = import_zoo("torchmetrics.functional.classification")
    expected = reference.multiclass_calibration_error(probs, labels, num_classes=10, n_bins=15, norm="l1")
    assert calibration_error(probs.numpy(), labels.numpy()) == pytest.approx(float(expected), abs=1e-6)


def test_calibration_error_of_certain_predictions() -> None:
    probs = np.eye(4)
    assert calibration_error(probs, np.arange(4)) == 0.0
    assert calibration_error(probs, np.array([0, 1, 2, 0])) == 0.25
