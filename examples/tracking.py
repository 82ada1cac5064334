"""Every step in TensorBoard and in MLflow: two or three lines each."""

import sys

import mlflow
import torch
from torch.utils.tensorboard import SummaryWriter

import polytta


def main(folder: str = "runs") -> None:
    """Writes curves of five steps: into a folder, and to the store that MLFLOW_TRACKING_URI names."""
    adapted = polytta.adapt(polytta.models.create("bundled/cifar10_resnet_gn").module)

    writer = SummaryWriter(f"{folder}/tensorboard")
    adapted.on_step(lambda report: [writer.add_scalar(n, v, report.step) for n, v in report.scalars().items()])

    mlflow.set_experiment("adaptation")
    adapted.on_step(lambda report: mlflow.log_metrics(report.scalars(), step=report.step))

    for _ in range(5):
        adapted(torch.randn(4, 3, 32, 32))
    mlflow.end_run()
    writer.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
