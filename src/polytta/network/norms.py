"""What a normalization layer computes, written down so that K particles can share one pass through it.

Every supported layer is ``post(normalize(x) * weight + bias)``. A ``NormRecipe`` names the normalization and where the
affine sits, and the folded engine then applies K different affines. Layers that are exactly a torch class are known.
For any other class (timm's fused norm + activation, NCHW layer norms, transformers' RMS norms, a user's own) the
candidate recipes are *tried on a real input with perturbed weights* and one that reproduces the layer is taken; when
none does, the layer is refused by name, because a wrong guess would be a silently wrong answer.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm

from polytta.errors import ModelError

Kind = Literal["batch", "group", "layer", "rms"]

_AFFINE = ("weight", "bias")
_TORCH_CLASSES: tuple[type[nn.Module], ...] = (
    nn.BatchNorm1d,
    nn.BatchNorm2d,
    nn.BatchNorm3d,
    nn.SyncBatchNorm,
    nn.GroupNorm,
    nn.LayerNorm,
    nn.RMSNorm,
    nn.InstanceNorm1d,
    nn.InstanceNorm2d,
    nn.InstanceNorm3d,
)


@dataclass(frozen=True)
class NormRecipe:
    """One normalization, up to its affine.

    Attributes:
        kind: which statistics are taken.
        shape: shape of the affine parameters.
        channel_first: whether the affine runs along dimension 1 (NCHW) instead of the trailing dimensions.
        groups: number of groups ("group" only).
        eps: added to the variance; None means the dtype's own epsilon (RMSNorm).
        in_float32: whether the layer computes in float32 whatever its input.
        post: modules applied after the affine (timm's fused dropout and activation).
    """

    kind: Kind
    shape: tuple[int, ...]
    channel_first: bool
    groups: int = 0
    eps: float | None = 1e-5
    in_float32: bool = False
    post: tuple[nn.Module, ...] = ()

    @property
    def epsilon(self) -> float:
        """eps as a number, for kernels that need one."""
        return 1e-5 if self.eps is None else self.eps

    def normalize(self, x: Tensor) -> Tensor:
        """The layer without affine and post ("layer" and "rms" only; the others fuse it with their affine)."""
        moved = x.movedim(1, -1) if self.channel_first else x
        if self.kind == "layer":
            out = F.layer_norm(moved, self.shape, None, None, self.epsilon)
        else:
            out = F.rms_norm(moved, self.shape, None, self.eps)
        return out.movedim(-1, 1) if self.channel_first else out

    def finish(self, x: Tensor) -> Tensor:
        """What follows the affine."""
        for module in self.post:
            x = module(x)
        return x

    def reference(self, module: nn.Module, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """The whole layer with the given affine, in evaluation mode; what candidates are judged by."""
        source = x
        if self.in_float32:
            x = x.float()
        if self.kind == "batch":
            mean, var = getattr(module, "running_mean", None), getattr(module, "running_var", None)
            out = F.batch_norm(x, mean, var, weight, bias, training=mean is None, eps=self.epsilon)
        elif self.kind == "group":
            out = F.group_norm(x, self.groups, weight, bias, self.epsilon)
        else:
            view = (-1, *[1] * (x.dim() - 2)) if self.channel_first else self.shape
            out = self.normalize(x) * weight.reshape(view)
            out = out if bias is None else out + bias.reshape(view)
        return self.finish(out.to(source.dtype))


def is_norm(module: nn.Module) -> bool:
    """A torch normalization layer, a subclass of one, or a class that calls itself a norm and holds its own scale."""
    if isinstance(module, (_BatchNorm, _InstanceNorm, nn.GroupNorm, nn.LayerNorm, nn.RMSNorm)):
        return True
    # ConvNeXt V2's GlobalResponseNorm is a gated residual that starts as the identity: a norm in name only.
    named_norm = re.search(r"(?<!GlobalResponse)norm", type(module).__name__, re.IGNORECASE) is not None
    weight = module._parameters.get("weight")
    return named_norm and weight is not None and weight.dim() == 1


def has_affine(module: nn.Module) -> bool:
    """Whether the layer has a learned scale."""
    return isinstance(module._parameters.get("weight"), nn.Parameter)


def is_batch_norm(module: nn.Module) -> bool:
    """Whether the layer normalizes over the batch."""
    return isinstance(module, _BatchNorm)


def recognise(name: str, module: nn.Module, x: Tensor, *, to_replace: bool = True) -> NormRecipe:
    """The recipe of a layer, checked on an input it was really called with; a guess where it will not be replaced."""
    x = x.detach()
    if not bool(x.isfinite().all()):
        x = _noise_like(x)  # an overflow further up says nothing about this layer
    candidates = list(_candidates(module, x))
    if candidates and (not to_replace or (type(module) in _TORCH_CLASSES and not _altered(module))):
        return candidates[0]
    # A hook may already have changed the input seen here, and would find nothing to change in it any more.
    inputs = [x, _noise_like(x), 100 * _noise_like(x)] if _altered(module) else [x]
    for recipe in candidates if not _does_what_samples_hide(module, x) else ():
        if all(_reproduces(recipe, module, one) for one in inputs):
            return recipe
    raise ModelError(
        f"model: got norm layer {name!r} of class {type(module).__module__}.{type(module).__qualname__}, which "
        "computes something unknown (or has a hook that changes it); allowed are layers that normalize, scale and "
        f"shift (then drop out and activate), or engine='loop'. Leave it out with exclude={name!r}."
    )


def _noise_like(x: Tensor) -> Tensor:
    return torch.randn(x.shape, generator=torch.Generator().manual_seed(1), device="cpu").to(x)


def _altered(module: nn.Module) -> bool:
    """Whether somebody has put a hook on a layer, or another function in the place of its own."""
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return "forward" in vars(module) or any(getattr(module, name, None) for name in hooks)


def _does_what_samples_hide(module: nn.Module, x: Tensor) -> bool:
    """Whether hooks change gradients or answer for the layer, or its scale and shift are made of something else."""
    if getattr(module, "_backward_hooks", None) or getattr(module, "_backward_pre_hooks", None):
        return True
    made = any(module._parameters.get(kind) is None and getattr(module, kind, None) is not None for kind in _AFFINE)
    return made or (_altered(module) and _answered_by_hooks(module, x))


@torch.no_grad()
def _answered_by_hooks(module: nn.Module, x: Tensor) -> bool:
    """Whether a hook puts anything, were it the same, in the place of what goes in or comes out."""
    answers: list[bool] = []

    def noted(hook: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object, **named: object) -> object:
            told = hook(*args, **named)
            answers.append(told is not None)
            return told

        return call

    hooks = (module._forward_pre_hooks, module._forward_hooks)
    before = [dict(one) for one in hooks]
    try:
        for one in hooks:
            one.update({key: noted(hook) for key, hook in one.items()})
        module(x)
    except (RuntimeError, ValueError, IndexError):
        return True
    finally:
        for one, known in zip(hooks, before, strict=True):
            one.update(known)
    return any(answers)


def _candidates(module: nn.Module, x: Tensor) -> Iterator[NormRecipe]:
    weight = module._parameters.get("weight")
    shape = tuple(weight.shape) if weight is not None else (x.shape[1],)
    eps = getattr(module, "eps", getattr(module, "variance_epsilon", 1e-5))
    posts: list[tuple[nn.Module, ...]] = [()]
    fused = _fused_parts(module)
    if fused:
        posts.insert(0, fused)
    if isinstance(module, _BatchNorm):
        plain = [NormRecipe("batch", shape, True, eps=eps)]
    elif isinstance(module, _InstanceNorm):
        if module.track_running_stats:
            return
        plain = [NormRecipe("group", shape, True, groups=shape[0], eps=eps)]
    elif isinstance(module, nn.GroupNorm):
        plain = [NormRecipe("group", shape, True, groups=module.num_groups, eps=eps)]
    else:
        kinds: tuple[Kind, ...] = ("rms", "layer") if not isinstance(module, nn.LayerNorm) else ("layer", "rms")
        plain = [NormRecipe(kind, shape, channel_first, eps=eps) for channel_first in (False, True) for kind in kinds]
    for recipe in plain:
        for post in posts:
            yield replace(recipe, post=post)
            if x.dtype in (torch.float16, torch.bfloat16):
                yield replace(recipe, post=post, in_float32=True)


def _fused_parts(module: nn.Module) -> tuple[nn.Module, ...]:
    parts = (getattr(module, "drop", None), getattr(module, "act", None))
    return tuple(part for part in parts if isinstance(part, nn.Module) and not isinstance(part, nn.Identity))


@torch.no_grad()
def _reproduces(recipe: NormRecipe, module: nn.Module, x: Tensor) -> bool:
    """Compares on perturbed weights, so that an affine of ones and zeros cannot hide a misplaced one."""
    generator = torch.Generator().manual_seed(0)
    affine: dict[str, Tensor] = {}
    for kind in _AFFINE:
        value = module._parameters.get(kind)
        if value is not None:
            noise = torch.randn(value.shape, generator=generator, device="cpu")
            affine[kind] = (value.float().cpu() + 0.5 * noise).to(value)
    if not affine:
        affine_weight: Tensor = torch.ones(recipe.shape, dtype=x.dtype, device=x.device)
    else:
        affine_weight = affine["weight"]
    try:
        expected = torch.func.functional_call(module, affine, (x,))
        got = recipe.reference(module, x, affine_weight, affine.get("bias"))
    except (RuntimeError, ValueError, IndexError):
        return False
    if expected.shape != got.shape:
        return False
    loose = x.dtype in (torch.float16, torch.bfloat16)
    scale = expected.float().abs().max().clamp(min=1e-6)
    return bool(((expected.float() - got.float()).abs().max() / scale) < (2e-2 if loose else 1e-4))
