"""Runs of ROID and RDumb on recorded cases: the adapter of a case, fed with the augmented images of its recording."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from tests.methods.test_parity import source_model
from torch import Tensor, nn

import polytta
from polytta.methods import ROID, Context, Method, Pass, RDumb, Selection, State
from polytta.optim import SGD, Adam, Optimizer
from polytta.roles.noise import Noise

VECTORS = Path(__file__).parent / "vectors"
RIVALS = VECTORS / "rivals"
CASES = {case["name"]: case for case in json.loads((RIVALS / "cases.json").read_text())}


class RecordedCopies:
    """In place of the augmentation: the copies of kept images that the reference made, already as the network sees."""

    def __init__(self) -> None:
        self.kept: Tensor | None = None
        self.copies: Tensor | None = None

    def __call__(self, x: Tensor, noise: Noise) -> Tensor:
        moved = x.clone()
        if self.copies is not None:
            moved[:, self.kept] = (self.copies + 2) / 4
        return moved


class WatchedROID(ROID):
    """Shows what was selected."""

    def select(self, context: Context, forward_pass: Pass, state: State) -> tuple[Selection, State]:
        selection, after = super().select(context, forward_pass, state)
        self.__dict__["seen"] = (selection, forward_pass)
        return selection, after


class WatchedRDumb(RDumb):
    """Shows what was selected."""

    def select(self, context: Context, forward_pass: Pass, state: State) -> tuple[Selection, State]:
        selection, after = super().select(context, forward_pass, state)
        self.__dict__["seen"] = (selection, forward_pass)
        return selection, after


def optimizer_of(case: dict[str, Any]) -> Optimizer:
    if case["optimizer"] == "Adam":
        return Adam(betas=tuple(case["betas"]))
    return SGD(momentum=case["momentum"], nesterov=case["nesterov"])


def method_of(case: dict[str, Any], copies: RecordedCopies) -> Method:
    if case["method"] == "rdumb":
        return WatchedRDumb(
            entropy_threshold=case["e0"] / torch.tensor(10.0, dtype=torch.float64).log().item(),
            redundancy=case["d_margin"],
            reset_every=case["reset_every"],
            window=case["window"],
        )
    names = ("temperature", "momentum_probs", "momentum_src", "divisor", "window", "reset_every")
    switches = ("use_weighting", "use_consistency", "use_prior_correction")
    return WatchedROID(**{name: case[name] for name in names + switches}, value_range=(-2.0, 2.0), augment=copies)


class RecordedRun:
    """An adapter as the loader of the recordings wants it."""

    def __init__(self, case: dict[str, Any], model: nn.Module, arrays: dict[str, Tensor], engine: str) -> None:
        self.case, self.kept, self.copies = case, arrays.get("kept"), RecordedCopies()
        self.method, self.call = method_of(case, self.copies), 0
        self.trace: dict[str, Any] = {}
        self.adapted = polytta.adapt(
            model,
            self.method,
            preset="official",
            particles=1,
            lr=case["lr"],
            optimizer=optimizer_of(case),
            exclude=None,
            engine=engine,
        )

    def __call__(self, x: Tensor, aug: Tensor | None) -> Tensor:
        size = x.shape[0] if self.case["window"] == 1 else self.case["window"]
        self.copies.copies = aug
        self.copies.kept = None if aug is None else self.kept[self.call].bool()[:size]
        self.adapted(x)
        self.call += 1
        report, returned = self.adapted.last, self.adapted.last_logits
        assert report is not None
        assert returned is not None
        self._note(report)
        return returned[0]

    def params(self) -> dict[str, Tensor]:
        return self.adapted.particle(0)

    def _note(self, report: Any) -> None:
        """What the recordings have and can be seen from outside; a window that is not full decides nothing."""
        state = self.adapted.state_dict()
        waits = self.case["window"] > 1 and bool(int(state["method_collected"]) % self.case["window"])
        selection, seen = self.method.__dict__["seen"]
        self.trace = {"updated": not waits and bool(selection.mask.any()), "reset": report.reset[0]}
        if self.case["method"] == "roid":
            self.trace["q"] = state["method_mean_probs"][0]
        if waits:
            return
        self.trace["logits"] = seen.logits[0]
        if self.case["method"] == "rdumb":
            self.trace |= {"mask2": selection.mask[0], "n1": selection.counts[0, 0], "n2": selection.counts[1, 0]}
            return
        self.trace["loss"] = report.loss[0]
        if self.case["use_weighting"]:
            self.trace |= {"kept": selection.mask[0], "n_kept": selection.counts[0, 0]}


def make(case: dict[str, Any], model: nn.Module, arrays: dict[str, Tensor]) -> RecordedRun | None:
    """For the loader that comes with the recordings; the run that ends in NaN is not to be repeated."""
    engine = os.environ.get("POLYTTA_TEST_ENGINE", "folded")
    return None if "_nan_" in case["name"] else RecordedRun(case, model, arrays, engine)


def images(pixels: np.ndarray | Tensor) -> Tensor:
    return (torch.as_tensor(pixels).permute(0, 3, 1, 2).float() - 128) / 64


def calls(case: dict[str, Any], recorded: dict[str, Tensor]) -> Iterator[tuple[Tensor, Tensor | None]]:
    """What each call of a case got: images, and the copies of those that were kept."""
    stream = np.load(VECTORS / "stream.npz")[f"b{case['batch']}"]
    per_call = recorded.get("copies_per_call", torch.zeros(case["steps"], dtype=torch.int64)).tolist()
    at = used = 0
    for size, count in zip(case["sizes"] or [case["batch"]] * case["steps"], per_call, strict=True):
        copies = images(recorded["copies"][used : used + count]) if count else None
        yield images(stream[at : at + size]), copies
        at, used = at + size, used + count


def replay(name: str, engine: str) -> None:
    """Every call of a recorded case; asserts that answers, choices and parameters are the recorded ones."""
    case, recorded = CASES[name], load_file(RIVALS / f"{name}.safetensors")
    run = RecordedRun(case, source_model(case), recorded, engine)
    known = {int(step): place for place, step in enumerate(recorded["param_steps"])}
    for step, (x, copies) in enumerate(calls(case, recorded)):
        returned = run(x, copies)
        expected = recorded["returned"][step][: x.shape[0]]
        assert (returned - expected).abs().max() <= 1e-4, f"the answer differs at call {step}"
        for what in ("updated", "reset", "kept", "n_kept", "mask2", "n1", "n2"):
            if what in run.trace and what in recorded:
                got = torch.as_tensor(run.trace[what]).long()
                wanted = recorded[what][step].long()
                assert torch.equal(got, wanted[: len(got)] if got.dim() else wanted), f"{what} differs at call {step}"
        if "q" in run.trace:
            assert (run.trace["q"] - recorded["q"][step]).abs().max() <= 1e-5, f"q differs at call {step}"
        if step in known:
            apart = (flat(case, run.params()) - recorded["params"][known[step]]).abs().max()
            assert apart <= 1e-5, f"parameters differ at call {step}"


def flat(case: dict[str, Any], parameters: dict[str, Tensor]) -> Tensor:
    return torch.cat([parameters[name].flatten() for name in case["adapted"]])
