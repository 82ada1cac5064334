"""A text encoder of whatever library: sentences to features, and prompts whose first words are vectors to learn."""

from collections.abc import Callable, Sequence
from inspect import signature
from textwrap import shorten
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from polytta.errors import InputError, ModelError

Tokenizer = Callable[..., Any]
_AT_ONCE = 16
_SENTENCES_KEPT = 8192


class TextEncoder:
    """Sentences to unit features. It is shared by all copies of a network, and none of its weights is ever adapted.

    Args:
        module: what holds the encoder's weights.
        encode: token numbers (N, L), and ``attention_mask`` where it has one, to features (N, D).
        tokenizer: a list of sentences to token numbers (N, L), as a tensor or under ``input_ids``.

    Attributes:
        kept: what methods have found out about it, until it is moved.
    """

    def __init__(self, module: nn.Module, encode: Callable[..., Any], tokenizer: Tokenizer) -> None:
        self.module, self._encode, self._tokenizer = module, encode, tokenizer
        self._takes_mask = "attention_mask" in signature(encode).parameters
        self._sees_hidden: bool | None = None
        self._embedding: nn.Module | None = None
        self._known: dict[str, Tensor] = {}
        self.kept: dict[Any, Any] = {}

    def __deepcopy__(self, memo: dict[int, object]) -> "TextEncoder":
        return self

    def move(self, change: Callable[[Tensor], Tensor]) -> None:
        """To another device or precision, for all networks that share it."""
        self.module._apply(change)
        self._known.clear()
        self.kept.clear()

    @property
    def device(self) -> torch.device:
        """Where its weights are."""
        return next(self.module.parameters()).device

    def tokens(self, sentences: Sequence[str]) -> Tensor:
        """(N, L) token numbers; InputError for what the tokenizer does not take, or has cut short."""
        return self.read(sentences)[0]

    def read(self, sentences: Sequence[str]) -> tuple[Tensor, Tensor | None]:
        """Token numbers as ``tokens``, and the tokenizer's mask of them (N, L) where the encoder needs one."""
        try:
            found = self._tokenizer(list(sentences))
        except Exception as error:
            raise InputError(
                f"tokenizer: got {type(error).__name__} ({error}) for {sentences[0]!r}; allowed is a callable from a "
                "list of sentences to token numbers."
            ) from error
        mask = None
        if not isinstance(found, Tensor) and hasattr(found, "keys") and "input_ids" in found:
            mask = found["attention_mask"] if self._takes_mask and "attention_mask" in found else None
            found = found["input_ids"]
        tokens = _numbers(found, len(sentences))
        self._require_whole(sentences, tokens)
        if mask is not None:
            mask = _numbers(mask, len(sentences))
            if mask.shape != tokens.shape:
                raise InputError(
                    f"tokenizer: got an attention_mask of {tuple(mask.shape)} for tokens of {tuple(tokens.shape)}; "
                    "allowed is one of their shape."
                )
        if mask is None or bool(mask.all()):
            return tokens.to(self.device), None
        tokens, mask = tokens.to(self.device), mask.to(self.device)
        return tokens, mask if self._sees(tokens, mask) else None

    def features(self, sentences: Sequence[str]) -> Tensor:
        """(N, D) unit features; every sentence is encoded once."""
        missing = list(dict.fromkeys(one for one in sentences if one not in self._known))
        for start in range(0, len(missing), _AT_ONCE):
            part = missing[start : start + _AT_ONCE]
            # Always as many, so that what a sentence becomes does not depend, in its last digit, on who was with it.
            filled = part + part[-1:] * (_AT_ONCE - len(part))
            with torch.no_grad(), torch.inference_mode(False):
                found = self.encoded(*self.read(filled))
            if not bool(found.isfinite().all()):
                raise ModelError("model: got text features with NaN or infinity; allowed are finite ones.")
            self._known.update(zip(part, found[: len(part)], strict=True))
        found = torch.stack([self._known[one] for one in sentences])
        for one in list(self._known)[: max(0, len(self._known) - _SENTENCES_KEPT)]:
            del self._known[one]
        return found

    def of_classes(self, classes: Sequence[str], templates: Sequence[str]) -> Tensor:
        """(templates, C, D) unit features of class names in sentences."""
        return torch.stack([self.features([one.replace("{}", name) for name in classes]) for one in templates])

    def encoded(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        """(N, D) unit features of (N, L) tokens; InputError for those of another vocabulary or length."""
        try:
            found = self._run(tokens, mask)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            said = f"{type(error).__name__}: {' '.join(str(error).split())}"
            raise InputError(
                f"tokenizer: got {tuple(tokens.shape)} token numbers up to {int(tokens.max())}, which the text encoder "
                f"cannot take; allowed is the model's own tokenizer; it said: {said}"
            ) from error
        return F.normalize(pooled(found), dim=-1)

    def embedded(self, tokens: Tensor) -> Tensor:
        """(N, L, W) what the encoder makes of token numbers first."""
        found: Tensor = self._embedding_layer(tokens)(tokens)
        return found.detach()

    def of_embedded(self, embedded: Tensor, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        """(N, D) unit features of (N, L, W) embeddings in place of those of ``tokens``, which say where texts end."""
        handle = self._embedding_layer(tokens).register_forward_hook(lambda *_: embedded)
        try:
            return F.normalize(pooled(self._run(tokens, mask)), dim=-1)
        finally:
            handle.remove()

    def _run(self, tokens: Tensor, mask: Tensor | None) -> Any:
        return self._encode(tokens) if mask is None else self._encode(tokens, attention_mask=mask)

    def _sees(self, tokens: Tensor, mask: Tensor) -> bool:
        """Whether features depend on what a mask hides, which those of causal encoders do not: they need no mask."""
        if self._sees_hidden is None:
            shown = tokens.gather(1, mask.ne(0).int().argmax(dim=1, keepdim=True))
            with torch.no_grad(), torch.inference_mode(False):
                bare, other = self.encoded(tokens), self.encoded(torch.where(mask.bool(), tokens, shown))
            self._sees_hidden = not torch.equal(bare, other)
        return self._sees_hidden

    def _embedding_layer(self, tokens: Tensor) -> nn.Module:
        """The layer that is given the token numbers."""
        if self._embedding is None:
            found: list[nn.Module] = []

            def note(layer: nn.Module, inputs: tuple[Any, ...], _: object) -> None:
                given = inputs[0] if inputs else None
                if isinstance(given, Tensor) and given.shape == tokens.shape and bool((given == tokens).all()):
                    found.append(layer)

            layers = [layer for layer in self.module.modules() if isinstance(layer, nn.Embedding)]
            handles = [layer.register_forward_hook(note) for layer in layers]
            try:
                with torch.no_grad():
                    self._encode(tokens)
            finally:
                for handle in handles:
                    handle.remove()
            if len(found) != 1:
                raise ModelError(
                    f"model: got a text encoder with {len(found)} embedding layers for its tokens; allowed is one, for "
                    "prompts that are learnt."
                )
            self._embedding = found[0]
        return self._embedding

    def _require_whole(self, sentences: Sequence[str], tokens: Tensor) -> None:
        """Tokenizers cut what is too long, some without a word."""
        count = getattr(self._tokenizer, "encode", None)
        if not callable(count):
            return
        # Some count the marks of beginning and end, some leave them to the caller.
        marks = 0 if hasattr(self._tokenizer, "model_max_length") else 2
        # Letters say little about tokens, so each sentence is counted.
        for sentence in dict.fromkeys(sentences):
            try:
                needed = len(count(sentence)) + marks
            except Exception:
                return
            if needed > tokens.shape[1]:
                raise InputError(
                    f"classes, templates: got {shorten(sentence, 60)!r}, which takes {needed} tokens; allowed are "
                    f"{tokens.shape[1]}, as the text encoder has."
                )


def _numbers(found: object, count: int) -> Tensor:
    """(N, L) whole numbers of ``count`` sentences from what a tokenizer returned."""
    got: object = type(found).__name__
    if isinstance(found, list) and found and all(isinstance(row, list | Tensor) for row in found):
        lengths = sorted({len(row) if isinstance(row, list) or row.dim() else 0 for row in found})
        if len(lengths) > 1:
            raise InputError(
                f"tokenizer: got rows of {lengths[0]} to {lengths[-1]} numbers for {count} sentences; allowed are rows "
                'of one length, for which tokenizers of transformers need padding="max_length".'
            )
        got = f"a list of {type(found[0]).__name__}"
    try:
        tokens = torch.as_tensor(found) if isinstance(found, Tensor | list) else None
    except Exception:
        tokens = None
    whole = tokens is not None and not tokens.is_floating_point() and not tokens.is_complex()
    if tokens is None or not whole or tokens.dim() != 2 or tokens.shape[0] != count or not tokens.shape[1]:
        got = got if tokens is None else tuple(tokens.shape) if whole else f"{tuple(tokens.shape)} of {tokens.dtype}"
        raise InputError(
            f"tokenizer: got {got} for {count} sentences; allowed are (N, L) whole numbers, or a dictionary with these "
            "as 'input_ids'."
        )
    return tokens


def pooled(output: Any) -> Tensor:
    """(N, D) features from what an encoder returns: a tensor, or an object that holds it."""
    for name in ("pooler_output", "text_embeds", "image_embeds"):
        if not isinstance(output, Tensor) and isinstance(getattr(output, name, None), Tensor):
            output = getattr(output, name)
    if isinstance(output, tuple) and output and isinstance(output[0], Tensor):
        output = output[0]
    if not isinstance(output, Tensor) or output.dim() != 2:
        got = tuple(output.shape) if isinstance(output, Tensor) else type(output).__name__
        raise ModelError(f"model: got {got} from an encoder; allowed are (N, D) features.")
    return output
