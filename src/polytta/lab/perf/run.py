"""The measurement: every variant of a model and batch size in one process, one after the other.

The yardstick is one model adapted by DeYO the way the public code does it (``plain.py``): eager, float32 (torch's own
settings), nothing of ours. Every sample is selected, the most expensive case. Weights and images are random: a step
costs the same whatever they are. Three particles with Grad are measured in the default precision and in the fastest.
"""

import copy
from collections.abc import Callable

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode
from tqdm import tqdm

import polytta
from polytta.errors import InputError
from polytta.lab.perf.clock import matmul_rate, time_calls
from polytta.lab.perf.goals import (
    BATCHES,
    BUNDLED,
    GOALS,
    LABELS,
    PARTICLES,
    PARTICLES_AT_ONCE,
    PLAIN,
    POPULATIONS,
    VIT,
)
from polytta.lab.perf.measurements import Measurement, Measurements
from polytta.lab.perf.plain import PlainDeYO
from polytta.methods import DeYO
from polytta.models import create
from polytta.models._torchvision_cpu import import_zoo
from polytta.network.norms import is_norm
from polytta.particles.precision import Precision
from polytta.roles.measures import entropy

DEFAULT_PRECISION: Precision = "fp32"
ON_A_CPU = {(BUNDLED, 1): GOALS[BUNDLED, 1], (BUNDLED, 4): GOALS[BUNDLED, 1]}
"""Small enough to see on any machine that all of it runs; how fast it is there says nothing of a GPU."""
LR = 1e-6
SELECT_ALL = DeYO(entropy_threshold=2.0, plpd_threshold=-1.0)
PASSES = {"forward": 1, "grad": 5, "second derivative": 4}
"""Forward passes that a step's arithmetic amounts to; 3 otherwise (forward, shuffled forward, backward)."""


def measure_all(
    *,
    quick: bool = False,
    goals_only: bool = False,
    after_table: Callable[[Measurements], None] = lambda measurements: None,
) -> Measurements:
    """Measures all of it.

    Args:
        quick: only the six goals, once; without a CUDA device two tiny ones.
        goals_only: only the six goals, as often as in a whole run.
        after_table: is given what there is after every table; the whole takes minutes.
    """
    on_gpu = torch.cuda.is_available()
    if not on_gpu and not quick:
        raise InputError("perf: got a machine without a CUDA device; allowed is one with it, or --quick.")
    repeats = 1 if quick else 3
    few = quick or goals_only
    measured: list[Measurement] = []
    device = torch.cuda.get_device_name() if on_gpu else "CPU"
    measurements = Measurements(device, torch.__version__, matmul_rate(), measured)
    goals = GOALS if on_gpu else ON_A_CPU
    with tqdm(total=len(goals) + (0 if few else 3), unit="table") as bar:
        for model, batch in goals:
            bar.set_description(f"{LABELS[model]}, batch {batch}")
            measured += _Bench(model, batch, repeats).table(few=few)
            after_table(measurements)
            bar.update()
        if not few:
            for measure in (_growth_in_particles, _growth_in_batch, _streams):
                bar.set_description(measure.__name__.strip("_").replace("_", " "))
                measured += measure(repeats)
                after_table(measurements)
                bar.update()
    return measurements


def _device() -> str:
    """Asked for when it is wanted: importing must leave the GPU alone."""
    return "cuda" if torch.cuda.is_available() else "cpu"


class _Bench:
    """One model at one batch size."""

    def __init__(self, model: str, batch: int, repeats: int) -> None:
        self.model, self.batch, self.repeats = model, batch, repeats
        self.device = _device()
        self.engine = "graph" if self.device == "cuda" else "folded"
        self.best: Precision = "bf16" if self.device == "cuda" else DEFAULT_PRECISION
        self.network = _network(model).to(self.device)
        side = 32 if model == BUNDLED else 224
        self.x = torch.randn(batch, 3, side, side, generator=torch.Generator().manual_seed(0)).to(self.device)
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            self.network(self.x[:1])
        self.flops = float(counter.get_total_flops()) * batch

    def table(self, *, few: bool) -> list[Measurement]:
        """Forward only, the reference, and particles with every diversity."""
        measured = [self.forward(), self.reference(), self.step("grad", 3, precision=DEFAULT_PRECISION)]
        if not few:
            measured += [self.second_derivative(), self.step("none", 1)]
        for particles in (3,) if few else (3, 8):
            for diversity in ("grad",) if few else ("none", "kl", "svgd", "grad"):
                if self.best != DEFAULT_PRECISION or (diversity, particles) != ("grad", 3):
                    measured.append(self.step(diversity, particles))
        if not few and self.batch > 1:
            measured.append(self.step("grad", PARTICLES[-1], particles_at_once=PARTICLES_AT_ONCE))
        return measured

    def step(
        self,
        variant: str,
        particles: int,
        engine: str | None = None,
        precision: Precision | None = None,
        populations: int = 1,
        particles_at_once: int | None = None,
    ) -> Measurement:
        """An adaptation step, on the fastest engine and in the fastest precision unless told otherwise."""
        engine, precision = engine or self.engine, precision or self.best
        adapted = polytta.adapt(
            self.network,
            SELECT_ALL,
            particles=particles,
            diversity=variant,
            lr=LR,
            statistics="batch",
            engine=engine,
            precision=precision,
            populations=populations if populations > 1 else None,
            particles_at_once=particles_at_once,
        )
        x = self.x.expand(populations, *self.x.shape).contiguous() if populations > 1 else self.x
        return self._measured(lambda: adapted(x), variant, particles, engine, precision, populations, particles_at_once)

    def reference(self) -> Measurement:
        """A step of the rival, on a copy, since it changes its model."""
        plain = PlainDeYO(copy.deepcopy(self.network), LR, SELECT_ALL.entropy_threshold, SELECT_ALL.plpd_threshold)
        return self._measured(lambda: plain(self.x), "reference", engine=PLAIN)

    def forward(self) -> Measurement:
        """One prediction of the plain model."""

        def call() -> object:
            with torch.no_grad():
                return self.network(self.x)

        return self._measured(call, "forward")

    def second_derivative(self) -> Measurement:
        """One model that differentiates its input gradient, as the paper's Grad does; for its memory."""
        norms = [p for module in self.network.modules() if is_norm(module) for p in module.parameters()]
        for parameter in self.network.parameters():
            parameter.requires_grad_(False)

        def call() -> object:
            leaves = [p.requires_grad_() for p in norms]
            x = self.x.clone().requires_grad_()
            with torch.nn.attention.sdpa_kernel([torch.nn.attention.SDPBackend.MATH]):
                loss = entropy(self.network(x)).sum()
            slope = torch.autograd.grad(loss, x, create_graph=True)[0]
            return torch.autograd.grad(slope.square().sum(), leaves, allow_unused=True)

        return self._measured(call, "second derivative")

    def _measured(
        self,
        call: Callable[[], object],
        variant: str,
        particles: int = 1,
        engine: str = "eager",
        precision: str = "fp32",
        populations: int = 1,
        particles_at_once: int | None = None,
    ) -> Measurement:
        judged = variant == "reference" or (variant == "grad" and particles == 3)
        timings = [time_calls(call) for _ in range(self.repeats if judged else 1)]
        return Measurement(
            model=self.model,
            batch=self.batch,
            variant=variant,
            particles=particles,
            engine=engine,
            precision=precision,
            particles_at_once=particles_at_once,
            populations=populations,
            milliseconds=[round(timing.milliseconds, 4) for timing in timings],
            memory=round(max(timing.memory for timing in timings)),
            flops=PASSES.get(variant, 3) * particles * populations * self.flops,
        )


def _growth_in_particles(repeats: int) -> list[Measurement]:
    return [
        bench.step(variant, k)
        for bench in (_Bench(VIT, 1, repeats), _Bench(BUNDLED, 1, repeats))
        for variant in ("none", "grad")
        for k in PARTICLES
        if k > 1 or variant == "none"
    ]


def _growth_in_batch(repeats: int) -> list[Measurement]:
    return [_Bench(VIT, batch, repeats).step("grad", 3) for batch in BATCHES]


def _streams(repeats: int) -> list[Measurement]:
    bench = _Bench(BUNDLED, 1, repeats)
    eager = bench.step("grad", 3, "loop", "fp32")
    return [eager, bench.step("grad", 3), *(bench.step("grad", 3, populations=count) for count in POPULATIONS)]


def _network(model: str) -> nn.Module:
    name = model.removeprefix("timm/")
    if name == model:
        return create(model).module
    torch.manual_seed(0)
    network: nn.Module = import_zoo("timm").create_model(name, pretrained=False)
    return network.eval()
