"""The measurement: every variant of a model and batch size in one process, one after the other.

The yardstick is one model adapted by DeYO the way the public code does it: eager, float32 (torch's own settings), one
particle, images picked by indexing (``engine="loop"``). Every sample is selected, the most expensive case. Weights and
images are random: a step costs the same whatever they are.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode
from tqdm import tqdm

import polytta
from polytta.errors import InputError
from polytta.lab.perf.clock import matmul_rate, time_calls
from polytta.methods import DeYO
from polytta.methods.base import entropy
from polytta.models import create
from polytta.models._torchvision_cpu import import_zoo
from polytta.system.files import write_whole

SELECT_ALL = DeYO(entropy_threshold=2.0, plpd_threshold=-1.0)
VIT, RESNET_GN, RESNET_BN = "timm/vit_base_patch16_224", "timm/resnet50_gn", "timm/resnet50"
BUNDLED = "bundled/cifar10_resnet_gn"
LABELS = {VIT: "ViT-B/16", RESNET_GN: "ResNet-50-GN", RESNET_BN: "ResNet-50-BN", BUNDLED: "bundled ResNet-GN"}
GOALS = {
    (VIT, 1): 0.30,
    (VIT, 64): 0.55,
    (RESNET_GN, 1): 0.40,
    (RESNET_GN, 64): 1.0,
    (RESNET_BN, 64): 1.0,
    (BUNDLED, 1): 0.15,
}
"""Largest wanted time of three particles with Grad over one-model DeYO."""
GROWTH_GOAL = 2.0
"""Largest wanted time of the most particles over one, on the ViT at batch 1."""
POPULATIONS = (5, 15, 45)
"""Populations in one batch whose cost is shown."""
POPULATIONS_GOAL = (15, 1.5)
"""A number of them, and their largest wanted time over one."""
COUNTS = (1, 2, 3, 5, 8)
"""Particles whose growth is shown."""
AT_ONCE = 3
"""Particles in one pass where many are to fit into little memory."""
BATCHES = (1, 4, 16, 64)
"""Batch sizes whose growth is shown."""
PASSES = {"forward": 1, "grad": 5, "second derivative": 4}
"""Forward passes that a step's arithmetic amounts to; 3 otherwise (forward, shuffled forward, backward)."""


@dataclass(frozen=True)
class Figure:
    """One measured variant.

    Attributes:
        model: its id.
        batch: images per step (of each population).
        variant: "forward", "reference", "second derivative", or a diversity.
        particles: K.
        how: engine and precision.
        populations: G.
        milliseconds: of a step, once per repeat.
        memory: MiB.
        flops: floating-point operations of a step.
    """

    model: str
    batch: int
    variant: str
    particles: int
    how: str
    populations: int
    milliseconds: list[float]
    memory: float
    flops: float

    @property
    def middle(self) -> float:
        """Median over the repeats, in milliseconds."""
        return sorted(self.milliseconds)[len(self.milliseconds) // 2]


@dataclass(frozen=True)
class Results:
    """Everything measured in one run."""

    device: str
    torch: str
    matmul: float
    figures: list[Figure]

    def save(self, path: Path) -> None:
        """Writes JSON."""
        write_whole(path, (json.dumps(asdict(self), indent=1) + "\n").encode())

    @classmethod
    def load(cls, path: Path) -> "Results":
        """Reads what ``save`` wrote."""
        try:
            stored = json.loads(path.read_text())
            return cls(**{**stored, "figures": [Figure(**figure) for figure in stored["figures"]]})
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise InputError(f"--show: got {path}; allowed is a performance.json of polytta perf.") from error


def run(*, quick: bool = False, so_far: Callable[[Results], None] = lambda results: None) -> Results:
    """Measures all of it.

    Args:
        quick: only the six goals, once.
        so_far: is given what there is after every table; the whole takes minutes.
    """
    if not torch.cuda.is_available():
        raise InputError("perf: no CUDA device here; allowed is a machine with one.")
    repeats = 1 if quick else 3
    figures: list[Figure] = []
    results = Results(torch.cuda.get_device_name(), torch.__version__, matmul_rate(), figures)
    with tqdm(total=len(GOALS) + (0 if quick else 3), unit="table") as bar:
        for model, batch in GOALS:
            bar.set_description(f"{LABELS[model]}, batch {batch}")
            figures += _Bench(model, batch, repeats).table(quick=quick)
            so_far(results)
            bar.update()
        if not quick:
            for make in (_growth_in_particles, _growth_in_batch, _streams):
                bar.set_description(make.__name__.strip("_").replace("_", " "))
                figures += make(repeats)
                so_far(results)
                bar.update()
    return results


class _Bench:
    """One model on the GPU at one batch size."""

    def __init__(self, model: str, batch: int, repeats: int) -> None:
        self.id, self.batch, self.repeats = model, batch, repeats
        self.network = _network(model)
        self.side = 32 if model == BUNDLED else 224
        self.x = torch.randn(batch, 3, self.side, self.side, generator=torch.Generator().manual_seed(0)).cuda()
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            self.network(self.x[:1])
        self.flops = float(counter.get_total_flops()) * batch

    def table(self, *, quick: bool) -> list[Figure]:
        """Forward only, the reference, and particles with every diversity."""
        figures = [self.forward(), self.step("reference", 1, "loop", "fp32")]
        if not quick:
            figures += [self.second_derivative(), self.step("none", 1)]
        for particles in (3,) if quick else (3, 8):
            for diversity in ("grad",) if quick else ("none", "kl", "svgd", "grad"):
                figures.append(self.step(diversity, particles))
        if not quick and self.batch > 1:
            figures.append(self.step("grad", COUNTS[-1], at_once=AT_ONCE))
        return figures

    def step(
        self,
        variant: str,
        particles: int,
        engine: str = "graph",
        precision: str = "bf16",
        populations: int = 1,
        at_once: int | None = None,
    ) -> Figure:
        """An adaptation step."""
        adapted = polytta.adapt(
            self.network,
            SELECT_ALL,
            particles=particles,
            diversity="none" if variant == "reference" else variant,
            lr=1e-6,
            engine=engine,
            precision=precision,  # type: ignore[arg-type]
            populations=populations if populations > 1 else None,
            particles_at_once=at_once,
        )
        x = self.x.expand(populations, *self.x.shape).contiguous() if populations > 1 else self.x
        how = f"{engine} {precision}" + ("" if at_once is None else f", {at_once} at once")
        return self._figure(variant, particles, how, lambda: adapted(x), populations)

    def forward(self) -> Figure:
        """One prediction of the plain model."""

        def call() -> object:
            with torch.no_grad():
                return self.network(self.x)

        return self._figure("forward", 1, "eager fp32", call)

    def second_derivative(self) -> Figure:
        """One model that differentiates its input gradient, as the paper's Grad does; for its memory."""
        norms = [p for m in self.network.modules() if polytta.network.norms.is_norm(m) for p in m.parameters()]
        for parameter in self.network.parameters():
            parameter.requires_grad_(False)

        def call() -> object:
            leaves = [p.requires_grad_() for p in norms]
            x = self.x.clone().requires_grad_()
            with torch.nn.attention.sdpa_kernel([torch.nn.attention.SDPBackend.MATH]):
                loss = entropy(self.network(x)).sum()
            slope = torch.autograd.grad(loss, x, create_graph=True)[0]
            return torch.autograd.grad(slope.square().sum(), leaves, allow_unused=True)

        return self._figure("second derivative", 1, "eager fp32", call)

    def _figure(
        self, variant: str, particles: int, how: str, call: Callable[[], object], populations: int = 1
    ) -> Figure:
        judged = variant == "reference" or (variant == "grad" and particles == 3)
        timings = [time_calls(call) for _ in range(self.repeats if judged else 1)]
        flops = PASSES.get(variant, 3) * particles * populations * self.flops
        times = [round(timing.milliseconds, 4) for timing in timings]
        memory = round(max(timing.memory for timing in timings))
        return Figure(self.id, self.batch, variant, particles, how, populations, times, memory, flops)


def _growth_in_particles(repeats: int) -> list[Figure]:
    return [
        bench.step(variant, k)
        for bench in (_Bench(VIT, 1, repeats), _Bench(BUNDLED, 1, repeats))
        for variant in ("none", "grad")
        for k in COUNTS
        if k > 1 or variant == "none"
    ]


def _growth_in_batch(repeats: int) -> list[Figure]:
    return [_Bench(VIT, batch, repeats).step("grad", 3) for batch in BATCHES]


def _streams(repeats: int) -> list[Figure]:
    bench = _Bench(BUNDLED, 1, repeats)
    eager = bench.step("grad", 3, "loop", "fp32")
    return [eager, bench.step("grad", 3), *(bench.step("grad", 3, populations=count) for count in POPULATIONS)]


def _network(model: str) -> nn.Module:
    name = model.removeprefix("timm/")
    if name == model:
        return create(model).module.cuda()
    torch.manual_seed(0)
    made: nn.Module = import_zoo("timm").create_model(name, pretrained=False)
    return made.eval().cuda()
