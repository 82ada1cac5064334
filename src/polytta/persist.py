"""States on disk: one safetensors file, tensors plus a JSON header that says what they belong to.

Loading runs no code from the file, and imports none that a file names. Everything is checked before an adapter is made:
the file itself, a digest over all tensors and settings, and that the model is the one the particles started from.
"""

import hashlib
import json
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor, nn

from polytta.engine import PopulationState, Session
from polytta.engine.making import first_state
from polytta.errors import PolyttaError, StateError
from polytta.report import Totals
from polytta.settings import Settings
from polytta.settings.older import settings_of_format_1
from polytta.settings.plain import from_plain, to_plain
from polytta.settings.resolve import MOST_CLASSES
from polytta.system.files import write_whole
from polytta.system.json_text import parsed

if TYPE_CHECKING:
    from polytta.adapter import Adapted

FORMAT = "polytta-state-2"
OLDER_FORMAT = "polytta-state-1"
_CLASSES = "classes"
_GUARD = "guard_"
_MOST_STEPS = 2**53
_WHOLE = "whole:"
_SPREAD = 0x9E3779B97F4A7C1
_AT_ONCE = 2**22
_NEWER = ("evidence_fine_", "evidence_agreement", "evidence_turn_", "evidence_chain_", "evidence_idle",
          "evidence_asleep", _GUARD)  # fmt: skip
"""Tensors that older states of this format do not have."""
_MOST = 1e30
"""Sums and products of larger numbers leave the range of float32."""
_ROUNDING = 0.1
"""By which probabilities of models in half precision may miss what they are to add up to."""
_COUNTS = re.compile("step|guard_.*|optimizer_count|method_(.*_)?(collected|batches)")
_OF_METHODS = re.compile("method_(.*_)?(mean_probs|entropy_average|window|(positive|negative)_(keys|entropy|probs))")
_DISTRIBUTIONS = re.compile(
    "(evidence|method)_(.*_)?probs|evidence_(turn|chain)_(mean|recent|message)|guard_(source_)?answers"
)
_RANGES = (
    (_DISTRIBUTIONS, 0, 1 + _ROUNDING, "probabilities from 0 to 1, of 1 in all"),
    (re.compile("evidence_(fine_)?agreement|evidence_turn_(near|far|self)"), -_ROUNDING, 1 + _ROUNDING, "shares of 1"),
    (re.compile("(evidence|method)_(.*_)?entropy(_average)?"), -_ROUNDING, _MOST, f"numbers from 0 to {_MOST:g}"),
    (
        re.compile("learning_rates|pace_.*|optimizer_exp_avg_sq|evidence_(.*_)?(images|idle|asleep)|guard_compared"),
        0,
        _MOST,
        f"numbers from 0 to {_MOST:g}",
    ),
    (re.compile(".*"), -_MOST, _MOST, f"finite numbers within {_MOST:g}"),
)
"""Of a tensor by its name, the first that fits: smallest and largest value, and both in words."""


@dataclass(frozen=True)
class Stored:
    """What a state file says.

    Attributes:
        tensors: the state by name.
        settings: all options.
        lr_origin: where the learning rates came from, in words.
        source: fingerprint of the network.
        totals: sums over all steps.
    """

    tensors: dict[str, Tensor]
    settings: Settings
    lr_origin: str
    source: str
    totals: Totals


def save(adapted: "Adapted", path: Path) -> None:
    """Writes beside the target and renames, so that a crash leaves the old file or the new one, never half of one."""
    state = named_state(adapted._session.state)
    tensors = {name: value.detach().cpu().contiguous() for name, value in state.items()}
    header = {
        "settings": to_plain(adapted.settings),
        "lr_origin": adapted.lr_origin,
        "source": fingerprint(adapted.source_network, adapted._first_buffers),
        "totals": vars(adapted.totals),
    }
    text = json.dumps(header, sort_keys=True)
    metadata = {"format": FORMAT, "header": text, "digest": _digest(tensors, text)}
    write_whole(path, to_bytes(tensors, metadata))


def read(path: Path) -> Stored:
    """A state file that is whole and ours."""
    if not _is_file(path):
        raise StateError(f"path: got {str(path)!r}, which is not a file; allowed is one written by Adapted.save.")
    try:
        with safe_open(str(path), framework="pt", device="cpu") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, RuntimeError) as error:
        raise StateError(
            f"path: got {str(path)!r}, not a readable state file ({error}); allowed is one written by Adapted.save."
        ) from error
    if metadata.get("format") not in (FORMAT, OLDER_FORMAT):
        found = metadata.get("format", "no format mark")
        raise StateError(f"path: got {str(path)!r} in {found!r}; allowed are {FORMAT!r} and {OLDER_FORMAT!r}.")
    if metadata.get("digest") != _digest(tensors, metadata.get("header", "")):
        raise StateError(
            f"path: got {str(path)!r}, which is damaged: its contents do not match its digest; allowed is a whole one."
        )
    try:
        header = parsed(metadata["header"])
        if metadata["format"] == OLDER_FORMAT:
            settings, origin = settings_of_format_1(header["config"]), header["config"]["lr_origin"]
        else:
            settings, origin = from_plain(header["settings"]), header["lr_origin"]
        _check_kinds(settings)
        return Stored(tensors, settings, str(origin), str(header["source"]), Totals.from_plain(header["totals"]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, PolyttaError):
            raise
        raise StateError(
            f"path: got {str(path)!r}, whose settings are incomplete ({error}); allowed are all."
        ) from error


def _is_file(path: Path) -> bool:
    """Names that are too long for a file are of none."""
    try:
        return path.is_file()
    except OSError:
        return False


def _check_kinds(settings: Settings) -> None:
    """Refuses null and numbers for options that are neither; all else is checked wherever options come from."""
    for name, hint in get_type_hints(Settings).items():
        value, kinds = getattr(settings, name), get_args(hint) or (hint,)
        lacking = value is None and type(None) not in kinds
        if lacking or (isinstance(value, int | float) and not {int, float, bool} & set(kinds)):
            raise StateError(f"{name}: got {value!r}; allowed is what Adapted.save wrote.")


def check_parts(settings: Settings, path: Path, given: Collection[str]) -> None:
    """Refuses a file that names code nobody here has imported: a file is not to choose what is run."""
    for option, value in to_plain(settings).items():
        for name in _paths_in(value) if option not in given else ():
            module = name.partition(":")[0]
            if module not in sys.modules or module.partition(".")[0] in sys.stdlib_module_names:
                raise StateError(
                    f"{option}: got {name!r} from {str(path)!r}; allowed is a module that was imported before, "
                    f"or {option}= in polytta.load."
                )


def _paths_in(value: Any) -> Iterator[str]:
    """Every ``module:name`` in a plain value."""
    if isinstance(value, str) and ":" in value and " " not in value:
        yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _paths_in(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _paths_in(one)


def named_state(state: PopulationState) -> dict[str, Tensor]:
    """All tensors of a state by name, and the number of classes."""
    return {**state.named(), _CLASSES: torch.tensor(state.num_classes)}


def load_named_state(session: Session, tensors: Mapping[str, Any]) -> None:
    """Makes a session go on from tensors by name, after checking that all of them fit."""
    if not isinstance(tensors, Mapping):
        raise StateError(f"state_dict: got {type(tensors).__name__}; allowed is what state_dict() returned.")
    if not all(isinstance(name, str) for name in tensors):
        raise StateError("state_dict: got a name that is no text; allowed is what state_dict() returned.")
    known = None if session.findings is None else session.findings.num_classes
    expected = first_state(session, check_classes(tensors, known))
    # What newer versions know of particles begins anew, and what another guard knew.
    newer = {name: value for name, value in named_state(expected).items() if name.startswith(_NEWER)}
    if _shapes(tensors) != _shapes(newer):
        tensors = {name: value for name, value in tensors.items() if not name.startswith(_GUARD)}
    tensors = {**newer, **tensors}
    check_fits(tensors, named_state(expected))
    with torch.inference_mode(False):
        own = {name: tensors[name].detach().to(buffer.device, copy=True) for name, buffer in expected.named().items()}
        session.resume(expected.with_named(own))


def _shapes(tensors: Mapping[str, Any]) -> dict[str, object]:
    """Of what a guard knows."""
    return {name: getattr(value, "shape", None) for name, value in tensors.items() if name.startswith(_GUARD)}


def resume(adapted: "Adapted", stored: Stored, *, keep_rates: bool) -> None:
    """Makes an adapter go on where a file left off; learning rates are the file's, or the adapter's own."""
    session, tensors = adapted._session, dict(stored.tensors)
    if not stored.totals.fit(session.config.rows):
        raise StateError(f"totals: got those of other particles; allowed are lists of {session.config.rows}.")
    if not keep_rates:
        tensors["learning_rates"] = session.state.learning_rates
    load_named_state(session, tensors)
    if keep_rates:
        session.rates_origin = stored.lr_origin
    session.ledger.totals = stored.totals


def check_fits(tensors: Mapping[str, Any], expected: Mapping[str, Tensor]) -> None:
    """Refuses a state that is not made of exactly the expected tensors."""
    wrong = sorted(expected.keys() ^ tensors.keys())
    if wrong:
        raise StateError(f"state_dict: got {wrong[0]!r} missing or unknown; allowed are exactly {sorted(expected)}.")
    for name, buffer in expected.items():
        got = tensors[name]
        dense = isinstance(got, Tensor) and got.layout is torch.strided and not got.is_nested
        if not dense or not _fits(got.shape, buffer.shape) or got.dtype != buffer.dtype:
            shape = (tuple(got.shape), got.dtype) if isinstance(got, Tensor) else type(got).__name__
            raise StateError(f"state_dict: got {shape} for {name!r}; allowed is {(tuple(buffer.shape), buffer.dtype)}.")
        _check_values(name, got)


def _check_values(name: str, got: Tensor) -> None:
    """Refuses numbers that no step leaves behind."""
    if not got.is_floating_point():
        # Counts of steps and images; noise and schedules go by them.
        wrong = bool(_COUNTS.fullmatch(name)) and bool(((got < 0) | (got > _MOST_STEPS)).any())
        allowed = f"numbers from 0 to {_MOST_STEPS}"
    elif name.startswith("method_") and not _OF_METHODS.fullmatch(name):
        # Methods of one's own may mark by NaN or infinity what they do not have yet.
        wrong, allowed = False, ""
    else:
        least, most, allowed = next(known[1:] for known in _RANGES if known[0].fullmatch(name))
        fine = (got >= least) & (got <= most)
        # What is not known yet is NaN for a moving average and for all learning rates, and infinite for an empty slot.
        if name == "learning_rates":
            fine = fine | got.isnan().all()
        elif name.endswith("_entropy_average"):
            fine = fine | got.isnan()
        elif name.endswith(("positive_entropy", "negative_entropy")):
            fine = fine | (got == torch.inf)
        wrong = not bool(fine.all())
        if not wrong and _DISTRIBUTIONS.fullmatch(name):
            wrong = bool((got.sum(dim=-1) > 1 + _ROUNDING).any())
    if wrong:
        raise StateError(f"state_dict: got a value in {name!r} that no step leaves behind; allowed are {allowed}.")


def _fits(got: Sequence[int], expected: Sequence[int]) -> bool:
    """Whether a tensor's sizes are those expected; where a 0 ends them, the images of the first batch decide."""
    return got == expected or (expected[-1:] == (0,) and got[: len(expected) - 1] == expected[:-1])


def check_classes(tensors: Mapping[str, Any], known: int | None) -> int:
    """Number of classes of a state, 0 before the first batch; refuses one of another number than is known."""
    classes = tensors.get(_CLASSES)
    if not isinstance(classes, Tensor) or classes.numel() != 1 or not 0 <= int(classes) <= MOST_CLASSES:
        raise StateError("state_dict: got no complete adaptation state; allowed is what state_dict() returned.")
    if int(classes) and known is not None and int(classes) != known:
        raise StateError(f"state_dict: got one of {int(classes)} classes; allowed are {known}, as the model has.")
    return int(classes)


def check_source(adapted: "Adapted", stored: Stored, path: Path) -> None:
    """Refuses particles that belong to another network."""
    network, newer = adapted.source_network, stored.source.startswith(_WHOLE)
    found = fingerprint(network, adapted._first_buffers) if newer else _sampled_fingerprint(network)
    if stored.source != found:
        raise StateError(
            f"model: got one with other weights than the state in {str(path)!r} belongs to; allowed is the same one."
        )


def buffers_of(network: nn.Module) -> dict[str, Tensor]:
    """Copies of what a forward may write to: a network is known again by what it was before the first."""
    parameters = _parameter_names(network)
    with torch.inference_mode(False):
        return {
            name: value.detach().clone()
            for name, value in network.state_dict().items()
            if name not in parameters and isinstance(value, Tensor)
        }


def fingerprint(network: nn.Module, buffers: Mapping[str, Tensor]) -> str:
    """Every value of every tensor, and what the layers are: their classes, and settings such as eps.

    Weights are read off the network; ``buffers`` are those it began with.
    """
    digest = hashlib.sha256()
    for name, module in network.named_modules():
        kind, eps = type(module), getattr(module, "eps", None)
        digest.update(f"{name}:{kind.__module__}.{kind.__qualname__}:{eps}:{module.extra_repr()}\n".encode())
    parameters = _parameter_names(network)
    for name, value in {**network.state_dict(), **buffers}.items():
        if name in parameters or name in buffers:
            digest.update(f"{name}:{value.dtype}:{tuple(value.shape)}:{_summed(value)}\n".encode())
    return _WHOLE + digest.hexdigest()


def _parameter_names(network: nn.Module) -> set[str]:
    return {name for name, _ in network.named_parameters(remove_duplicate=False)}


@torch.no_grad()
def _summed(value: Tensor) -> tuple[int, int]:
    """Two sums over all bits, one of them weighed by place: fast where the tensor is, and hard to meet by chance."""
    flat = value.detach().reshape(-1).contiguous().view(torch.uint8)
    flat = flat.view(torch.int32) if flat.numel() % 4 == 0 and flat.data_ptr() % 4 == 0 else flat
    total, spread, first = 0, 0, 1
    for part in flat.split(_AT_ONCE):
        whole = part.to(torch.int64)
        place = torch.arange(first, first + len(part), device=part.device)
        total, first = (total + int(whole.sum())) % 2**64, first + len(part)
        spread = (spread + int(((whole + 1) * (place * _SPREAD)).sum())) % 2**64
    return total, spread


def _sampled_fingerprint(network: nn.Module) -> str:
    """That of older files: names, shapes and up to a thousand spread-out values of every tensor."""
    sampled = {}
    for name, value in network.state_dict().items():
        flat = value.detach().reshape(-1)
        sampled[f"{name} {tuple(value.shape)}"] = flat[:: max(1, flat.numel() // 1000)].cpu()
    return _digest(sampled)


def _digest(tensors: dict[str, Tensor], text: str = "") -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        value = tensors[name]
        digest.update(f"{name}:{value.dtype}:{tuple(value.shape)}:".encode())
        digest.update(value.reshape(-1).contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
