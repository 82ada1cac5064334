r"""WATT: adapt to one text template after the other, and average the weights.

    for each of m rounds:  for each template t:  l steps on ℓ_t;   θ ← mean of what each template arrived at
    ℓ_t as in ``polytta.methods.text_targets``, the text of an image being its likeliest class in template t

Osowiechi et al., "WATT: Weight Average Test-Time Adaptation of CLIP", NeurIPS 2024. ``watt_s`` goes on from template to
template (sequential), ``watt_p`` lets each start where the round did (parallel); there the optimizer starts anew with
every template of the first round, and runs on from template to template after it, as in the public code. Every batch
starts from the source model and is answered after it. The public code moves by Adam at 1e-3 on all norm layers of the
image encoder: ``optimizer="adam", lr=1e-3, exclude=None``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from polytta.errors import ConfigError
from polytta.methods.base import Method
from polytta.methods.text_targets import alike, features_of
from polytta.roles import Context, Lesson, Pass, Selection, State, Term
from polytta.roles.lesson import SampleLosses


@dataclass(frozen=True)
class WATT(Method):
    """Weight averaging over templates.

    Attributes:
        steps: l, on each template in each round.
        rounds: m.
        order: "same" takes templates as the network has them, "own" gives every particle an order of its own.
        form: "episodic" as published, or "online".
    """

    steps: int = 2
    rounds: int = 5
    order: Literal["same", "own"] = "same"
    form: Literal["episodic", "online"] = "episodic"

    filters: ClassVar[tuple[str, ...]] = ("all",)
    needs_text: ClassVar[bool] = True
    statistics: ClassVar[str] = "source"
    parallel: ClassVar[bool] = False

    @property
    def episodic(self) -> bool:
        """As published."""
        return self.form == "episodic"

    def validate(self) -> None:
        """Whole numbers of steps and rounds."""
        for name in ("steps", "rounds"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ConfigError(f"method: got {self.name}({name}={value!r}); allowed is a whole number >= 1.")
        if self.order not in ("same", "own") or self.form not in ("episodic", "online"):
            raise ConfigError(
                f"method: got {self.name}(order={self.order!r}, form={self.form!r}); allowed are order 'same' or 'own' "
                "and form 'episodic' or 'online'."
            )

    def learn(self, context: Context, passes: Sequence[Pass], state: State) -> Lesson:
        """The first of rounds x templates x steps."""
        network: Any = context.network
        templates = network.text_features.shape[0]
        orders = torch.arange(templates, device=context.theta.device).expand(context.particles, -1)
        if self.order == "own":
            orders = context.noise(0).uniform(templates).argsort(dim=1)
        return _Course(self, context, passes, state, orders).lesson(passes[0].theta, 0, passes)


class WATTS(WATT):
    """Templates one after the other."""

    name: ClassVar[str] = "watt_s"


@dataclass(frozen=True)
class WATTP(WATT):
    """Templates side by side; the public scripts take 50 rounds."""

    rounds: int = 50

    name: ClassVar[str] = "watt_p"
    parallel: ClassVar[bool] = True


class _Course:
    """The lessons of one batch, in their order."""

    def __init__(self, method: WATT, context: Context, passes: Sequence[Pass], state: State, orders: Tensor) -> None:
        self.method, self.context, self.passes, self.state, self.orders = method, context, passes, state, orders
        self.start = passes[0].theta.detach()
        self.arrived: list[Tensor] = []

    def lesson(self, theta: Tensor, number: int, seen: Sequence[Pass] | None = None) -> Lesson:
        """The lesson of that number, at those parameters."""
        method, templates = self.method, self.orders.shape[1]
        place, step = number // method.steps % templates, number % method.steps
        first_round = number < templates * method.steps
        ends_template, ends_round = step == method.steps - 1, step == method.steps - 1 and place == templates - 1
        if seen is None:
            seen = [self.context.forward(one, theta=theta, grad=True) for one in self.passes]

        def after(moved: Tensor) -> tuple[Tensor, State]:
            if not ends_template:
                return moved, {}
            self.arrived.append(moved)
            if ends_round:
                self.start, self.arrived = torch.stack(self.arrived).mean(dim=0), []
                return self.start, {}
            return (self.start if method.parallel else moved), {}

        last = number + 1 == method.rounds * templates * method.steps
        return Lesson(
            [Term((one,), Selection.everything(one), self._losses(place)) for one in seen],
            self.state,
            after_step=after,
            then=None if last else lambda moved: self.lesson(moved, number + 1),
            forgets=method.parallel and first_round and step == 0,
        )

    def _losses(self, place: int) -> SampleLosses:
        network: Any = self.context.network
        every = network.text_features.to(self.start.dtype)[self.orders[:, place]]

        def losses(passes: Sequence[Pass]) -> Tensor:
            images = features_of(passes[0])
            likeliest = (images.detach() @ every.mT).argmax(dim=-1)
            text = every.gather(1, likeliest.unsqueeze(-1).expand(-1, -1, every.shape[-1]))
            return alike(images, text, network.logit_scale.exp().to(images.dtype))

        return losses
