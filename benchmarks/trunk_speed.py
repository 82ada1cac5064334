"""Milliseconds of a step by how the frozen trunk computes: float32 as models lay images out, float32, bfloat16.

    python benchmarks/trunk_speed.py [--device cuda] [--models NAME ...] [--batches 1 64] [--guard off]

On a CUDA device float32 images of convolutional networks are laid out channels-last where convolutions may use TF32,
since the fused norm kernels take them in no other way; the first column is without that. Bundled models by name, or
``timm/NAME`` with random weights and 224 x 224 pixels; rows in one process, the least of each.
"""

import argparse
import time
from typing import Any

import torch
from torch import Tensor, nn

import polytta
from polytta.gpu.graph import GraphEngine
from polytta.models import create

ROWS: dict[str, dict[str, Any]] = {
    "Tent": {"method": "tent", "particles": 1},
    "DeYO": {"method": "deyo", "particles": 1},
    "Grad, K = 3": {"method": "deyo", "particles": 3, "diversity": "grad"},
    "default": {},
}
MODELS = ("cifar10_resnet_bn", "cifar10_resnet_gn", "cifar10_vit_ln")


def model_of(name: str) -> tuple[nn.Module, int]:
    """A network, and the side of its images."""
    if not name.startswith("timm/"):
        return create(f"bundled/{name}").module, 32
    import timm

    return timm.create_model(name.partition("/")[2], pretrained=False).eval(), 224


def milliseconds(adapted: polytta.Adapted, x: Tensor, calls: int, repeats: int) -> float:
    """Of one step: wall time on a GPU, processor time on a CPU, which others may be using."""
    for _ in range(3):
        adapted(x)
    took = []
    for _ in range(repeats):
        if x.is_cuda:
            torch.cuda.synchronize()
        clock = time.perf_counter if x.is_cuda else time.process_time
        began = clock()
        for _ in range(calls):
            adapted(x)
        if x.is_cuda:
            torch.cuda.synchronize()
        took.append((clock() - began) / calls)
    return 1000 * min(took)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 64])
    parser.add_argument("--rows", nargs="+", default=list(ROWS), choices=list(ROWS))
    parser.add_argument("--guard", default="default", choices=["default", "off"])
    parser.add_argument("--calls", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    on_gpu = options.device.startswith("cuda")
    if not on_gpu:
        torch.set_num_threads(1)
    forms = [("fp32", False), ("fp32", True), ("bf16", True)] if on_gpu else [("fp32", True), ("bf16", True)]
    titles = ["float32, as laid out by the model"] * on_gpu + ["float32", "bfloat16"]
    print("| | batch | | " + " | ".join(titles) + " |\n|---|---|---" + "|---" * len(titles) + "|")
    for name in options.models:
        model, side = model_of(name)
        model = model.to(options.device)
        for batch in options.batches:
            x = torch.randn(batch, 3, side, side, generator=torch.Generator().manual_seed(0)).to(options.device)
            for row in options.rows:
                cells = []
                for precision, fused in forms:
                    GraphEngine.fuses_images = fused
                    adapted = polytta.adapt(model, precision=precision, guard=options.guard, **ROWS[row])
                    cells.append(f"{milliseconds(adapted, x, options.calls, options.repeats):.2f}")
                    del adapted
                    if on_gpu:
                        torch.cuda.empty_cache()
                print(f"| {name} | {batch} | {row} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
