"""Throws bad inputs, killed saves and flipped bytes at adapters, and counts what gets through.

    python scripts/fuzz.py [--count 10000] [--kills 100] [--flips 1000] [--seed 0]

Inputs: every method that needs no text, times diversities, lenses, aggregates, statistics, dtypes and guards on small
networks, with batches of NaN, infinity, absurd and constant values, odd shapes, layouts and types. Anything but an
answer or an error of polytta's own counts as a crash; answers and parameters must be finite, and the source unchanged.
Kills: a process that saves again and again gets SIGKILL; what is left must load and go on bit for bit as one that was
never killed.
Flips: one byte of a state file; the file must be refused. The exit code is 1 if anything got through.
"""

import argparse
import logging
import math
import os
import random
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

import torch
from torch import Tensor, nn
from tqdm import tqdm

import polytta
from polytta.checks.networks import small_model, small_stream
from polytta.errors import PolyttaError

METHODS = ("source", "norm", "tent", "eata", "sar", "deyo", "memo", "roid", "rdumb")
KINDS = ("batch", "group", "instance", "layer", "rms")
PER_ADAPTER = 20


def settings(draw: random.Random) -> dict[str, object]:
    chosen: dict[str, object] = {
        "method": draw.choice(METHODS),
        "particles": draw.randint(1, 3),
        "diversity": draw.choice(["none", "none", "kl", "svgd", "grad"]),
        "lenses": draw.choice(["none", "none", "optics"]),
        "aggregate": draw.choice(["probs", "logits", "evidence"]),
        "statistics": draw.choice(["auto", "source", "batch", "blend", "median"]),
        "optimizer": draw.choice(["sgd", "adam", "adamw"]),
        "lr": draw.choice([None, 0.0, 1e-3, 1.0, 1e4, 1e20, 1e38]),
        "engine": draw.choice(["folded", "static", "loop"]),
        "guard": draw.choice(["default", "default", "strict", "off"]),
        "exclude": None,
        "seed": draw.randint(0, 99),
    }
    return chosen


def fitting(value: float, dtype: torch.dtype) -> float:
    most = torch.finfo(dtype).max
    return max(-most, min(most, value)) if math.isfinite(value) else value


def bad_input(draw: random.Random, dtype: torch.dtype) -> object:
    generator = torch.Generator().manual_seed(draw.randint(0, 2**31))
    x = torch.randn(draw.choice([1, 2, 3, 4, 5, 12]), 3, 8, 8, generator=generator).to(dtype)
    kind = draw.randint(0, 19)
    values = [float("nan"), float("inf"), -float("inf"), 1e30, -1e30, 65504.0, 1e-40, 0.0, 1e6, 1e5]
    if kind < 6:
        x.view(-1)[draw.randrange(x.numel())] = fitting(draw.choice(values), dtype)
        return x
    if kind < 9:
        return torch.full_like(x, fitting(draw.choice(values), dtype))
    if kind == 9:
        return x * draw.choice([1e3, 1e5, 1e-20])
    odd: list[object] = [
        x[:0], x[0], x[:, :1], x[..., :1], x[..., :5], x.int(), x.bool(), x.to(torch.complex64), x.to_sparse(),
        x.tolist(), None, "image", x.numpy() if dtype != torch.bfloat16 else 3, x.to("meta"), x.unsqueeze(0),
        x.expand(1, *x.shape), torch.empty(0), torch.tensor(1.0), x.transpose(2, 3), x.double(), x.half(),
    ]  # fmt: skip
    return draw.choice(odd)


def sums(model: nn.Module) -> list[Tensor]:
    return [value.clone() for value in model.state_dict().values()]


def fuzz_inputs(count: int, draw: random.Random) -> Counter[str]:
    found: Counter[str] = Counter()
    bar = tqdm(total=count, desc="inputs", unit="input")
    while found["tried"] < count:
        dtype = draw.choice([torch.float32, torch.float32, torch.float64, torch.bfloat16, torch.float16])
        model = small_model(draw.choice(KINDS)).to(dtype)
        before, chosen = sums(model), settings(draw)
        try:
            adapted = polytta.adapt(model, **chosen)  # type: ignore[arg-type]
        except PolyttaError:
            found["settings refused"] += 1
            continue
        for _ in range(PER_ADAPTER):
            x = bad_input(draw, dtype)
            found["tried"] += 1
            bar.update()
            try:
                answer = adapted(x) if draw.random() < 0.8 else adapted.predict(x)  # type: ignore[arg-type]
                found["answered"] += 1
                if not bool(answer.isfinite().all()):
                    found["FAILED: answer not finite"] += 1
                    tqdm.write(f"answers {answer[~answer.isfinite().all(dim=-1)].tolist()} | {chosen} {dtype}"[:900])
            except PolyttaError:
                found["refused"] += 1
            except Exception as error:  # what is counted here is what should not be
                found[f"FAILED: {type(error).__name__}"] += 1
                tqdm.write(f"{type(error).__name__}: {error} | {chosen} {dtype}"[:600])
        if not bool(adapted.theta.isfinite().all()):
            found["FAILED: parameters not finite"] += 1
            tqdm.write(f"parameters | {chosen} {dtype}")
        if not all(torch.equal(one, was) for one, was in zip(sums(model), before, strict=True)):
            found["FAILED: source changed"] += 1
        found["adapters"] += 1
    bar.close()
    return found


class Undisturbed:
    """What an adapter says and is after every step, if nobody kills it."""

    def __init__(self) -> None:
        self.stream = list(small_stream(4, 4))
        self.adapted = self.begun()
        self.after = [(torch.empty(0), self.adapted.theta.clone())]

    @staticmethod
    def begun() -> polytta.Adapted:
        return polytta.adapt(small_model("group"), "tent", exclude=None)

    def batch(self, step: int) -> Tensor:
        """Of a step, from 1."""
        return self.stream[(step - 1) % len(self.stream)]

    def at(self, step: int) -> tuple[Tensor, Tensor]:
        """(answer, parameters) after so many steps."""
        while len(self.after) <= step:
            answer = self.adapted(self.batch(len(self.after)))
            self.after.append((answer.clone(), self.adapted.theta.clone()))
        return self.after[step]

    def save_for_ever(self, file: Path) -> None:
        adapted, step = self.begun(), 0
        while True:
            step += 1
            adapted(self.batch(step))
            adapted.save(file)


def fuzz_kills(count: int, draw: random.Random, folder: Path) -> Counter[str]:
    found: Counter[str] = Counter()
    file, undisturbed = folder / "state", Undisturbed()
    for _ in tqdm(range(count), desc="kills", unit="kill"):
        process = os.fork()
        if not process:
            try:
                undisturbed.save_for_ever(file)
            finally:
                os._exit(1)
        time.sleep(draw.uniform(0.02, 0.4))
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        found["tried"] += 1
        if not file.exists():
            continue
        try:
            resumed = polytta.load(file, small_model("group"))
            found["loaded"] += 1
            step = resumed.totals.steps + 1
            told, theta = undisturbed.at(step)
            same = torch.equal(resumed(undisturbed.batch(step)), told) and torch.equal(resumed.theta, theta)
            found["went on bit for bit" if same else "FAILED: went on otherwise"] += 1
        except Exception as error:
            found[f"FAILED: {type(error).__name__}"] += 1
            tqdm.write(f"{type(error).__name__}: {error}"[:300])
    return found


def fuzz_flips(count: int, draw: random.Random, folder: Path) -> Counter[str]:
    adapted = polytta.adapt(small_model("group"), "tent", exclude=None)
    adapted(torch.randn(4, 3, 8, 8, dtype=torch.float64))
    file = folder / "flipped"
    adapted.save(file)
    whole, found = file.read_bytes(), Counter[str]()
    for _ in tqdm(range(count), desc="flips", unit="flip"):
        place, bit = draw.randrange(len(whole)), 1 << draw.randrange(8)
        file.write_bytes(whole[:place] + bytes([whole[place] ^ bit]) + whole[place + 1 :])
        found["tried"] += 1
        try:
            polytta.load(file, small_model("group"))
            found["FAILED: loaded"] += 1
            tqdm.write(f"byte {place} of {len(whole)}")
        except PolyttaError:
            found["refused"] += 1
        except Exception as error:
            found[f"FAILED: {type(error).__name__}"] += 1
            tqdm.write(f"{type(error).__name__}: {error}"[:300])
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--flips", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.getLogger("polytta").setLevel(logging.CRITICAL)
    draw, failed = random.Random(options.seed), False
    with tempfile.TemporaryDirectory() as folder:
        for part, count, run in (
            ("inputs", options.count, lambda: fuzz_inputs(options.count, draw)),
            ("flips", options.flips, lambda: fuzz_flips(options.flips, draw, Path(folder))),
            ("kills", options.kills, lambda: fuzz_kills(options.kills, draw, Path(folder))),
        ):
            found = run() if count else Counter[str]()
            print(part, ", ".join(f"{name} {number}" for name, number in sorted(found.items())) or "none", flush=True)
            failed |= any(name.startswith("FAILED") for name in found)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
