"""Fewer particles at a time: the memory of a few, the answer of all.

In a pass particles do not meet, so one over K of them may be several over some. What backward needs
of a slice is not kept but computed again when its turn comes, so that never more than one slice is in memory; that is
one forward pass more for every pass that is learnt from.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

Pass = Callable[[Tensor, Tensor, Tensor | None, Tensor], Tensor]


def sliced(run: Pass, theta: Tensor, x: Tensor, where: Tensor | None, rows: Tensor, at_once: int) -> Tensor:
    """(K, B, C) what ``run(theta, x, where, rows)`` returns, for at most ``at_once`` particles at a time."""
    parts = []
    for start in range(0, theta.shape[0], at_once):
        now = slice(start, start + at_once)
        parts.append(_Slice.apply(run, theta[now], x[now], None if where is None else where[now], rows[now]))
    return torch.cat(parts)


class _Slice(torch.autograd.Function):
    """A pass that keeps its inputs alone."""

    @staticmethod
    def forward(ctx: Any, run: Pass, theta: Tensor, x: Tensor, where: Tensor | None, rows: Tensor) -> Tensor:
        ctx.run = run
        ctx.save_for_backward(theta, x, where, rows)
        return run(theta, x, where, rows)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        theta, x, where, rows = ctx.saved_tensors
        needed = ctx.needs_input_grad[1:3]
        leaves = [value.detach().requires_grad_(wanted) for value, wanted in zip((theta, x), needed, strict=True)]
        with torch.enable_grad():
            logits = ctx.run(leaves[0], leaves[1], where, rows)
        if not logits.requires_grad:  # no sample of these particles was wanted
            return None, *(torch.zeros_like(leaf) if leaf.requires_grad else None for leaf in leaves), None, None
        wanted = [leaf for leaf in leaves if leaf.requires_grad]
        found = iter(torch.autograd.grad(logits, wanted, slope))
        return None, *(next(found) if leaf.requires_grad else None for leaf in leaves), None, None
