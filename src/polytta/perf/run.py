"""The measurement: every variant of a model and batch size in one process, one after the other.

The yardstick is one model adapted by DeYO the way the public code does it: eager, float32, one particle, images picked
by indexing (``engine="loop"``). Every sample is selected, the most expensive case. Weights and images are random: a
step costs the same whatever they are.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

import polytta
from polytta.methods import DeYO
from polytta.models import create
from polytta.particles.precision import Precision
from polytta.perf.clock import Timing, time_calls

SELECT_ALL = DeYO(entropy_threshold=2.0, plpd_threshold=-1.0)
DIVERSITIES = ("none", "kl", "svgd", "grad")


@dataclass(frozen=True)
class Case:
    """A model and a batch size.

    Attributes:
        label: how tables call it.
        model: id for ``polytta.models.create``, or "timm/..." made with random weights.
        side: image side.
        batch: images per step.
        goal: largest wanted time of three particles with Grad over one-model DeYO.
    """

    label: str
    model: str
    side: int
    batch: int
    goal: float | None


CASES = (
    Case("ViT-B/16", "timm/vit_base_patch16_224", 224, 1, 0.30),
    Case("ViT-B/16", "timm/vit_base_patch16_224", 224, 64, 0.55),
    Case("ResNet-50-GN", "timm/resnet50_gn", 224, 1, 0.40),
    Case("ResNet-50-GN", "timm/resnet50_gn", 224, 64, 1.0),
    Case("ResNet-50-BN", "timm/resnet50", 224, 64, 1.0),
    Case("bundled ResNet-GN", "bundled/cifar10_resnet_gn", 32, 1, 0.15),
)


@dataclass(frozen=True)
class Figure:
    """One measured variant.

    Attributes:
        case: model and batch.
        variant: "forward", "reference", or a diversity.
        particles: K.
        engine: engine used.
        precision: precision used.
        timing: time and memory of a step.
        passes: forward passes over all rows that the arithmetic of a step amounts to.
        flops: floating-point operations of a step.
    """

    case: Case
    variant: str
    particles: int
    engine: str
    precision: str
    timing: Timing
    passes: int
    flops: float


def network(case: Case) -> nn.Module:
    """The model on the GPU."""
    name = case.model.removeprefix("timm/")
    if name == case.model:
        return create(case.model).module.cuda()
    import timm

    torch.manual_seed(0)
    made: nn.Module = timm.create_model(name, pretrained=False)
    return made.eval().cuda()


def measure(
    case: Case,
    particles: Iterable[int] = (1, 3, 8),
    diversities: Iterable[str] = DIVERSITIES,
    precision: Precision = "bf16",
    seconds: float = 1.0,
) -> Iterator[Figure]:
    """Forward only, the reference, then every wanted number of particles and diversity."""
    model = network(case)
    x = torch.randn(case.batch, 3, case.side, case.side, generator=torch.Generator().manual_seed(0)).cuda()
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(x[:1])
    once = float(counter.get_total_flops()) * case.batch

    def figure(variant: str, k: int, engine: str, how: str, passes: int, call: Callable[[], object]) -> Figure:
        return Figure(case, variant, k, engine, how, time_calls(call, seconds), passes, passes * k * once)

    yield figure("forward", 1, "eager", "fp32", 1, _predictor(model, x))
    yield figure("reference", 1, "loop", "fp32", 3, stepper(model, x, particles=1, engine="loop"))
    for k in particles:
        for diversity in diversities if k > 1 else ("none",):
            call = stepper(model, x, particles=k, diversity=diversity, engine="graph", precision=precision)
            yield figure(diversity, k, "graph", precision, 5 if diversity == "grad" else 3, call)
            del call


def stepper(model: nn.Module, x: Tensor, **arguments: object) -> Callable[[], object]:
    """A call that takes one adaptation step."""
    adapted = polytta.adapt(model, SELECT_ALL, lr=1e-6, **arguments)  # type: ignore[arg-type]
    return lambda: adapted(x)


def _predictor(model: nn.Module, x: Tensor) -> Callable[[], object]:
    def call() -> object:
        with torch.no_grad():
            return model(x)

    return call
