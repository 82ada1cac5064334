r"""CLIPArTT: the text of an image names its likeliest classes, all in one sentence.

    n times:  T_b = g("a photo of a A or B or C"), A, B, C the likeliest classes of image b now;   one step on ℓ

with ℓ of ``polytta.methods.text_targets``. Hakim et al., "CLIPArTT: Adaptation of CLIP to New Domains at Test Time",
WACV 2025. Every batch starts from the source model and is answered after it. The public code moves by Adam at 1e-3 on
all norm layers of the image encoder, and compares with "a photo of a {}" alone: ``zero_shot(..., templates="photo")``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from math import perm
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from polytta.errors import ConfigError
from polytta.methods.base import Method
from polytta.methods.text_targets import Target, alike, features_of
from polytta.roles import Context, Lesson, Pass, Selection, Start, State, Term
from polytta.roles.lesson import SampleLosses

_EVERY_SENTENCE = 1024
"""So many are encoded at once, before it is known which are needed; three of ten classes make 720."""
TARGETS = ("both", "images", "text", "identity")


@dataclass(frozen=True)
class CLIPArTT(Method):
    """Prompts of several classes.

    Attributes:
        classes: how many a sentence names.
        steps: n, new sentences at each.
        target: what Q is made of: "both" as published, "images", "text", or "identity".
        form: "episodic" as published, or "online".
    """

    classes: int = 3
    steps: int = 10
    target: Target = "both"
    form: Literal["episodic", "online"] = "episodic"

    name: ClassVar[str] = "clipartt"
    filters: ClassVar[tuple[str, ...]] = ("all",)
    needs_text: ClassVar[bool] = True
    statistics: ClassVar[str] = "source"

    @property
    def episodic(self) -> bool:
        """As published."""
        return self.form == "episodic"

    def validate(self) -> None:
        """Whole numbers, a known target."""
        for name in ("classes", "steps"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ConfigError(f"method: got CLIPArTT({name}={value!r}); allowed is a whole number >= 1.")
        if self.target not in TARGETS or self.form not in ("episodic", "online"):
            raise ConfigError(
                f"method: got CLIPArTT(target={self.target!r}, form={self.form!r}); allowed are {list(TARGETS)} "
                "and form 'episodic' or 'online'."
            )

    def init(self, start: Start) -> State:
        """Nothing to remember; as many classes as it names there must be."""
        network: Any = start.network
        if self.classes > len(network.classes):
            raise ConfigError(
                f"method: got CLIPArTT(classes={self.classes}) for {len(network.classes)} classes; allowed are as many."
            )
        return {}

    def learn(self, context: Context, passes: Sequence[Pass], state: State) -> Lesson:
        """The first of n."""
        return self._lesson(context, passes, passes, state, 0)

    def _lesson(
        self, context: Context, first: Sequence[Pass], seen: Sequence[Pass], state: State, number: int
    ) -> Lesson:
        def then(theta: Tensor) -> Lesson:
            now = [context.forward(one, theta=theta, grad=True) for one in first]
            return self._lesson(context, first, now, state, number + 1)

        terms = [
            Term((one,), Selection.everything(one), self._losses(context, self._text(context, one))) for one in seen
        ]
        return Lesson(terms, state, then=None if number + 1 == self.steps else then)

    def _text(self, context: Context, one: Pass) -> Tensor:
        """(K, B, D) unit features of the sentences, likeliest class first."""
        network: Any = context.network
        likeliest = one.logits.detach().topk(self.classes, dim=-1).indices
        if likeliest.is_cuda and perm(len(network.classes), self.classes) <= _EVERY_SENTENCE:
            # Nothing is read back by the host, so that the step can be recorded.
            return self.every_sentence(network, one.logits)[likeliest.unbind(dim=-1)]
        chosen, place = likeliest.flatten(0, 1).unique(dim=0, return_inverse=True)
        told = network.text.features([self._sentence(network, own) for own in chosen.tolist()])
        return told.to(one.logits)[place].unflatten(0, likeliest.shape[:2])

    def every_sentence(self, network: Any, like: Tensor) -> Tensor:
        """(C, ..., C, D) unit features of the sentences of all classes in all orders, encoded once."""
        key = (self.name, network.templates[0], network.classes, self.classes, like.device, like.dtype)
        if key not in network.text.kept:
            orders = list(permutations(range(len(network.classes)), self.classes))
            told = network.text.features([self._sentence(network, own) for own in orders]).to(like)
            found = told.new_zeros(*[len(network.classes)] * self.classes, told.shape[-1])
            found[tuple(torch.tensor(orders, device=like.device).unbind(dim=1))] = told
            network.text.kept[key] = found
        every: Tensor = network.text.kept[key]
        return every

    def _sentence(self, network: Any, named: Sequence[int]) -> str:
        names = " or ".join(network.classes[number] for number in named)
        return str(network.templates[0].replace("{}", names))

    def _losses(self, context: Context, text: Tensor) -> SampleLosses:
        network: Any = context.network

        def losses(passes: Sequence[Pass]) -> Tensor:
            images = features_of(passes[0])
            return alike(images, text.to(images.dtype), network.logit_scale.exp().to(images.dtype), self.target)

        return losses
