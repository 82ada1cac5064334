"""Settings as they are for one model: every part an object, every default decided that can be without a batch."""

from dataclasses import dataclass

from polytta.aggregate import Aggregate
from polytta.diversity import Diversifier
from polytta.guard import Guard
from polytta.methods import Method
from polytta.network.statistics import Statistics
from polytta.optim import Optimizer
from polytta.optim.rule import reference_lr
from polytta.settings.settings import Settings
from polytta.views import TRANSFORMS, Lenses, Views


@dataclass(frozen=True)
class Rates:
    """Learning rates, one per particle of all populations, and where they come from, in words.

    Attributes:
        values: learning rates, or paces.
        origin: in words.
        relative: whether they are paces (``polytta.optim.pace``).
    """

    values: tuple[float, ...]
    origin: str
    relative: bool = False


@dataclass(frozen=True)
class Config:
    """What an adapter does. It never changes; what a stream decides is in the adapter's state.

    Attributes:
        settings: all options with their parts as objects, which adapt an equal model equally.
        methods: what each particle learns by.
        diversity: how particles interact.
        optimizers: one per particle.
        views: versions of the batch particles learn from.
        lenses: how each particle looks at the images.
        aggregate: how K predictions become one.
        layers: names of the adapted norm layers.
        statistics: what BatchNorm layers use, for each particle.
        rates: the learning rates the user gave; None when the reference rule decides at the first batch.
        multipliers: factors on a common learning rate, one per particle.
        guard: what watches over them.
        templates: number of the text template of each particle; None where all answer by the mean of all.
        blends_small_batches: whether those that go by the statistics of a batch blend them where it is very small.
    """

    settings: Settings
    methods: tuple[Method, ...]
    diversity: Diversifier
    optimizers: tuple[Optimizer, ...]
    views: Views
    lenses: Lenses
    aggregate: Aggregate
    layers: tuple[str, ...]
    statistics: tuple[Statistics, ...]
    rates: Rates | None
    multipliers: tuple[float, ...]
    guard: Guard
    templates: tuple[int, ...] | None = None
    blends_small_batches: bool = False

    @property
    def particles(self) -> int:
        """K."""
        return len(self.methods)

    @property
    def method(self) -> Method:
        """The base method; the first of several."""
        return self.methods[0]

    def is_episodic(self, method: Method) -> bool:
        """Whether those who learn by it start every batch from the source model, and answer after learning from it."""
        return method.episodic or (self.settings.episodic and method.adapts)

    @property
    def episodic(self) -> bool:
        """The same of the one method that a population has if any of its methods is."""
        return self.is_episodic(self.method)

    @property
    def filters(self) -> tuple[str, ...]:
        """Names of what the methods select samples by."""
        return tuple(dict.fromkeys(name for method in self.methods for name in method.filters))

    def method_prefix(self, method: Method) -> str:
        """What the names of a method's tensors begin with, where there are several."""
        different = list(dict.fromkeys(_key(one) for one in self.methods))
        return "" if len(different) == 1 else f"{different.index(_key(method))}_{method.name}_"

    @property
    def never_learn(self) -> frozenset[int]:
        """Particles that only look, at a rate of 0; one that others interact with is not among them."""
        if self.rates is None or self.diversity.name != "none":
            return frozenset()
        rows = range(self.particles)
        silent = [all(rate == 0 for rate in self.rates.values[n :: self.particles]) for n in rows]
        return frozenset(n for n in rows if silent[n] or not self.methods[n].adapts)

    @property
    def anchors(self) -> tuple[int, ...]:
        """For each particle the one that looks as it does and changes nothing; itself where there is none.

        That is one that never learns, on stored statistics if there is such a one, else on the particle's own.
        """
        silent, lenses = self._silent_looks()
        twins = self.twins
        return tuple(silent.get((lenses[n], "source"), twins[n]) for n in range(self.particles))

    @property
    def twins(self) -> tuple[int, ...]:
        """For each particle the one that looks as it does, on the same statistics, and never learns; or itself."""
        silent, lenses = self._silent_looks()
        return tuple(silent.get((lenses[n], self.statistics[n]), n) for n in range(self.particles))

    def _silent_looks(self) -> tuple[dict[tuple[tuple[int, int], Statistics], int], list[tuple[int, int]]]:
        """Who looks and never learns; a way to look is a lens and a template."""
        texts = self.templates or (0,) * self.particles
        lenses = [(id(self.lenses.of_particle(n)), texts[n]) for n in range(self.particles)]
        silent: dict[tuple[tuple[int, int], Statistics], int] = {}
        for n in sorted(self.never_learn):
            silent.setdefault((lenses[n], self.statistics[n]), n)
        return silent, lenses

    def axes(self) -> list[dict[str, str]]:
        """For each particle {what particles differ in: what it has}, in words."""
        names = {id(transform): name for name, transform in TRANSFORMS.items()}
        lenses = [self.lenses.of_particle(number) for number in range(self.particles)]
        columns: dict[str, list[str]] = {
            "method": [method.name for method in self.methods],
            "lens": [names.get(id(lens)) or str(getattr(lens, "__name__", lens)) for lens in lenses],
            "statistics": list(self.statistics),
            "optimizer": [optimizer.name for optimizer in self.optimizers],
            "template": [f"template {n}" for n in self.templates or (0,) * self.particles],
        }
        if self.rates is not None:
            name = "pace" if self.rates.relative else "lr"
            columns[name] = [f"{name} {rate:g}" for rate in self.rates.values[: self.particles]]
        told = {name: values for name, values in columns.items() if len(set(values)) > 1}
        return [{name: values[number] for name, values in told.items()} for number in range(self.particles)]

    def squads(self, asleep: frozenset[int] = frozenset()) -> list[tuple[tuple[int, ...], Method, bool]]:
        """(numbers of particles, method, whether they learn), those together that share a pass."""
        silent = self.never_learn | asleep
        groups: dict[tuple[bool, object], list[int]] = {}
        for number, method in enumerate(self.methods):
            learns = method.adapts and number not in silent
            # All that only predict may share one pass, whatever they would learn by, unless it corrects answers.
            alike = not learns and type(method).answer is Method.answer
            groups.setdefault((learns, None if alike else _key(method)), []).append(number)
        return [(tuple(own), self.methods[own[0]], learns) for (learns, _), own in groups.items()]

    @property
    def populations(self) -> int:
        """G."""
        return self.settings.populations or 1

    @property
    def rows(self) -> int:
        """Particles of all populations, G·K."""
        return self.particles * self.populations

    @property
    def noise_owners(self) -> list[tuple[int, int]]:
        """(seed, number of the particle) that decide each row's random numbers."""
        seed = self.settings.seed
        seeds = (seed,) * self.populations if isinstance(seed, int) else tuple(seed)
        return [(one, 0 if self.settings.shared_noise else number) for one in seeds for number in range(self.particles)]

    def reference_rates(self, model_family: str, batch: int) -> Rates:
        """Learning rates by the reference rule, for a model of that family and a first batch of that size."""
        batch = self.settings.batch_size or batch
        bases = [reference_lr(model_family, batch, method.single_image_lr_factor) for method in self.methods]
        base = bases[0]
        each = zip(bases, self.optimizers, self.multipliers, strict=True)
        one = tuple(base * optimizer.relative_lr * factor for base, optimizer, factor in each)
        origin = f"reference rule for a {model_family} model at batch size {batch}: {base:g} for SGD"
        return Rates(one * self.populations, origin)


def _key(method: Method) -> object:
    """Equal for equal methods, which may hold tensors and so cannot be compared themselves."""
    return type(method), repr(method)
