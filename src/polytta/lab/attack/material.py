"""Models and honest images by name, as in ``polytta bench``."""

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from polytta.lab.bench.cell import Cell
from polytta.lab.bench.data import open_cell_stream, prepare, split_dataset, split_path
from polytta.lab.bench.plan import check_classes, source_model
from polytta.models import SourceModel


def open_images(
    model: str, dataset: str, images: int, seed: int, corruption: str | None = None
) -> tuple[SourceModel, Tensor, NDArray[np.int64]]:
    """The model, (N, ...) preprocessed images in a random order, and their (N,) classes."""
    name, weights = split_path(model)
    data, path = split_dataset(dataset)
    cell = Cell(
        model=name,
        dataset=data,
        corruption=corruption,
        severity=None if corruption is None else 5,
        scenario="mild",
        batch_size=64,
        variant="source",
        seed=seed,
        images=images,
        settings={},
        weights_path=weights,
        data_path=path,
    )
    source, stream = source_model(cell), open_cell_stream(cell)
    check_classes(cell, stream, source, "dataset")
    prepare([stream])
    batches = list(stream.batches())
    every = [image for batch in batches for image in batch.images]
    return source, source.preprocessing(every), np.concatenate([batch.labels for batch in batches]).astype(np.int64)
