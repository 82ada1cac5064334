"""Records of cells that really ran: polytta on a few bundled images, written down as a benchmark would."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import polytta
from polytta import models
from polytta.bench.cell import Cell
from polytta.bench.record import Curves, DisagreementVsError, Particles, Record, Reliability, Results, Times
from polytta.data.bundled import cifar10_subset_indices, load_cifar10_subset
from polytta.data.corruptions import corrupt
from polytta.data.datasets.base import ArrayImages
from polytta.report.calibration import calibration_error
from polytta.report.measures import pairwise_distances
from polytta.stream import Batch1, Mild, Mixed, Stream, open_stream

ROWS: dict[str, dict[str, Any]] = {
    "source": {"method": "source"},
    "tent": {"method": "tent"},
    "deyo": {"method": "deyo"},
    "deyo_naive": {"method": "deyo", "particles": 3},
    "deyo_svgd": {"method": "deyo", "particles": 3, "diversity": "svgd"},
    "deyo_grad": {"method": "deyo", "particles": 3, "diversity": "grad"},
}
SCENARIOS: dict[str, Any] = {"batch1": Batch1, "mild": Mild, "mixed": Mixed}


def write_records(
    folder: Path,
    rows: tuple[str, ...] = tuple(ROWS),
    corruptions: tuple[str, ...] = ("impulse_noise", "frost"),
    seeds: tuple[int, ...] = (0, 1),
    images: int = 12,
    scenario: str = "batch1",
    model: str = "bundled/cifar10_resnet_gn",
) -> list[Record]:
    groups: list[Any] = [corruptions] if scenario == "mixed" else list(corruptions)
    made = []
    for corruption in groups:
        for seed in seeds:
            batch = 1 if scenario == "batch1" else 4
            for variant in rows:
                own = {"scenario": scenario, "batch_size": batch, "variant": variant, **ROWS[variant]}
                made.append(
                    Cell(model, "bundled", corruption, 5, **own, seed=seed, images=images, lr=1e-3, preset="official")
                )
    records = [run(cell) for cell in made]
    for record in records:
        record.write(folder / "cells")
    return records


def run(cell: Cell) -> Record:
    stream, source = _stream(cell), models.create(cell.model)
    adapted = polytta.adapt(
        source.module,
        cell.method,
        particles=cell.particles,
        diversity=cell.diversity,
        lr=cell.lr,
        seed=cell.seed,
        preset=cell.preset,
    )
    start = time.perf_counter()
    probs, labels, steps, thetas = [], [], [], [adapted.theta.clone()]
    for batch in stream.batches():
        probs.append(adapted(source.preprocessing(batch.images)).exp().numpy())
        labels.append(batch.labels)
        steps.append(adapted.last)
        thetas.append(adapted.theta.clone())
    seconds = time.perf_counter() - start
    p, y = np.concatenate(probs), np.concatenate(labels)
    right = p.argmax(1) == y
    last, totals = steps[-1], adapted.totals
    assert last is not None
    sizes = np.array([len(part) for part in labels])
    entropies = [float(np.mean(step.entropy)) for step in steps if step is not None]
    disagreements = [step.disagreement for step in steps if step is not None]
    ends = np.cumsum(sizes)
    return Record(
        cell=cell,
        pins={
            "model": source.facts(),
            "stream": {**stream.facts(), "sha256": stream.sha256},
            "settings": adapted.config.to_dict(),
            "protocol": "predict, then adapt",
            "data_origin": "generated",
        },
        results=Results(
            accuracy=100 * float(right.mean()),
            top5=100 * float((np.argsort(-p, 1)[:, :5] == y[:, None]).any(1).mean()),
            per_class=tuple(100 * float(right[y == c].mean()) if (y == c).any() else None for c in range(10)),
            ece=calibration_error(p, y),
            nll=float(-np.log(p[np.arange(len(y)), y]).mean()),
            brier=float(((p - np.eye(10)[y]) ** 2).sum(1).mean()),
            worst_group=None,
            entropy=float(np.average(entropies, weights=sizes)),
            disagreement=float(np.average(disagreements, weights=sizes)),
            drift=last.distance_to_source,
            selected=totals.selected,
            stepped=totals.stepped,
            resets=totals.resets,
            forward_samples=totals.forward_samples,
            backward_samples=totals.backward_samples,
            images=len(y),
        ),
        curves=Curves(
            position=tuple(ends.tolist()),
            accuracy=tuple(100 * float(part.mean()) for part in np.split(right, ends[:-1])),
            entropy=tuple(entropies),
            disagreement=tuple(disagreements),
            drift=tuple(step.distance_to_source for step in steps if step is not None),
        ),
        reliability=_reliability(p.max(1), right),
        disagreement_vs_error=_disagreement_vs_error(np.repeat(disagreements, sizes), ~right),
        particles=Particles(
            projection=_projection(torch.stack(thetas)),
            pairwise=tuple(map(tuple, pairwise_distances(adapted.theta).tolist())),
            kernel=None if last.kernel is None else tuple(map(tuple, last.kernel.tolist())),
        ),
        correct=right,
        environment={"polytta": "test", "torch": torch.__version__, "device": "cpu", "engine": "folded"},
        times=Times(seconds, len(y) / seconds, 1.0, "2026-01-01T00:00:00+00:00"),
    )


def _stream(cell: Cell) -> Stream:
    clean, ids = load_cifar10_subset(), cifar10_subset_indices()
    count = max(200, cell.images or 0)
    domains = [
        ArrayImages(
            f"{clean.name}/{name}/{cell.severity}",
            clean.classes,
            "generated",
            corrupt(clean.images[:count], name, cell.severity or 0, constants="cifar", ids=ids[:count], seed=0),
            clean.labels[:count],
        )
        for name in cell.corruptions
    ]
    sized = {} if cell.scenario == "batch1" else {"batch_size": cell.batch_size}
    spec = SCENARIOS[cell.scenario](**sized, seed=cell.seed, limit=cell.images)
    return open_stream(spec, domains)


def _reliability(confidence: NDArray[Any], right: NDArray[np.bool_]) -> Reliability:
    number = np.minimum((confidence * 15).astype(int), 14)
    count = np.bincount(number, minlength=15)
    means = [np.bincount(number, values, 15) / np.maximum(count, 1) for values in (confidence, right)]
    return Reliability(tuple(means[0].tolist()), tuple(means[1].tolist()), tuple(count.tolist()))


def _disagreement_vs_error(disagreement: NDArray[Any], wrong: NDArray[np.bool_]) -> DisagreementVsError:
    levels = np.unique(disagreement)
    return DisagreementVsError(
        tuple(levels.tolist()),
        tuple(float(wrong[disagreement == level].mean()) for level in levels),
        tuple(int((disagreement == level).sum()) for level in levels),
    )


def _projection(path: torch.Tensor) -> tuple[tuple[tuple[float, float], ...], ...]:
    moved = (path - path[0, 0]).flatten(0, 1)
    axes = torch.linalg.svd(moved, full_matrices=False)[2][:2]
    places = (moved @ axes.T).reshape(*path.shape[:2], 2)
    return tuple(tuple((x, y) for x, y in row) for row in places.tolist())
