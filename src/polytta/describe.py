"""An adapter in words."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from polytta.network.norms import is_batch_norm
from polytta.network.targets import norm_layers

if TYPE_CHECKING:
    from polytta.adapter import Adapted


def one_line(adapted: "Adapted") -> str:
    """``Adapted(SmallResNet, 10 particles, deyo, 12 norm layers, 32 steps)``."""
    config = adapted.config
    populations = f"{config.populations} populations of " if config.settings.populations is not None else ""
    particles = _counted(config.particles, "particle")
    methods = " and ".join(dict.fromkeys(method.name for method in config.methods))
    network = type(adapted.source_network).__name__
    layers, steps = _counted(len(config.layers), "norm layer"), _counted(adapted.totals.steps, "step")
    return f"Adapted({network}, {populations}{particles}, {methods}, {layers}, {steps})"


def summary(adapted: "Adapted") -> str:
    """What adapts, how, and what it costs."""
    lines = {
        "model": _model(adapted),
        "layers": _layers(adapted),
        "particles": _particles(adapted),
        "learning": _learning(adapted),
        "rates": _rates(adapted),
        "cost": _cost(adapted),
        "stream": _stream(adapted),
    }
    return "\n".join(f"{name:<11}{text}" for name, text in lines.items())


def _model(adapted: "Adapted") -> str:
    network = adapted.source_network
    parameters = list(network.parameters())
    count = sum(one.numel() for one in parameters)
    return f"{type(network).__name__}, {count:,} parameters, {_dtype(adapted)} on {parameters[0].device}"


def _layers(adapted: "Adapted") -> str:
    network, config = adapted.source_network, adapted.config
    every = norm_layers(network)
    kinds = dict.fromkeys(type(network.get_submodule(name)).__name__ for name in config.layers)
    text = f"{len(config.layers)} of {len(every)} norm layers adapt ({', '.join(kinds)}), {config.layers[0]} to "
    text += f"{config.layers[-1]}; {adapted.source.numel():,} parameters each"
    if any(is_batch_norm(module) for module in network.modules()):
        text += f"; BatchNorm statistics: {', '.join(dict.fromkeys(adapted._session.statistics))}"
    return text


def _particles(adapted: "Adapted") -> str:
    config = adapted.config
    text = str(config.particles)
    if config.settings.populations is not None:
        text = f"{config.populations} populations of {text}"
    differ = _values(config.axes())
    if differ:
        text += ": " + " x ".join(f"{len(found)} {axis} ({', '.join(found)})" for axis, found in differ.items())
    return f"{text}; answers by {config.aggregate.name}"


def _learning(adapted: "Adapted") -> str:
    config = adapted.config
    methods = ", ".join(dict.fromkeys(method.name for method in config.methods))
    optimizers = ", ".join(dict.fromkeys(optimizer.name for optimizer in config.optimizers))
    text = f"{methods}; {optimizers}; diversity {config.diversity.name}; "
    text += f"{_counted(config.settings.steps, 'step')} per batch"
    return f"{text}, each from the source model" if config.episodic else text


def _rates(adapted: "Adapted") -> str:
    rates = [rate for rate in adapted.learning_rates.tolist() if rate == rate]
    if not rates:
        return f"not known yet ({adapted.lr_origin})"
    span = f"{min(rates):.3g}" if min(rates) == max(rates) else f"{min(rates):.3g} to {max(rates):.3g}"
    return f"{span} ({adapted.lr_origin})"


def _cost(adapted: "Adapted") -> str:
    totals, config = adapted.totals, adapted.config
    tensors = adapted._session.state.named().values()
    memory = f"{sum(one.numel() * one.element_size() for one in tensors) / 2**20:.1f} MiB of state"
    images = totals.samples * config.populations
    if not images:
        return f"{memory}; passes per image are known after the first batch"
    forward, backward = sum(totals.forward_by_particle) / images, sum(totals.backward_by_particle) / images
    return f"{forward:.1f} forward and {backward:.1f} backward passes per image; {memory}"


def _stream(adapted: "Adapted") -> str:
    totals = adapted.totals
    if not totals.steps:
        return "nothing seen yet"
    text = f"{_counted(totals.steps, 'step')}, {_counted(totals.samples, 'image')}, {totals.rejected} rejected"
    if adapted.config.populations == 1 and adapted.config.particles > 1:
        most = max(adapted.hypotheses, key=lambda one: one.weight)
        text += f"; trusted most: {most}"
    return text


def _values(axes: Sequence[Mapping[str, str]]) -> dict[str, list[str]]:
    """{what particles differ in: all values of it}."""
    names = axes[0] if axes else {}
    return {name: list(dict.fromkeys(one[name] for one in axes)) for name in names}


def _dtype(adapted: "Adapted") -> str:
    return str(next(adapted.source_network.parameters()).dtype).removeprefix("torch.")


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
