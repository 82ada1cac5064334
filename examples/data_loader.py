"""A torch DataLoader over corrupted images: the loop that most evaluations have, and what it gains."""

import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset

import polytta
from polytta.data.bundled import load_cifar10_subset
from polytta.data.corruptions import corrupt


def main(count: int = 128) -> tuple[float, float]:
    """Accuracy of the source model and of the adapted one."""
    made = polytta.models.create("bundled/cifar10_resnet_gn")
    data = load_cifar10_subset()
    chosen = np.random.default_rng(0).permutation(len(data))[:count]
    images = np.stack([data[int(index)][0] for index in chosen])
    noisy = corrupt(images, "gaussian_noise", 3, constants="cifar", ids=chosen)
    loader = DataLoader(
        TensorDataset(made.preprocessing(list(noisy)), torch.from_numpy(data.labels[chosen]).long()), batch_size=16
    )
    adapted = polytta.adapt(made.module)
    right, before = 0, 0
    for x, labels in loader:
        right += int((adapted(x).argmax(1) == labels).sum())
        with torch.no_grad():
            before += int((made.module(x).argmax(1) == labels).sum())
    print(f"source {before / count:.1%}, adapted {right / count:.1%}")
    return before / count, right / count


if __name__ == "__main__":
    main()
