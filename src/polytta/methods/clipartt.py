r"""CLIPArTT: the text of an image names its likeliest classes, all in one sentence.

    n times:  T_b = g("a photo of a A or B or C"), A, B, C the likeliest classes of image b now;   one step on ℓ

with ℓ of ``polytta.methods.text_targets``. Hakim et al., "CLIPArTT: Adaptation of CLIP to New Domains at Test Time",
WACV 2025. Every batch starts from the source model and is answered after it. The public code moves by Adam at 1e-3 on
all norm layers of the image encoder, and compares with "a photo of a {}" alone: ``zero_shot(..., templates="photo")``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from torch import Tensor

from polytta.errors import ConfigError
from polytta.methods.base import Method
from polytta.methods.text_targets import Target, alike, features_of
from polytta.roles import Context, Lesson, Pass, Selection, Start, State, Term
from polytta.roles.lesson import SampleLosses

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
        names, sentence = network.classes, network.templates[0]
        asked = [sentence.replace("{}", " or ".join(names[c] for c in own)) for own in likeliest.flatten(0, 1).tolist()]
        return network.text.features(asked).to(one.logits).reshape(*likeliest.shape[:2], -1)

    def _losses(self, context: Context, text: Tensor) -> SampleLosses:
        network: Any = context.network

        def losses(passes: Sequence[Pass]) -> Tensor:
            images = features_of(passes[0])
            return alike(images, text.to(images.dtype), network.logit_scale.exp().to(images.dtype), self.target)

        return losses
