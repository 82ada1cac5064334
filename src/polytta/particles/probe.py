"""Looks at one real pass through the network before any particle exists.

Folding needs to know, for each norm layer, which dimension carries the batch: transformers that work token-first put it
second, windowed attention multiplies it. Two small batches of different size, sharing two of their images, tell: the
batch dimension is the one that grew, and the rows of the shared images must be equal in both. A layer where that fails
mixes or permutes samples, and is refused.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from polytta.errors import ModelError
from polytta.network.norms import NormRecipe, is_batch_norm, is_norm, recognise
from polytta.particles.outputs import check_output, model_errors_as_input_errors, notice_probabilities
from polytta.particles.precision import plain_attention


@dataclass(frozen=True)
class NormSite:
    """A norm layer as it is really used: what it computes and where its batch is."""

    recipe: NormRecipe
    batch_dim: int


@dataclass(frozen=True)
class Findings:
    """What the probe learnt.

    Attributes:
        sites: the norm layers.
        num_classes: C.
    """

    sites: dict[str, NormSite]
    num_classes: int

    def family(self, layers: Sequence[str]) -> str:
        """Of a network: "transformer" when most of these layers normalize token features, else "convolutional"."""
        recipes = [self.sites[layer].recipe for layer in layers]
        token_norms = sum(recipe.kind in ("layer", "rms") and not recipe.channel_first for recipe in recipes)
        return "transformer" if 2 * token_norms > len(recipes) else "convolutional"


def probe(
    network: nn.Module, sample: Tensor, adapted: tuple[str, ...], *, everything: bool = False, to_replace: bool = True
) -> Findings:
    """Runs the source network on batches of 2 and 3 and describes its norm layers.

    Args:
        network: the source network in evaluation mode.
        sample: one image, (1, ...).
        adapted: the layers to adapt, which must be called and understood, as must all BatchNorm layers.
        everything: whether to describe the other norm layers too, as far as they are understood.
        to_replace: whether layers will be replaced by what they are understood to be, and must be that exactly.
    """
    norms = tuple(name for name, module in network.named_modules() if is_norm(module))
    batch_norms = tuple(name for name in norms if is_batch_norm(network.get_submodule(name)))
    needed = (*adapted, *batch_norms)
    layers = tuple(dict.fromkeys((*needed, *(norms if everything else ()))))
    three = probing_batch(sample)
    two = three[[0, 2]]
    calls_three, output = _record(network, three, layers)
    notice_probabilities(output)
    calls_two, _ = _record(network, two, layers)
    mixing = any(is_batch_norm(m) and getattr(m, "running_mean", None) is None for m in network.modules())
    sites: dict[str, NormSite] = {}
    for name in layers:
        if not calls_three[name] and name in adapted:
            raise ModelError(
                f"model: got norm layer {name!r}, which forward never calls; allowed with exclude={name!r}."
            )
        try:
            found = [
                _site(name, network.get_submodule(name), big, small, check_rows=not mixing, to_replace=to_replace)
                for big, small in zip(calls_three[name], calls_two[name], strict=True)
            ]
        except ModelError:
            if name in needed:
                raise
            continue
        usable = [site for site in found if site is not None]
        if len(usable) < len(found) or len({s.batch_dim for s in usable}) > 1:
            if name not in needed:
                continue
            raise ModelError(
                f"model: got norm layer {name!r} applied to a tensor without one batch dimension of its own; "
                f"allowed with exclude={name!r}."
            )
        if usable:
            sites[name] = usable[0]
    if to_replace:
        _require_own_affine(network, two, adapted)
    return Findings(sites, output.shape[1])


def probing_batch(sample: Tensor) -> Tensor:
    """Three images: a real one (1, ...), and two of noise."""
    noise = torch.randn((2, *sample.shape[1:]), generator=torch.Generator().manual_seed(0), device="cpu").to(sample)
    return torch.cat([sample, noise])


@torch.no_grad()
def _record(network: nn.Module, x: Tensor, layers: tuple[str, ...]) -> tuple[dict[str, list[Tensor]], Tensor]:
    """Inputs of every call of every named layer, and the logits."""
    calls: dict[str, list[Tensor]] = {name: [] for name in layers}

    def remember(name: str) -> object:
        def hook(_module: nn.Module, args: tuple[object, ...], named: dict[str, object]) -> None:
            if named or len(args) != 1 or not isinstance(args[0], Tensor):
                raise ModelError(
                    f"model: got norm layer {name!r} called with {len(args)} positional and {len(named)} named "
                    f"arguments; allowed is one tensor, or exclude={name!r}."
                )
            calls[name].append(args[0])

        return network.get_submodule(name).register_forward_pre_hook(hook, with_kwargs=True)

    handles = [remember(name) for name in layers]
    try:
        with plain_attention(), model_errors_as_input_errors(x):
            output = check_output(network(x), x.shape[0])
    finally:
        for handle in handles:
            handle.remove()  # type: ignore[attr-defined]
    return calls, output


def _require_own_affine(network: nn.Module, x: Tensor, adapted: Sequence[str]) -> None:
    """Refuses scales and shifts that forward uses outside of their layer as well, where nobody would put a particle's.

    While a layer is called it has copies; whatever then has a slope by the originals has used them elsewhere.
    """
    owners: list[str] = []
    originals: list[Tensor] = []
    handles = []
    for name in adapted:
        layer = network.get_submodule(name)
        own = {kind: value for kind, value in layer._parameters.items() if value is not None}
        copies = {kind: nn.Parameter(value.detach(), requires_grad=False) for kind, value in own.items()}
        handles.append(layer.register_forward_pre_hook(_with_parameters(copies)))
        handles.append(layer.register_forward_hook(_with_parameters(own), always_call=True))
        owners += [name] * len(own)
        originals += own.values()
    try:
        for original in originals:
            original.requires_grad_()
        with torch.enable_grad(), plain_attention(), model_errors_as_input_errors(x):
            output = check_output(network(x), x.shape[0])
        slopes = torch.autograd.grad(output.sum(), originals, allow_unused=True) if output.requires_grad else ()
    finally:
        for handle in handles:
            handle.remove()
        for original in originals:
            original.requires_grad_(False)
    for name, slope in zip(owners, slopes, strict=False):
        if slope is not None:
            raise ModelError(
                f"model: got norm layer {name!r}, whose parameters forward uses outside of it as well; allowed with "
                f"engine='loop', or exclude={name!r}."
            )


def _with_parameters(values: Mapping[str, nn.Parameter]) -> Callable[..., None]:
    """A hook that gives a layer these."""

    def put(layer: nn.Module, *_: object) -> None:
        layer._parameters.update(values)

    return put


def _site(
    name: str, module: nn.Module, big: Tensor, small: Tensor, *, check_rows: bool, to_replace: bool
) -> NormSite | None:
    grown = [d for d in range(big.dim()) if big.shape[d] != small.shape[d]] if big.dim() == small.dim() else []
    if len(grown) != 1 or big.shape[grown[0]] % 3 or big.shape[grown[0]] * 2 != small.shape[grown[0]] * 3:
        return None
    dim = grown[0]
    recipe = recognise(name, module, big, to_replace=to_replace)
    if dim != 0 and recipe.kind in ("batch", "group"):
        raise ModelError(f"model: got norm layer {name!r} with its batch in dimension {dim}; allowed there is only 0.")
    if check_rows:
        first, _, last = big.float().chunk(3, dim)
        shared_big, shared_small = torch.cat([first, last], dim), small.float()
        difference = (shared_big - shared_small).abs().max()
        spread = (first - last).abs().max()
        if bool(difference > 0.05 * spread + 1e-3):
            raise ModelError(
                f"model: got samples of a batch that mix or change order before norm layer {name!r}; "
                "allowed are models that treat each sample by itself (BatchNorm aside)."
            )
    return NormSite(recipe, dim)
