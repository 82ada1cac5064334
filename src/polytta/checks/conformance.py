"""What every combination of method, diversifier, optimizers, views and aggregate must do, in every engine."""

import copy
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import polytta
from polytta.adapter import Adapted
from polytta.checks.networks import CLASSES, small_model, small_stream
from polytta.diversity import KL, Diversifier
from polytta.errors import PolyttaError, PolyttaWarning
from polytta.methods import SAR, DeYO, Method, Tent, resolve_method
from polytta.optim import is_one_optimizer
from polytta.particles import PLAIN_ENGINES

LR = 0.01
_PARTS = ("method", "diversity", "optimizer", "aggregate", "views", "lenses")


@dataclass(frozen=True)
class Case:
    """A setting to check: a model kind and arguments of ``polytta.adapt``."""

    model: str = "group"
    batch: int = 6
    steps: int = 5
    arguments: dict[str, Any] = field(default_factory=dict)

    def make(self, **changes: Any) -> Adapted:
        """A fresh adapter, in double precision so that engines can be told apart from rounding."""
        wanted = {"lr": LR, "exclude": None, **self.arguments, **changes}
        # Parts are checked as they are, at rates that no guard lets pass.
        return polytta.adapt(small_model(self.model), **{"guard": "off", **wanted})

    def stream(self) -> list[Tensor]:
        """The batches it is fed."""
        return small_stream(self.steps, self.batch)

    def run(self, adapted: Adapted) -> list[Tensor]:
        """Predictions over the stream."""
        return [adapted(x) for x in self.stream()]


def predictions_are_log_probabilities(case: Case) -> None:
    """(B, C), finite, normalized."""
    for log_probs in case.run(case.make()):
        assert log_probs.shape == (case.batch, CLASSES), f"forward returned {tuple(log_probs.shape)}"
        assert bool(log_probs.isfinite().all()), "forward returned non-finite values"
        assert torch.allclose(log_probs.exp().sum(dim=1), log_probs.new_ones(case.batch)), "rows do not sum to 1"


def forward_answers_what_predict_says(case: Case) -> None:
    """The answer is the one ``predict`` gives just before: that of the state before the update, or of an episode."""
    adapted = case.make()
    for x in case.stream():
        before = adapted.predict(x)
        assert torch.equal(adapted(x), before), "forward answers something else than predict did just before"


def predict_changes_nothing(case: Case) -> None:
    """Reading a prediction leaves no trace."""
    adapted = case.make()
    case.run(adapted)
    state = copy.deepcopy(adapted.state_dict())
    adapted.predict(case.stream()[0])
    adapted.particles_log_probs(case.stream()[0])
    for name, value in adapted.state_dict().items():
        assert torch.equal(value.nan_to_num(), state[name].nan_to_num()), f"predict changed {name!r}"


def equal_seeds_give_equal_predictions(case: Case) -> None:
    """Two runs are bit-equal."""
    for one, two in zip(case.run(case.make(seed=3)), case.run(case.make(seed=3)), strict=True):
        assert torch.equal(one, two), "two runs with the same seed differ"


def engines_agree(case: Case) -> None:
    """Every engine gives what the loop gives."""
    oracle = case.make(engine="loop")
    expected = case.run(oracle)
    for engine in PLAIN_ENGINES:
        adapted = case.make(engine=engine)
        for step, (got, wanted) in enumerate(zip(case.run(adapted), expected, strict=True)):
            difference = float((got - wanted).abs().max())
            assert difference <= 1e-9, f"engine {engine!r} is {difference:.1e} from the loop at step {step}"
        difference = float((adapted.theta - oracle.theta).abs().max())
        assert difference <= 1e-9, f"engine {engine!r}: parameters are {difference:.1e} from the loop's"
        assert adapted.totals.selected == oracle.totals.selected, f"engine {engine!r} selects other samples"
        assert adapted.last is not None
        assert oracle.last is not None
        apart = max(abs(one - other) for one, other in zip(adapted.last.loss, oracle.last.loss, strict=True))
        assert apart <= 1e-9, f"engine {engine!r} reports a loss {apart:.1e} from the loop's"


def the_source_model_is_untouched(case: Case) -> None:
    """Neither its weights nor its buffers nor its mode change."""
    model = small_model(case.model)
    before = copy.deepcopy(model.state_dict())
    case.run(polytta.adapt(model, **{"lr": LR, "exclude": None, "guard": "off", **case.arguments}))
    assert not model.training, "the source model's mode changed"
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name]), f"the source model's {name!r} changed"


def equal_particles_stay_equal(case: Case) -> None:
    """With equal learning rates, optimizers and random numbers nothing can tell particles apart.

    Bit for bit in the loop; folded rows may be summed in another order, so there up to rounding.
    """
    optimizer = case.arguments.get("optimizer", "sgd")
    single = optimizer if is_one_optimizer(optimizer) else optimizer[0]
    for engine in PLAIN_ENGINES:
        adapted = case.make(lr_spread=0.0, shared_noise=True, optimizer=single, engine=engine, lenses="none")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PolyttaWarning)
            case.run(adapted)
        apart = float((adapted.theta - adapted.theta[:1]).abs().max())
        assert apart <= (0.0 if engine == "loop" else 1e-9), f"equal particles drifted {apart:.1e} apart in {engine!r}"


def particles_spread(case: Case) -> None:
    """With the default symmetry breaking, particles that moved are different."""
    adapted = case.make()
    case.run(adapted)
    if adapted.config.particles > 1 and _moves(adapted):
        assert min(adapted.totals.stepped) > 0, "the check's stream made some particle never move; nothing was tested"
        assert adapted.last is not None
        assert adapted.last.pairwise_distance > 0, "particles are identical after several updates"


def reset_returns_to_source(case: Case) -> None:
    """After a reset the stream gives the same answers as the first time."""
    adapted = case.make()
    first = case.run(adapted)
    adapted.reset()
    for one, two in zip(first, case.run(adapted), strict=True):
        assert torch.equal(one, two), "reset did not return to the start"


def a_saved_stream_goes_on(case: Case) -> None:
    """Saving in mid-stream, loading and going on is bit-equal to never stopping."""
    stream, whole = case.stream(), case.make()
    expected = [whole(x) for x in stream]
    half = len(stream) // 2
    part = case.make()
    for x in stream[:half]:
        part(x)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.safetensors"
        part.save(path)
        changes = {key: case.arguments[key] for key in _PARTS if key in case.arguments}
        back = polytta.load(path, small_model(case.model), **changes)
    for x, wanted in zip(stream[half:], expected[half:], strict=True):
        assert torch.equal(back(x), wanted), "a resumed stream differs from an uninterrupted one"
    assert torch.equal(back.theta, whole.theta), "a resumed stream ends with other parameters"


def copies_are_independent(case: Case) -> None:
    """Adapting a deep copy leaves the original alone."""
    adapted = case.make()
    adapted(case.stream()[0])
    before = adapted.theta.clone()
    twin = copy.deepcopy(adapted)
    for x in case.stream()[1:]:
        twin(x)
    assert torch.equal(adapted.theta, before), "adapting a copy changed the original"


def broken_images_do_no_harm(case: Case) -> None:
    """A NaN image gets a finite answer, and everything else goes on as if it had not been there."""
    clean, soiled = case.make(), case.make()
    for x in case.stream():
        broken = torch.cat([x, torch.full_like(x[:1], torch.nan)])
        expected = clean(x)
        got = soiled(broken)
        assert bool(got.isfinite().all()), "a NaN image made a non-finite prediction"
        assert torch.equal(got[:-1], expected), "a NaN image changed the predictions of its neighbours"
    assert torch.equal(clean.theta, soiled.theta), "a NaN image took part in adaptation"


def state_does_not_grow(case: Case) -> None:
    """The state has the same tensors of the same size after every step."""
    adapted = case.make()
    stream = case.stream()
    adapted(stream[0])
    sizes = {name: value.shape for name, value in adapted.state_dict().items()}
    for x in stream[1:]:
        adapted(x)
        assert {name: value.shape for name, value in adapted.state_dict().items()} == sizes, "the state grew"


def particles_without_interaction_are_alone(case: Case) -> None:
    """Without interaction, particle i is the base method run alone at its learning rate, its memory included."""
    population = case.make(diversity="none", lr_spread=0.5, shared_noise=True, lenses="none")
    case.run(population)
    for k, rate in enumerate(population.learning_rates.tolist()):
        own = population.config.optimizers[k]
        alone = case.make(diversity="none", particles=1, lr=[rate], optimizer=own, lenses="none")
        case.run(alone)
        difference = float((alone.theta[0] - population.theta[k]).abs().max())
        assert difference <= 1e-9, f"particle {k} is {difference:.1e} from the same method run alone"
        for name, value in population.state_dict().items():
            if not name.startswith("method_"):
                continue
            assert value.shape[:1] == (population.config.rows,), f"the method's {name[7:]!r} has no row per particle"
            apart = float((value[k] - alone.state_dict()[name][0]).nan_to_num().abs().max())
            assert apart <= 1e-9, (
                f"the method's {name[7:]!r} mixes particles: it is {apart:.1e} from the same method's alone"
            )


def populations_do_not_meet(case: Case) -> None:
    """Two populations in one batch are what each is by itself."""
    streams = [case.stream(), small_stream(case.steps, case.batch, seed=1)]
    together = case.make(populations=2, seed=[3, 4])
    for batches in zip(*streams, strict=True):
        together(torch.stack(batches))
    size = together.config.particles
    for number, (stream, seed) in enumerate(zip(streams, (3, 4), strict=True)):
        alone = case.make(seed=seed)
        for x in stream:
            alone(x)
        own = together.theta[number * size : (number + 1) * size]
        difference = float((own - alone.theta).abs().max())
        assert difference <= 1e-9, (
            f"population {number} is {difference:.1e} from the same population run by itself: rows of several are mixed"
        )


def diversity_reaches_the_method(case: Case) -> None:
    """What a method learns is what diversifiers get to see: a strong one must change where particles go."""
    if case.arguments.get("particles") == 1 or "diversity" in case.arguments:
        return
    plain, pushed = case.make(), case.make(diversity=KL(weight=100.0))
    if not _moves(plain):
        return
    for adapted in (plain, pushed):
        case.run(adapted)
    assert not torch.equal(plain.theta, pushed.theta), "diversity has no effect: the method does not hand over its loss"


Check = Callable[[Case], None]

CHECKS: tuple[Check, ...] = (
    predictions_are_log_probabilities,
    forward_answers_what_predict_says,
    predict_changes_nothing,
    equal_seeds_give_equal_predictions,
    engines_agree,
    the_source_model_is_untouched,
    equal_particles_stay_equal,
    particles_spread,
    reset_returns_to_source,
    a_saved_stream_goes_on,
    copies_are_independent,
    broken_images_do_no_harm,
    state_does_not_grow,
    particles_without_interaction_are_alone,
    populations_do_not_meet,
    diversity_reaches_the_method,
)


def _moves(adapted: Adapted) -> bool:
    return adapted.config.method.adapts and adapted.config.method.descends


def _run(check: Check, case: Case, argument: str) -> None:
    """The check, whose failure says which part does what it must not."""
    try:
        check(case)
    except PolyttaError:
        raise
    except Exception as error:
        said = str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
        says = " ".join(said.split())
        wanted = (check.__doc__ or check.__name__).strip().partition("\n")[0].rstrip(".")
        particles = case.arguments["particles"]
        raise AssertionError(
            f"{argument}: got {case.arguments[argument]!r}, which fails {check.__name__} with {particles} particle"
            f"{'s' * (particles != 1)} in a {case.model!r} model ({says}); allowed is one that passes it ({wanted})."
        ) from error


def check_method(method: str | Method, **arguments: Any) -> None:
    """Runs every check on a method, with 1 and 3 particles, over models of every kind that it can adapt."""
    _check_over_methods(method, "method", arguments)


def _check_over_methods(method: str | Method, argument: str, arguments: dict[str, Any]) -> None:
    for model in ("clip",) if resolve_method(method).needs_text else ("batch", "group", "layer"):
        for particles in (1, 3):
            case = Case(model, arguments={"method": method, "particles": particles, **arguments})
            with warnings.catch_warnings():
                # Batches are small on purpose here.
                warnings.filterwarnings("ignore", "a batch of fewer than", PolyttaWarning)
                for check in CHECKS:
                    _run(check, case, argument)


def check_diversifier(diversity: str | Diversifier, **arguments: Any) -> None:
    """Runs every check on a diversifier, over two base methods, and those on engines over one that looks twice."""
    # SAR's second pass holds just what the particle kept, and what the diversifier says it compares it with.
    apart = {"method": SAR(entropy_threshold=0.5), "lr": 0.2, "lr_spread": 0.9, "particles": 3, "diversity": diversity}
    for model in ("group", "layer"):
        _run(engines_agree, Case(model, steps=8, arguments={**apart, **arguments}), "diversity")
    for method in (Tent(), DeYO(entropy_threshold=0.9, plpd_threshold=-0.2)):
        _check_over_methods(method, "diversity", {"diversity": diversity, **arguments})


def check_part(argument: str, part: object, **arguments: Any) -> None:
    """Runs every check on another part of ``polytta.adapt``: an optimizer, an aggregate, views or lenses."""
    for model in ("group", "layer"):
        for particles in (1, 3):
            case = Case(model, arguments={"method": Tent(), "particles": particles, argument: part, **arguments})
            for check in CHECKS:
                _run(check, case, argument)
