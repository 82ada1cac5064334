"""Records of cells that really ran: polytta on a few bundled images, written as a benchmark writes them."""

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

import polytta
from polytta import models
from polytta.data.bundled import cifar10_subset_indices, load_cifar10_subset
from polytta.data.corruptions import corrupt
from polytta.data.datasets.base import ArrayImages
from polytta.report.calibration import calibration_error
from polytta.report.measures import pairwise_distances
from polytta.stream import Batch1, Mild, Mixed, Stream, open_stream

ROWS: dict[str, dict[str, Any]] = {
    "source": {"method": "source", "particles": 1, "diversity": "none"},
    "tent": {"method": "tent", "particles": 1, "diversity": "none"},
    "deyo": {"method": "deyo", "particles": 1, "diversity": "none"},
    "deyo_naive": {"method": "deyo", "particles": 3, "diversity": "none"},
    "deyo_svgd": {"method": "deyo", "particles": 3, "diversity": "svgd"},
    "deyo_grad": {"method": "deyo", "particles": 3, "diversity": "grad"},
}
SCENARIOS = {"batch1": Batch1, "mild": Mild, "mixed": Mixed}


def write_records(
    folder: Path,
    rows: tuple[str, ...] = tuple(ROWS),
    corruptions: tuple[str, ...] = ("impulse_noise", "frost"),
    seeds: tuple[int, ...] = (0, 1),
    images: int = 12,
    scenario: str = "batch1",
    model: str = "bundled/cifar10_resnet_gn",
) -> list[dict[str, Any]]:
    made = []
    groups: list[Any] = [list(corruptions)] if scenario == "mixed" else list(corruptions)
    for corruption in groups:
        for seed in seeds:
            stream = _stream(corruption, scenario, images, seed)
            made += [_run(variant, corruption, stream, scenario, images, seed, model) for variant in rows]
    (folder / "cells").mkdir(parents=True, exist_ok=True)
    for record in made:
        (folder / "cells" / f"{record['key']}.json").write_text(json.dumps(record))
    return made


def _stream(corruption: str | list[str], scenario: str, images: int, seed: int) -> Stream:
    clean = load_cifar10_subset()
    names = [corruption] if isinstance(corruption, str) else corruption
    domains = [
        ArrayImages(
            f"cifar10-2000/{name}/5",
            clean.classes,
            "generated",
            corrupt(clean.images[:200], name, 5, constants="cifar", ids=cifar10_subset_indices()[:200], seed=0),
            clean.labels[:200],
        )
        for name in names
    ]
    return open_stream(SCENARIOS[scenario](batch_size=_batch(scenario), seed=seed, limit=images), domains)


def _batch(scenario: str) -> int:
    return 1 if scenario == "batch1" else 4


def _run(
    variant: str, corruption: str | list[str], stream: Stream, scenario: str, images: int, seed: int, model: str
) -> dict[str, Any]:
    source = models.create(model)
    adapted = polytta.adapt(source.module, **ROWS[variant], lr=1e-3, seed=seed, preset="official")
    probs, labels, entropies, disagreements, drifts, thetas = [], [], [], [], [], [adapted.theta.clone()]
    for batch in stream.batches():
        probs.append(adapted(source.preprocessing(batch.images)).exp().numpy())
        labels.append(batch.labels)
        last = adapted.last
        assert last is not None and last.logits is not None
        entropies.append(float(np.mean(last.entropy)))
        disagreements.append(last.disagreement)
        drifts.append(list(last.distance_to_source))
        thetas.append(adapted.theta.clone())
    p, y = np.concatenate(probs), np.concatenate(labels)
    right = p.argmax(1) == y
    cell = {
        "model": model,
        "dataset": "bundled",
        "corruption": corruption,
        "severity": 5,
        "scenario": scenario,
        "batch_size": _batch(scenario),
        "images": images,
        "variant": variant,
        "preset": "official",
        **ROWS[variant],
        "weight": None,
        "optimizer": "sgd",
        "views": "none",
        "lr": 1e-3,
        "lr_span": None,
        "aggregate": "probs",
        "precision": "fp32",
        "seed": seed,
    }
    pins = {
        "model": source.facts(),
        "stream": {**stream.facts(), "sha256": stream.sha256},
        "settings": adapted.config.to_dict(),
        "protocol": "predict, then adapt",
        "data_origin": "generated",
    }
    key = hashlib.sha256(json.dumps([cell, pins], sort_keys=True).encode()).hexdigest()[:24]
    totals = adapted.totals
    kernel = None if last is None else last.kernel
    return {
        "format": "polytta-record-1",
        "key": key,
        "cell": cell,
        "pins": pins,
        "results": {
            "accuracy": 100 * float(right.mean()),
            "top5": 100 * float((np.argsort(-p, 1)[:, :5] == y[:, None]).any(1).mean()),
            "per_class": [100 * float(right[y == c].mean()) if (y == c).any() else None for c in range(10)],
            "ece": calibration_error(p, y),
            "nll": float(-np.log(p[np.arange(len(y)), y]).mean()),
            "brier": float(((p - np.eye(10)[y]) ** 2).sum(1).mean()),
            "worst_group": None,
            "entropy": float(np.mean(entropies)),
            "disagreement": float(np.mean(disagreements)),
            "drift": drifts[-1],
            "selected": {name: list(counts) for name, counts in totals.selected.items()},
            "stepped": list(totals.stepped),
            "resets": list(totals.resets),
            "forward_samples": totals.forward_samples,
            "backward_samples": totals.backward_samples,
            "images": len(y),
        },
        "curves": {
            "position": list(range(1, len(y) + 1)),
            "accuracy": (100 * np.cumsum(right) / np.arange(1, len(y) + 1)).tolist(),
            "entropy": np.interp(np.arange(len(y)), np.linspace(0, len(y), len(entropies)), entropies).tolist(),
            "disagreement": np.interp(np.arange(len(y)), np.linspace(0, len(y), len(entropies)), disagreements).tolist(),
            "drift": drifts,
        },
        "reliability": _bins(p.max(1), p.max(1), right, ("confidence", "accuracy")),
        "disagreement_vs_error": _by_disagreement(disagreements, ~right, _batch(scenario)),
        "particles": {
            "projection": _projection(torch.stack(thetas)),
            "pairwise": pairwise_distances(adapted.theta).tolist(),
            "kernel": None if kernel is None else kernel.tolist(),
        },
        "correct": base64.b64encode(np.packbits(right).tobytes()).decode(),
        "environment": {"polytta": "0", "torch": torch.__version__, "device": "cpu", "engine": "folded"},
        "times": {"wall_seconds": 1.0, "images_per_second": 100.0 / len(ROWS[variant]["diversity"]), "peak_memory_mb": 1.0},
    }


def _bins(place: Any, first: Any, second: Any, names: tuple[str, str]) -> dict[str, list[float | None]]:
    number = np.minimum((place * 15).astype(int), 14)
    count = np.bincount(number, minlength=15)

    def mean(values: Any) -> list[float | None]:
        sums = np.bincount(number, values, 15)
        return [float(s / n) if n else None for s, n in zip(sums, count, strict=True)]

    return {names[0]: mean(first), names[1]: mean(second.astype(float)), "count": count.tolist()}


def _by_disagreement(disagreements: list[float], wrong: Any, batch: int) -> dict[str, list[Any]]:
    each = np.repeat(disagreements, batch)[: len(wrong)]
    levels = np.unique(each)
    return {
        "disagreement": levels.tolist(),
        "error": [float(wrong[each == level].mean()) for level in levels],
        "count": [int((each == level).sum()) for level in levels],
    }


def _projection(path: torch.Tensor) -> list[Any]:
    moved = (path - path[0, 0]).flatten(0, 1)
    _, _, axes = torch.linalg.svd(moved, full_matrices=False)
    return (moved @ axes[:2].T).reshape(*path.shape[:2], 2).tolist()
