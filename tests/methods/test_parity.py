"""Step-by-step agreement with the public implementations of Tent, SAR and DeYO (see vectors/README.md)."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tests.methods.tiny_networks import TinyNetwork
from torch import Tensor

import polytta
from polytta.methods import SAR, DeYO, Method, Source, Tent
from polytta.methods.shuffles import permute_tiles
from polytta.roles.noise import Noise

VECTORS = Path(__file__).parent / "vectors"
CASES = {case["name"]: case for case in json.loads((VECTORS / "cases.json").read_text())}
TOLERANCE = 1e-4


def source_model(case: dict[str, Any]) -> TinyNetwork:
    network = TinyNetwork("bn" if case["model"] == "TinyBN" else "gn")
    network.load_state_dict(load_file(VECTORS / f"{case['model']}.safetensors"))
    with torch.no_grad():
        for parameter in network.head.parameters():
            parameter.mul_(case.get("head_scale", 1.0))
    return network.eval()


def batches(case: dict[str, Any]) -> list[Tensor]:
    pixels = torch.as_tensor(np.load(VECTORS / "stream.npz")[f"b{case['batch']}"])
    images = (pixels.permute(0, 3, 1, 2).float() - 128) / 64
    return list(images.split(case["batch"])[: case["steps"]])


class RecordedShuffle:
    """Applies the tile permutations the reference drew, one set per call."""

    def __init__(self, permutations: Tensor) -> None:
        self.permutations = iter(permutations.long())

    def __call__(self, x: Tensor, noise: Noise) -> Tensor:
        return permute_tiles(x.squeeze(0), next(self.permutations)).unsqueeze(0)


def method_of(case: dict[str, Any], recorded: dict[str, Tensor]) -> Method:
    if case["method"] == "deyo":
        return DeYO(shuffle=RecordedShuffle(recorded["perm"]))
    return {"tent": Tent(), "sar": SAR(quirks="reference"), "source": Source()}[case["method"]]


# That engines agree to 1e-9 is seen elsewhere; here on one recording of each method.
FIRST = {case["method"]: name for name, case in reversed(CASES.items())}
RUNS = [*((name, "folded") for name in CASES), *((name, one) for name in FIRST.values() for one in ("static", "loop"))]


@pytest.mark.parametrize(("name", "engine"), RUNS)
def test_agrees_with_the_public_implementation(name: str, engine: str) -> None:
    case = CASES[name]
    recorded = load_file(VECTORS / case["file"])
    method = method_of(case, recorded)
    adapted = polytta.adapt(
        source_model(case), method, preset="official", particles=1, lr=case.get("lr", 0.0), exclude=None, engine=engine
    )
    for step, x in enumerate(batches(case)):
        log_probs = adapted(x)
        expected = recorded["logits"][step].log_softmax(dim=1)
        assert (log_probs - expected).abs().max() <= TOLERANCE, f"log-probabilities differ at step {step}"
        assert adapted.last is not None
        counts = [counts[0] for counts in adapted.last.selected.values()]
        if "n1" in recorded:
            assert counts == [recorded["n1"][step], recorded["n2"][step]], f"selection differs at step {step}"
        if "reset" in recorded:
            assert adapted.last.reset == (bool(recorded["reset"][step]),), f"reset differs at step {step}"
    for parameter, value in adapted.particle(0).items():
        if case["method"] != "source":
            assert (value - recorded[f"final.{parameter}"]).abs().max() <= TOLERANCE, parameter
