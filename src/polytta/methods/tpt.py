r"""TPT: learn the prompt of every single image, so that its views agree.

    V views of the image;   S = the share p of them with the lowest entropy (at the first step)
    c ← AdamW(c, ∇_c H(mean_{v∈S} p_c(v))),   answer: the image itself, with the learnt context c

Shu et al., "Test-Time Prompt Tuning for Zero-Shot Generalization in Vision-Language Models", NeurIPS 2022. c are the
vectors of the prompt's first words ("a photo of a"), shared by all classes; the networks stay as they are. Context and
optimizer start anew for every image, so that a batch is as many images, each with a context of its own. Views are the
image and random crops of it, mirrored or not (the public code adds AugMix on some data sets).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

from polytta.errors import ConfigError
from polytta.methods.base import Method
from polytta.methods.given import is_count, is_number, views_like
from polytta.methods.prompts import Prompts
from polytta.methods.text_targets import features_of
from polytta.roles import Context, Lesson, Noise, Pass, Sight, Start, State, entropy

_VALUES_AT_ONCE = 2**25
"""Of what the text encoder reads; it keeps some hundred times as much to differentiate."""
_IMAGES_AT_ONCE = 1024
"""In a pass over several views."""
ViewsOf = Callable[[Tensor, Noise], Sequence[Tensor]]
"""Images (K, B, ...) and random numbers to views of them (K, B, ...), the images themselves not among them."""


@dataclass(frozen=True)
class TPT(Method):
    """Test-time prompt tuning.

    Attributes:
        views: random crops besides the image, or a callable ``(x, noise) -> [view, ...]``.
        share: p.
        steps: of AdamW.
        lr: of AdamW, whose decay is 0.01 as torch has it.
        context: the words that begin the prompt.
        vectors: (n, W) to begin with in place of those words'.
    """

    views: int | ViewsOf = 63
    share: float = 0.1
    steps: int = 1
    lr: float = 5e-3
    context: str = "a photo of a"
    vectors: Tensor | None = None

    name: ClassVar[str] = "tpt"
    descends: ClassVar[bool] = False
    needs_text: ClassVar[bool] = True
    statistics: ClassVar[str] = "source"

    def validate(self) -> None:
        """Counts, a share that keeps something, words."""
        if not callable(self.views) and not is_count(self.views):
            raise ConfigError(
                f"method: got {self.name}(views={self.views!r}); allowed is a number >= 1, or a callable."
            )
        numbers = is_number(self.share) and is_count(self.steps) and is_number(self.lr)
        if not numbers or not 0 < self.share <= 1 or not self.lr > 0:
            raise ConfigError(
                f"method: got {self.name}(share={self.share!r}, steps={self.steps!r}, lr={self.lr!r}); allowed are a "
                "share within 0..1, steps >= 1 and a finite lr > 0."
            )
        if self.vectors is not None and not (isinstance(self.vectors, Tensor) and bool(self.vectors.isfinite().all())):
            got = "NaN or infinity" if isinstance(self.vectors, Tensor) else type(self.vectors).__name__
            raise ConfigError(f"method: got {got} in {self.name}.vectors; allowed is a tensor of finite numbers.")
        if not isinstance(self.context, str) or not self.context.strip():
            raise ConfigError(f"method: got {self.name}(context={self.context!r}); allowed are one word or more.")

    def init(self, start: Start) -> State:
        """Nothing to remember; vectors to begin with must fit the words they stand for."""
        wanted = _prompts(start.network, self.context).first.shape
        if self.vectors is not None and self.vectors.shape != wanted:
            raise ConfigError(
                f"method: got {self.name}(vectors={tuple(self.vectors.shape)}) for context {self.context!r}; allowed "
                f"are {tuple(wanted)}, a vector for each of its tokens."
            )
        return {}

    def look(self, context: Context, passes: Sequence[Pass], logits: Tensor, state: State) -> Sight:
        """The answer with the prompts of this batch's images."""
        network: Any = context.network
        views = self._views(context, passes[0])
        seen = torch.stack(views, dim=2).flatten(0, 1).detach()
        # Every image has a prompt of its own for every class, and all of them are differentiated.
        most = max(1, _VALUES_AT_ONCE // _prompts(network, self.context).embedded.numel())
        answer = torch.cat([self._answered(network, part) for part in seen.split(most)])
        return Sight(passes, logits, answer.unflatten(0, logits.shape[:2]).to(logits.dtype))

    def _answered(self, network: Any, seen: Tensor) -> Tensor:
        """(N, C) logits of N images by their own prompts."""
        vectors, _ = self.tuned(network, seen)
        with torch.no_grad():
            answer: Tensor = network.classify(seen[:, :1], _prompts(network, self.context).features(vectors))
            return answer.squeeze(1)

    def learn(self, context: Context, passes: Sequence[Pass], state: State) -> Lesson:
        """Nothing is left of an image."""
        return Lesson(state=state)

    def tuned(self, network: Any, seen: Tensor) -> tuple[Tensor, Tensor]:
        """(N, n, W) contexts of N images, from unit features (N, V, D) of their views, and (N, k) the views kept."""
        prompts = _prompts(network, self.context)
        first = (prompts.first if self.vectors is None else self.vectors.to(prompts.first)).to(seen.device)
        vectors = first.expand(seen.shape[0], *first.shape).clone()
        moments, kept = (torch.zeros_like(vectors), torch.zeros_like(vectors)), None
        with torch.inference_mode(False), torch.enable_grad():
            for step in range(1, self.steps + 1):
                vectors = vectors.detach().requires_grad_()
                logits = network.classify(seen.to(vectors.dtype), prompts.features(vectors))
                kept = self.selected(logits.detach()) if kept is None else kept
                chosen = logits.gather(1, kept.unsqueeze(-1).expand(-1, -1, logits.shape[-1])).log_softmax(dim=-1)
                mean = chosen.exp().mean(dim=1)
                losses = -torch.xlogy(mean, mean).sum(dim=-1)
                (slope,) = torch.autograd.grad(losses.sum(), vectors)
                vectors, moments = _adamw(vectors.detach(), slope, moments, step, self.lr)
        assert kept is not None
        return vectors, kept

    def selected(self, logits: Tensor) -> Tensor:
        """(N, k) views to learn from, given logits (N, V, C)."""
        count = int(logits.shape[1] * self.share)
        return entropy(logits).argsort(dim=1)[:, : max(1, count)]

    def _views(self, context: Context, seen: Pass) -> list[Tensor]:
        """(K, B, D) unit features of the images and of views of them."""
        noise = context.noise(seen.view)
        if callable(self.views):
            made = views_like(f"{self.name}.views", self.views(seen.x, noise), seen.x)
        else:
            made = [crop(seen.x, noise) for _ in range(self.views)]
        return [features_of(seen), *features_of_views(context, seen, made)]


def features_of_views(context: Context, seen: Pass, made: Sequence[Tensor]) -> list[Tensor]:
    """(K, B, D) unit features of each view, many views in one pass where no image's answer depends on the others."""
    together = 1 if context.uses_batch_statistics else max(1, _IMAGES_AT_ONCE // (seen.x.shape[0] * seen.x.shape[1]))
    found: list[Tensor] = []
    for start in range(0, len(made), together):
        part = [one.expand_as(seen.x) for one in made[start : start + together]]
        found += features_of(context.forward(seen, x=torch.cat(part, dim=1))).split(seen.x.shape[1], dim=1)
    return found


def crop(x: Tensor, noise: Noise, smallest: float = 0.3) -> Tensor:
    """Random square crops of images (K, B, C, H, W) at their size, half of them mirrored."""
    images = x.flatten(0, 1)
    exact = torch.float32 if x.dtype in (torch.float16, torch.bfloat16) else x.dtype
    area, right, down, flip = noise.uniform(x.shape[1], 4).flatten(0, 1).to(exact).unbind(dim=1)
    side = (smallest + (1 - smallest) * area).sqrt()
    zero = torch.zeros_like(side)
    mirrored = torch.where(flip < 0.5, side, -side)
    rows = (
        torch.stack([mirrored, zero, (2 * right - 1) * (1 - side)], dim=-1),
        torch.stack([zero, side, (2 * down - 1) * (1 - side)], dim=-1),
    )
    grid = affine_grid(torch.stack(rows, dim=1), list(images.shape), align_corners=False)
    return (
        grid_sample(images.to(exact), grid, padding_mode="reflection", align_corners=False).to(x.dtype).reshape(x.shape)
    )


def _adamw(
    vectors: Tensor, slope: Tensor, moments: tuple[Tensor, Tensor], step: int, lr: float
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """One step with torch's defaults: betas 0.9 and 0.999, eps 1e-8, decay 0.01."""
    first, second = 0.9 * moments[0] + 0.1 * slope, 0.999 * moments[1] + 0.001 * slope.square()
    decayed = vectors * (1 - 0.01 * lr)
    spread = second.sqrt() / (1 - 0.999**step) ** 0.5 + 1e-8
    return decayed - lr / (1 - 0.9**step) * first / spread, (first, second)


def _prompts(network: Any, context: str) -> Prompts:
    """Found once for a text encoder and its classes."""
    key = (context, network.classes)
    if key not in network.text.kept:
        network.text.kept[key] = Prompts.of(network, context)
    found: Prompts = network.text.kept[key]
    return found
