"""One random stream per image, addressed by counter and never by history.

Philox (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011) maps (key, counter) to random
bits. Key = (image id, seed | corruption | severity), counter = (block, number of the draw). An image
therefore gets the same bits whatever batch, process or order it is corrupted in, and NumPy guarantees the raw
stream of a bit generator across versions, which it does not for `Generator.normal` and its like: the
transforms to other distributions are therefore made here.
"""

from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

MAX_SEED = 2**32 - 1
MAX_IMAGE_ID = 2**63 - 1


@lru_cache(maxsize=1)
def _normal_quantiles() -> NDArray[np.float32]:
    """Normal quantiles at the 65,536 bin centres, scaled to unit variance; the largest is 4.32."""
    centres = (torch.arange(2**16, dtype=torch.float64) + 0.5) / 2**16
    quantiles = torch.special.ndtri(centres)
    table: NDArray[np.float32] = (quantiles / quantiles.square().mean().sqrt()).float().numpy()
    return table


class ImageStreams:
    """Random numbers for the images of a batch, row i for image i."""

    def __init__(self, ids: NDArray[np.uint64], *, corruption: int, severity: int, seed: int):
        self._ids = ids
        self._salt = (seed << 16) | (corruption << 8) | severity
        self._draws = 0

    def __len__(self) -> int:
        return len(self._ids)

    def _words(self, count: int) -> NDArray[np.uint64]:
        # Setting the state of one generator is ten times cheaper than building one per image.
        philox = np.random.Philox(key=0)
        state: Any = philox.state
        state["buffer_pos"] = 4
        state["state"] = {
            "counter": np.array([0, self._draws, 0, 0], dtype=np.uint64),
            "key": np.array([0, self._salt], dtype=np.uint64),
        }
        self._draws += 1
        rows = []
        for image_id in self._ids:
            state["state"]["key"][0] = image_id
            philox.state = state
            rows.append(philox.random_raw(count))
        # A batch of one large image is common, and its bits need no copy.
        return rows[0][None] if len(rows) == 1 else np.stack(rows)

    def uint16(self, *shape: int) -> NDArray[np.uint16]:
        """Uniform 16-bit integers of the given shape for every image."""
        size = int(np.prod(shape))
        return self._words(-(-size // 4)).view(np.uint16)[:, :size].reshape(len(self), *shape)

    def uint32(self, *shape: int) -> NDArray[np.uint32]:
        """Uniform 32-bit integers of the given shape for every image."""
        size = int(np.prod(shape))
        return self._words(-(-size // 2)).view(np.uint32)[:, :size].reshape(len(self), *shape)

    def uniform(self, low: float, high: float, *shape: int) -> NDArray[np.float64]:
        """Uniform numbers in the open interval (low, high), 32 bits each."""
        unit = self.uint32(*shape).astype(np.float64)
        unit += 0.5
        unit *= (high - low) * 2.0**-32
        unit += low
        return unit

    def integers(self, bounds: NDArray[np.int64]) -> NDArray[np.int64]:
        """One integer in [0, bound) for every entry of `bounds`, whose first axis is the image."""
        unit = self.uniform(0.0, 1.0, *bounds.shape[1:])
        result: NDArray[np.int64] = (unit * bounds).astype(np.int64)
        return result

    def normal(self, *shape: int) -> NDArray[np.float32]:
        """Standard normal numbers, by the inverse distribution function on a grid of 65,536 quantiles."""
        return np.take(_normal_quantiles(), self.uint16(*shape))
