"""What particles cost on this machine's CPU: folded against loop, and each diversifier against one plain model.

    python benchmarks/engines.py

All variants of a table row take turns within one run, so that a slow moment of the machine hits them alike; a figure is
the median over turns. Every sample is selected, the most expensive case. Run it through ``make bench``, which keeps
the C library from handing memory back between steps: K particles make tensors K times as large, and with glibc's
defaults their page faults cost up to a fifth of a step at batch 16.
"""

import statistics
import time
from collections.abc import Callable

import torch
from tqdm import tqdm

import polytta
from polytta.diversity import Grad
from polytta.methods import DeYO
from polytta.models import create

MODELS = {"BN": "cifar10_resnet_bn", "GN": "cifar10_resnet_gn", "ViT": "cifar10_vit_ln"}
SELECT_ALL = DeYO(entropy_threshold=2.0, plpd_threshold=-1.0)
DIVERSITIES = {
    "base": {"particles": 1},
    "naive": {},
    "kl": {"diversity": "kl"},
    "svgd": {"diversity": "svgd"},
    "grad-exact": {"diversity": Grad(solver="exact")},
    "grad-fast": {"diversity": Grad(solver="fast")},
}


def medians(variants: dict[str, Callable[[], object]], turns: int, label: str) -> dict[str, float]:
    """Median milliseconds of each variant, all taking turns."""
    for run in variants.values():
        run()
        run()
    times: dict[str, list[float]] = {name: [] for name in variants}
    for _ in tqdm(range(turns), desc=label, leave=False):
        for name, run in variants.items():
            started = time.perf_counter()
            run()
            times[name].append(1000 * (time.perf_counter() - started))
    return {name: statistics.median(values) for name, values in times.items()}


def stepper(model: torch.nn.Module, batch: int, **arguments: object) -> Callable[[], object]:
    adapted = polytta.adapt(model, SELECT_ALL, lr=1e-6, **arguments)
    x = torch.randn(batch, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    return lambda: adapted(x)


def engines() -> None:
    print("\nThree particles, DeYO, milliseconds per step")
    print(f"{'model':6}{'batch':>6}{'loop':>10}{'folded':>10}{'folded/loop':>13}")
    for label, name in MODELS.items():
        model = create(f"bundled/{name}").module
        for batch in (1, 16):
            variants = {e: stepper(model, batch, particles=3, engine=e) for e in ("loop", "folded")}
            took = medians(variants, 60 if batch == 1 else 9, f"{label} batch {batch}")
            ratio = took["folded"] / took["loop"]
            print(f"{label:6}{batch:6}{took['loop']:10.1f}{took['folded']:10.1f}{ratio:13.2f}")


def diversities() -> None:
    print("\nK = 3 over one plain model (base), DeYO, folded")
    print(
        f"{'model':6}{'batch':>6}{'base ms':>9}"
        + "".join(f"{n:>12}" for n in list(DIVERSITIES)[1:])
        + f"{'fast/exact':>12}"
    )
    for label, name in MODELS.items():
        model = create(f"bundled/{name}").module
        for batch in (1, 16):
            variants = {n: stepper(model, batch, **{"particles": 3, **a}) for n, a in DIVERSITIES.items()}
            took = medians(variants, 30 if batch == 1 else 5, f"{label} batch {batch}")
            cells = "".join(f"{took[n] / took['base']:11.2f}x" for n in list(DIVERSITIES)[1:])
            ratio = took["grad-fast"] / took["grad-exact"]
            print(f"{label:6}{batch:6}{took['base']:9.1f}{cells}{ratio:12.2f}")


if __name__ == "__main__":
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads")
    engines()
    diversities()
