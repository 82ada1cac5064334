"""In a LightningModule: ``predict_step`` predicts and adapts, and a checkpoint holds what was learnt."""

import lightning
import torch
from torch.utils.data import DataLoader

import polytta


class Adapting(lightning.LightningModule):
    """Any classifier that goes on learning while it predicts."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.adapted = polytta.adapt(model)

    def predict_step(self, batch: torch.Tensor, batch_idx: int) -> torch.Tensor:
        """Log-probabilities."""
        return self.adapted(batch)


def main() -> list[torch.Tensor]:
    """Log-probabilities of three batches."""
    module = Adapting(polytta.models.create("bundled/cifar10_resnet_gn").module)
    trainer = lightning.Trainer(
        accelerator="auto", devices=1, logger=False, enable_checkpointing=False, enable_progress_bar=False
    )
    told = trainer.predict(module, DataLoader(torch.randn(12, 3, 32, 32), batch_size=4))
    print(module.adapted)
    return told


if __name__ == "__main__":
    main()
