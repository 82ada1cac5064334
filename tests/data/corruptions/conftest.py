import numpy as np
import pytest
import torch
from numpy.typing import NDArray


def photograph_like(count: int, size: int, seed: int) -> NDArray[np.uint8]:
    """Images with the 1/f spectrum of photographs, correlated channels, and flat black and white patches."""
    rng = np.random.default_rng(seed)
    frequency = np.hypot(np.fft.fftfreq(size)[:, None], np.fft.rfftfreq(size))
    falloff = 1 / np.maximum(frequency, 1 / size)
    shared = rng.normal(size=(count, size, size, 1))
    noise = 0.8 * shared + 0.4 * rng.normal(size=(count, size, size, 3))
    smooth = np.fft.irfft2(np.fft.rfft2(noise, axes=(1, 2)) * falloff[None, :, :, None], s=(size, size), axes=(1, 2))
    smooth -= smooth.mean(axis=(1, 2), keepdims=True)
    smooth /= smooth.std(axis=(1, 2), keepdims=True)
    images = np.clip(rng.uniform(90, 150, size=(count, 1, 1, 3)) + 55 * smooth, 0, 255).astype(np.uint8)
    images[:, : size // 4, : size // 4] = 255
    images[:, -size // 6 :, -size // 6 :] = 0
    return images


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """Images this small gain nothing from threads, and lose much where cores are shared."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def large_images() -> NDArray[np.uint8]:
    return photograph_like(3, 224, seed=0)


@pytest.fixture(scope="session")
def small_images() -> NDArray[np.uint8]:
    return photograph_like(9, 32, seed=1)


@pytest.fixture(scope="session")
def middle_images() -> NDArray[np.uint8]:
    return photograph_like(64, 64, seed=2)
