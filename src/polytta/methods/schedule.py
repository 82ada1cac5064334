"""When a method learns, and when it starts over: ROID's and RDumb's way with single images, and their resets.

A method that compares the images of a batch has nothing to compare in a batch of one. With a window, single images are
collected instead: image n goes to place n mod W, and each time the last place is taken all W are learnt from. What is
answered in between is a plain prediction; where BatchNorm takes statistics of the batch, of the image among those in
the window. Batches of two and more are learnt from as they come. Everything is counted per particle and in tensors, so
a step has the same shapes whether or not it learns.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from polytta.errors import ConfigError, InputError
from polytta.roles import Context, Lesson, Pass, Selection, Sight, Start, State


@dataclass(frozen=True)
class Schedule:
    """Batches as they come, or windows of single images; resets counted in either.

    Attributes:
        window: W; 1 means none.
        reset_every: N, batches (full windows) from one reset to the next, whether or not a sample was kept; 0 is never.
    """

    window: int = 1
    reset_every: int = 0

    def validate(self, who: str) -> None:
        """Raises ConfigError unless both are whole numbers in range."""
        whole = all(isinstance(n, int) and not isinstance(n, bool) for n in (self.window, self.reset_every))
        if not whole or self.window < 1 or self.reset_every < 0:
            raise ConfigError(
                f"method: got {who}(window={self.window!r}, reset_every={self.reset_every!r}); "
                "allowed are whole numbers, window >= 1 and reset_every >= 0."
            )

    def init(self, start: Start) -> State:
        """Nothing collected, nothing counted; how large images are, the first of them tells."""
        none = torch.zeros(start.particles, dtype=torch.int64, device=start.theta.device)
        window = {"window": start.theta.new_zeros(start.particles, self.window, 0), "collected": none}
        return {**(window if self.window > 1 else {}), **({"batches": none.clone()} if self.reset_every else {})}

    def look(
        self,
        answer: Callable[[Tensor], Tensor],
        context: Context,
        passes: Sequence[Pass],
        logits: Tensor,
        state: State,
    ) -> Sight:
        """The window in place of a single image; ``answer`` is the method's, for what is learnt from."""
        if not self._collects(context):
            return Sight(passes, logits, answer(logits))
        if len(passes) > 1:
            raise ConfigError(f"views: got {len(passes)} with window={self.window}; allowed with a window is one.")
        seen, rows = passes[0], torch.arange(self.window, device=logits.device)
        count = state["collected"].unsqueeze(1)
        here = rows == count % self.window
        full = here[:, -1:]
        images = torch.where(here.reshape(*here.shape, *[1] * (seen.x.dim() - 2)), seen.x.detach(), _held(state, seen))
        where = rows <= count if context.uses_batch_statistics else full.expand_as(here)
        whole = context.forward(seen, x=images, where=where, grad=True)
        told = whole.logits.detach()
        place = (count % self.window).unsqueeze(2).expand(-1, 1, told.shape[2])
        if context.uses_batch_statistics:
            logits = told.gather(1, place)
        return Sight((whole,), logits, torch.where(full.unsqueeze(2), answer(told).gather(1, place), logits))

    def due(self, context: Context, state: State) -> Tensor:
        """(K,) whether particles learn from what they see now."""
        if self._collects(context):
            return state["collected"] % self.window == self.window - 1
        return torch.ones(context.particles, dtype=torch.bool, device=context.theta.device)

    def scheduled(
        self, context: Context, passes: Sequence[Pass], lesson: Lesson, before: State, fresh: State
    ) -> Lesson:
        """A lesson where it is due, with the resets that are; ``fresh`` is the method's own state after one."""
        due, resets = self.due(context, before), lesson.resets
        state = {name: _where(due, lesson.state[name], before[name]) for name in fresh}
        if self.reset_every:
            batches = before["batches"] + due
            resets = due & (batches % self.reset_every == 0)
            state = {name: _where(resets, fresh[name], value) for name, value in state.items()}
            state["batches"] = batches
        if self.window > 1:
            single = self._collects(context)
            state["window"] = (passes[0].x.detach() if single else _held(before, passes[0])).to(before["window"].dtype)
            state["collected"] = before["collected"] + int(single)
        terms = [replace(term, selection=_gated(term.selection, due)) for term in lesson.terms]
        return replace(lesson, terms=terms, state=state, resets=resets)

    def _collects(self, context: Context) -> bool:
        return self.window > 1 and context.batch_size == 1


def _held(state: State, like: Pass) -> Tensor:
    """(K, W, ...) images in the window, zeros before the first."""
    held, size = state["window"], like.x.shape[2:]
    if held.shape[2:] == (0,):
        return like.x.new_zeros(*held.shape[:2], *size)
    if held.shape[2:] != size:
        raise InputError(f"x: got images of {tuple(size)}; allowed are {tuple(held.shape[2:])}, as in the window.")
    return held.to(like.x.dtype)


def _gated(selection: Selection, due: Tensor) -> Selection:
    return Selection(selection.mask & due.unsqueeze(1), selection.weight, selection.counts * due)


def _where(rows: Tensor, one: Tensor, other: Tensor) -> Tensor:
    """Per particle (K,), of tensors (K, ...)."""
    return torch.where(rows.reshape(-1, *[1] * (one.dim() - 1)), one, other)
