"""Each random corruption against a slow, plain statement of the published one on the same random numbers."""

import cv2
import numpy as np
import pytest
from scipy import ndimage, stats

from polytta.data.corruptions import CORRUPTIONS, corrupt
from polytta.data.corruptions._constants import CIFAR, IMAGENET
from polytta.data.corruptions._filters import centre_zoom_map, gaussian_blur_uint8, smooth_planes
from polytta.data.corruptions._random import ImageStreams
from polytta.data.corruptions.digital import _corner_map_inverse
from polytta.data.corruptions.noise import _poisson_tables
from polytta.data.corruptions.spatter import canny_edges, edge_distance, water_relief
from polytta.data.corruptions.weather import _frost_photograph


def streams(name, severity, ids=(0,)):
    return ImageStreams(np.array(ids, dtype=np.uint64), corruption=CORRUPTIONS.index(name), severity=severity, seed=0)


def test_streams_are_standard_normal_and_uniform():
    source = streams("fog", 1, range(4))
    assert stats.kstest(source.normal(50_000).ravel(), "norm").pvalue > 0.01
    assert stats.kstest(source.uniform(-2, 3, 50_000).ravel(), "uniform", args=(-2, 5)).pvalue > 0.01
    counts = np.bincount(source.integers(np.full((4, 10_000), 5)).ravel(), minlength=5)
    assert stats.chisquare(counts).pvalue > 0.01


def test_streams_of_other_keys_differ():
    keys = [(1, 1, 0, 0), (2, 1, 0, 0), (1, 2, 0, 0), (1, 1, 1, 0), (1, 1, 0, 1)]
    first = {
        tuple(ImageStreams(np.array([i], dtype=np.uint64), corruption=c, severity=s, seed=r).uint32(4)[0])
        for c, s, i, r in keys
    }
    assert len(first) == len(keys)
    source = streams("fog", 1)
    assert not np.array_equal(source.uint32(8), source.uint32(8))


@pytest.mark.parametrize("photons", [3, 60, 500])
def test_poisson_tables_hold_the_distribution(photons):
    _, thresholds, greys = _poisson_tables(photons)
    table = thresholds.reshape(256, photons + 1) / 2.0**32
    rates = np.arange(256) / 255 * photons
    expected = stats.poisson.cdf(np.arange(photons), rates[:, None])
    np.testing.assert_allclose(table[:, :-1], expected, atol=2e-9)
    assert greys[photons] == 255


@pytest.mark.parametrize("photons_of", [IMAGENET, CIFAR])
def test_shot_noise_follows_poisson(photons_of):
    photons = int(photons_of["shot_noise"][0][0])
    constants = "imagenet" if photons_of is IMAGENET else "cifar"
    images = np.full((20, 64, 64, 3), 100, dtype=np.uint8)
    result = corrupt(images, "shot_noise", 1, constants=constants, ids=range(20))
    counts = np.arange(photons + 1)
    greys = (np.minimum(counts / float(photons), 1) * 255).astype(int)
    mass = stats.poisson.pmf(counts, 100 / 255 * photons)
    expected = np.bincount(greys, weights=mass, minlength=256) * result.size
    seen = np.bincount(result.ravel(), minlength=256)
    frequent = expected > 20
    expected_share = expected[frequent] / expected[frequent].sum()
    assert stats.chisquare(seen[frequent], expected_share * seen[frequent].sum()).pvalue > 0.001


@pytest.mark.parametrize(("constants", "table"), [("imagenet", IMAGENET), ("cifar", CIFAR)])
@pytest.mark.parametrize("severity", [1, 5])
def test_noise_has_the_stated_strength(constants, table, severity):
    images = np.full((16, 64, 64, 3), 128, dtype=np.uint8)
    ids = range(16)
    for name, scale in (("gaussian_noise", 255), ("speckle_noise", 128)):
        result = corrupt(images, name, severity, constants=constants, ids=ids) + 0.5
        sigma = table[name][severity - 1][0] * scale
        law = stats.norm(128, sigma)
        inner = (result > 64) & (result < 192)
        assert abs(inner.mean() - (law.cdf(192) - law.cdf(64))) < 0.005
        assert abs(np.median(result) - 128) < 1
        assert abs((result < 110).mean() - law.cdf(110)) < 0.005
    result = corrupt(images, "impulse_noise", severity, constants=constants, ids=ids)
    amount = table["impulse_noise"][severity - 1][0]
    assert abs((result == 0).mean() - amount / 2) < 0.003
    assert abs((result == 255).mean() - amount / 2) < 0.003


@pytest.mark.parametrize("sigma", [0.4, 0.7, 1.5, 6.0])
def test_gaussian_filters_equal_scipy(sigma, small_images):
    noise = np.random.default_rng(0).normal(size=(2, 40, 32))
    for truncate, border in ((4.0, "nearest"), (3.0, "reflect")):
        expected = ndimage.gaussian_filter(noise, (0, sigma, sigma), mode=border, truncate=truncate)
        np.testing.assert_allclose(smooth_planes(noise, sigma, truncate, border), expected, atol=1e-13)
    expected = ndimage.gaussian_filter(small_images / 255.0, (0, sigma, sigma, 0), mode="nearest") * 255
    assert np.abs(gaussian_blur_uint8(small_images, sigma) - np.floor(expected)).max() <= 1


@pytest.mark.parametrize(("size", "factor"), [(224, 1.07), (224, 4.5), (32, 1.0), (32, 1.75), (64, 4.5)])
def test_centre_zoom_equals_scipy(size, factor):
    line = np.random.default_rng(0).normal(size=size)
    crop = int(np.ceil(size / factor))
    top = (size - crop) // 2
    enlarged = ndimage.zoom(line[top : top + crop], factor, order=1)
    trim = (len(enlarged) - size) // 2
    result = centre_zoom_map(size, factor).along_width(line)
    np.testing.assert_allclose(result, enlarged[trim : trim + size], atol=1e-12)


@pytest.mark.parametrize(("constants", "table"), [("imagenet", IMAGENET), ("cifar", CIFAR)])
@pytest.mark.parametrize("severity", [1, 3, 5])
def test_glass_blur_equals_the_pixel_loop(constants, table, severity, small_images):
    image = small_images[:1]
    sigma, reach, rounds = table["glass_blur"][severity - 1]
    reach = int(reach)
    source = streams("glass_blur", severity)
    pixels = gaussian_blur_uint8(image, sigma)[0]
    for _ in range(int(rounds)):
        choice = (source.uint16(32 * 32).astype(int)[0] * (2 * reach) ** 2) >> 16
        for h in range(32 - reach, reach, -1):
            for w in range(32 - reach, reach, -1):
                dy, dx = divmod(int(choice[h * 32 + w]), 2 * reach)
                pixels[h, w] = pixels[h + dy - reach, w + dx - reach]
    expected = gaussian_blur_uint8(pixels[None], sigma)
    np.testing.assert_array_equal(corrupt(image, "glass_blur", severity, constants=constants, ids=[0]), expected)


@pytest.mark.parametrize(("constants", "table"), [("imagenet", IMAGENET), ("cifar", CIFAR)])
@pytest.mark.parametrize("severity", [1, 2, 5])
def test_elastic_transform_equals_opencv_and_scipy(constants, table, severity, large_images, small_images):
    image = (large_images if constants == "imagenet" else small_images)[0]
    size = len(image)
    alpha, sigma, shift = table["elastic_transform"][severity - 1]
    source = streams("elastic_transform", severity)
    third = size // 3
    corners = size // 2 + third * np.float32([[1, 1], [1, -1], [-1, -1]])
    moved = (corners + source.uniform(-shift, shift, 3, 2)[0]).astype(np.float32)
    affine = cv2.getAffineTransform(corners, moved)
    warped = cv2.warpAffine(image.astype(np.float32), affine, (size, size), borderMode=cv2.BORDER_REFLECT_101)
    if alpha:
        noise = source.uniform(-1, 1, 2, size, size)[0]
        dx, dy = (ndimage.gaussian_filter(field, sigma, mode="reflect", truncate=3) * alpha for field in noise)
        y, x = np.mgrid[:size, :size]
        warped = np.stack(
            [ndimage.map_coordinates(warped[..., c], [y + dy, x + dx], order=1, mode="reflect") for c in range(3)],
            axis=-1,
        )
    result = corrupt(image[None], "elastic_transform", severity, constants=constants, ids=[0])[0]
    difference = np.abs(result - np.floor(warped + 1e-3))
    # OpenCV may place source points on a grid of 1/32 pixel, so steep edges differ by a few levels.
    assert np.mean(difference) < 0.6
    assert np.mean(difference > 4) < 0.02


def test_corner_map_inverts_the_affine_map():
    inverse = _corner_map_inverse(60, 60, np.zeros((3, 2)))
    np.testing.assert_allclose(inverse, [[1, 0, 0], [0, 1, 0]], atol=1e-12)


@pytest.mark.parametrize(("constants", "table"), [("imagenet", IMAGENET), ("cifar", CIFAR)])
def test_frost_blends_a_crop(constants, table, small_images):
    weight, frost_weight, stride = table["frost"][2]
    result = corrupt(small_images, "frost", 3, constants=constants, ids=range(len(small_images)))
    source = streams("frost", 3, range(len(small_images)))
    choices = source.integers(np.full((len(small_images), 1), 5))[:, 0]
    photographs = [_frost_photograph(int(c), int(stride), 32, 32) for c in choices]
    corners = source.integers(np.array([np.subtract(p.shape[:2], 32) for p in photographs]))
    for image, photograph, (top, left), seen in zip(small_images, photographs, corners, result, strict=True):
        crop = photograph[top : top + 32, left : left + 32]
        expected = np.clip(weight * image + frost_weight * crop, 0, 255).astype(np.uint8)
        assert np.abs(seen.astype(int) - expected).max() <= 1


@pytest.mark.parametrize(
    ("size", "sigma", "threshold"), [(224, 4, 0.69), (224, 2, 0.68), (32, 1, 0.69), (32, 0.7, 0.65)]
)
def test_water_layer_equals_opencv(size, sigma, threshold):
    layer = smooth_planes(np.random.default_rng(size).normal(size=(3, size, size)), sigma, 4.0, "nearest")
    layer = layer * 0.3 + 0.65
    layer[layer < threshold] = 0
    drops = (np.clip(layer, 0, 1) * 255).astype(np.uint8)
    edges = canny_edges(drops)
    distances = edge_distance(edges)
    reliefs = water_relief(drops)
    for drop, edge, distance, relief in zip(drops, edges, distances, reliefs, strict=True):
        expected_edge = cv2.Canny(drop, 50, 150)
        np.testing.assert_array_equal(edge, expected_edge > 0)
        expected = cv2.distanceTransform(255 - expected_edge, cv2.DIST_L2, 5)
        np.testing.assert_allclose(distance, np.minimum(expected, 20), atol=1e-4)
        levels = cv2.equalizeHist(cv2.blur(np.minimum(expected, 20), (3, 3)).astype(np.uint8))
        kernel = np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]])
        shading = cv2.blur(cv2.filter2D(levels, cv2.CV_8U, kernel), (3, 3)).astype(np.float32)
        assert np.mean(np.abs(relief - drop * shading) > 0.5) < 0.002


def test_spatter_without_a_drop_changes_nothing(monkeypatch, small_images):
    monkeypatch.setattr(ImageStreams, "normal", lambda self, *shape: np.full((len(self), *shape), -9, "f4"))
    for severity in (1, 5):
        result = corrupt(small_images, "spatter", severity, ids=range(len(small_images)))
        np.testing.assert_array_equal(result, small_images)


def test_fog_keeps_black_black_and_scales_with_the_brightest_value(small_images):
    black = np.zeros_like(small_images)
    assert corrupt(black, "fog", 5, ids=range(len(black))).max() == 0
    result = corrupt(small_images, "fog", 5, ids=range(len(small_images)))
    assert (result.max(axis=(1, 2, 3)) <= small_images.max(axis=(1, 2, 3))).all()
