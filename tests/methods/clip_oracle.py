"""The text methods as one would write them first: one model, one image or template after the other, torch's own
optimizers, in float64. Written from their descriptions, not from ``polytta.methods``; it gives the recorded numbers."""

import copy
import math
from collections.abc import Sequence
from typing import Any

import torch
from tests.clip.tiny_clip import TinyClip, tokenize
from torch import Tensor, nn
from torch.nn import functional as F

TARGETS = ("both", "images", "text", "identity")


def unit(vectors: Tensor) -> Tensor:
    return F.normalize(vectors, dim=-1)


def entropies(logits: Tensor) -> Tensor:
    return -(logits.softmax(dim=-1) * logits.log_softmax(dim=-1)).sum(dim=-1)


@torch.no_grad()
def text_of(clip: TinyClip, template: str, classes: Sequence[str]) -> Tensor:
    return unit(clip.encode_text(tokenize([template.format(name) for name in classes])))


def mean_text(clip: TinyClip, templates: Sequence[str], classes: Sequence[str]) -> Tensor:
    return unit(torch.stack([text_of(clip, template, classes) for template in templates]).mean(dim=0))


class Learner:
    """A copy whose image encoder's norm layers move."""

    def __init__(self, clip: TinyClip, optimizer: str, lr: float) -> None:
        self.clip = copy.deepcopy(clip).requires_grad_(False)
        layers = [layer for layer in self.clip.visual.modules() if isinstance(layer, nn.LayerNorm)]
        self.weights = [weight.requires_grad_() for layer in layers for weight in layer.parameters()]
        self._settings = optimizer, lr
        self.forget()

    def forget(self) -> None:
        optimizer, lr = self._settings
        kinds: dict[str, Any] = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}
        self.optimizer = kinds[optimizer](self.weights, lr=lr, **({"momentum": 0.9} if optimizer == "sgd" else {}))

    def features(self, x: Tensor) -> Tensor:
        return unit(self.clip.encode_image(x))

    def descend(self, loss: Tensor) -> None:
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def held(self) -> list[Tensor]:
        return [weight.detach().clone() for weight in self.weights]

    @torch.no_grad()
    def put(self, values: Sequence[Tensor]) -> None:
        for weight, value in zip(self.weights, values, strict=True):
            weight.copy_(value)

    @torch.no_grad()
    def answer(self, x: Tensor, text: Tensor) -> Tensor:
        return self.clip.logit_scale.exp() * self.features(x) @ text.T


def alike(clip: TinyClip, images: Tensor, text: Tensor, target: str = "both") -> Tensor:
    sums = {"both": images @ images.T + text @ text.T, "images": images @ images.T, "text": text @ text.T}
    wanted = (sums[target] / 2 / 0.01).softmax(dim=1) if target in sums else torch.eye(len(images)).to(images)
    told = (clip.logit_scale.exp().detach() * images @ text.T).log_softmax(dim=1)
    return -(wanted.T * told).sum(dim=1).mean()


def watt(
    clip: TinyClip, x: Tensor, classes: Sequence[str], templates: Sequence[str], *, parallel: bool, steps: int,
    rounds: int, optimizer: str, lr: float,
) -> Tensor:  # fmt: skip
    learner = Learner(clip, optimizer, lr)
    start = learner.held()
    for number in range(rounds):
        arrived = []
        for template in templates:
            text = text_of(clip, template, classes)
            if parallel:
                learner.put(start)
                if number == 0:
                    learner.forget()
            for _ in range(steps):
                images = learner.features(x)
                learner.descend(alike(clip, images, text[(images @ text.T).argmax(dim=1)]))
            arrived.append(learner.held())
        start = [torch.stack(own).mean(dim=0) for own in zip(*arrived, strict=True)]
        learner.put(start)
    return learner.answer(x, mean_text(clip, templates, classes))


def clipartt(
    clip: TinyClip, x: Tensor, classes: Sequence[str], *, named: int, steps: int, target: str, optimizer: str, lr: float
) -> Tensor:
    learner, text = Learner(clip, optimizer, lr), text_of(clip, "a photo of a {}", classes)
    for _ in range(steps):
        images = learner.features(x)
        likeliest = (images @ text.T).topk(named, dim=1).indices.tolist()
        told = text_of(clip, "a photo of a {}", [" or ".join(classes[c] for c in own) for own in likeliest])
        learner.descend(alike(clip, images, told, target))
    return learner.answer(x, text)


def tent(
    clip: TinyClip,
    x: Tensor,
    classes: Sequence[str],
    templates: Sequence[str],
    *,
    steps: int,
    optimizer: str,
    lr: float,
) -> Tensor:
    learner, text = Learner(clip, optimizer, lr), mean_text(clip, templates, classes)
    for _ in range(steps):
        learner.descend(entropies(clip.logit_scale.exp().detach() * learner.features(x) @ text.T).mean())
    return learner.answer(x, text)


def tpt(
    clip: TinyClip, views: Tensor, classes: Sequence[str], *, context: str, share: float, steps: int, lr: float,
    similar: float | None = None,
) -> Tensor:  # fmt: skip
    """The answer for the first of the views; with ``similar`` DiffTPT's choice among them."""
    tokens, words = tokenize([f"{context} {name}." for name in classes]), len(context.split())
    embedded = clip.token_embedding(tokens).detach()
    vectors = embedded[0, 1 : 1 + words].clone().requires_grad_()
    optimizer = torch.optim.AdamW([vectors], lr=lr)
    images, kept = unit(clip.encode_image(views)).detach(), None

    def logits() -> Tensor:
        parts = [embedded[:, :1], vectors.expand(len(classes), -1, -1), embedded[:, 1 + words :]]
        states = clip.ln_final(clip.text_blocks(torch.cat(parts, dim=1) + clip.positional_embedding))
        ends = states[torch.arange(len(classes)), tokens.argmax(dim=-1)]
        return clip.logit_scale.exp().detach() * images @ unit(ends @ clip.text_projection).T

    for _ in range(steps):
        told = logits()
        if kept is None:
            pool = torch.arange(len(views))
            if similar is not None:
                near = F.cosine_similarity(told[1:], told[:1], dim=1).argsort(descending=True)
                pool = torch.cat([pool[:1], 1 + near[: int((len(views) - 1) * similar)]])
            kept = pool[entropies(told)[pool].argsort()[: int(len(pool) * share)]]
        mean = told[kept].softmax(dim=1).mean(dim=0)
        optimizer.zero_grad()
        (-(mean * mean.log()).sum()).backward()
        optimizer.step()
    return logits()[0].detach()


class Caches:
    """TDA: lists of (key, entropy, probabilities) per class, image after image."""

    def __init__(self, clip: TinyClip, text: Tensor, method: Any) -> None:
        self.clip, self.text, self.method = clip, text, method
        self.positive: dict[int, list[tuple[Tensor, float, Tensor]]] = {}
        self.negative: dict[int, list[tuple[Tensor, float, Tensor]]] = {}

    @torch.no_grad()
    def __call__(self, views: Tensor) -> Tensor:
        features = unit(self.clip.encode_image(views))
        logits = 100 * features @ self.text.T
        kept = entropies(logits).argsort()[: int(0.1 * len(views))] if len(views) > 1 else torch.tensor([0])
        key, own = features[kept].mean(dim=0), logits[kept].mean(dim=0)
        probs = logits[kept].softmax(dim=1).mean(dim=0)
        unsure, method = float(-torch.xlogy(probs, probs).sum()), self.method
        item, label = (key, unsure, probs), int(own.argmax())
        self._store(self.positive, label, item, method.positive.slots)
        if method.entropies[0] < unsure / math.log2(len(self.text)) < method.entropies[1]:
            self._store(self.negative, label, item, method.negative.slots)
        answer = own.clone()
        for name, items in self.positive.items():
            answer[name] += sum(self._near(key, one, method.positive) for one in items)
        for one in (one for items in self.negative.values() for one in items):
            low, high = method.probs
            answer -= self._near(key, one, method.negative) * ((one[2] > low) & (one[2] < high)).to(answer)
        return answer

    @staticmethod
    def _store(cache: dict[int, list[Any]], label: int, item: tuple[Tensor, float, Tensor], slots: int) -> None:
        items = cache.setdefault(label, [])
        if len(items) < slots:
            items.append(item)
        elif items and item[1] < items[-1][1]:
            items[-1] = item
        items.sort(key=lambda one: one[1])

    @staticmethod
    def _near(key: Tensor, item: tuple[Tensor, float, Tensor], cache: Any) -> float:
        return float(cache.alpha * math.exp(-cache.beta * (1 - float(key @ item[0]))))
