"""States on disk: one safetensors file, tensors plus a JSON header that says what they belong to.

Loading runs no code from the file. Everything is checked before an adapter is made: the file itself, a digest over all
tensors and settings, and that the model's own norm parameters are those the particles started from.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor, nn

from polytta.errors import StateError
from polytta.system.files import write_whole

if TYPE_CHECKING:
    from polytta.adapter import Adapted

FORMAT = "polytta-state-1"


def save(adapted: "Adapted", path: Path) -> None:
    """Writes beside the target and renames, so that a crash leaves the old file or the new one, never half of one."""
    tensors = {name: value.detach().cpu().contiguous() for name, value in adapted.state_dict().items()}
    header = {
        "config": adapted.config.to_dict(),
        "source": _fingerprint(adapted.source_network),
        "totals": vars(adapted.totals),
    }
    text = json.dumps(header, sort_keys=True)
    metadata = {"format": FORMAT, "header": text, "digest": _digest(tensors, text)}
    write_whole(path, to_bytes(tensors, metadata))


def read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and header of a state file that is whole and ours."""
    if not path.is_file():
        raise StateError(f"path: {str(path)!r} is not a file; allowed is one written by Adapted.save.")
    try:
        with safe_open(str(path), framework="pt", device="cpu") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, RuntimeError) as error:
        raise StateError(f"path: {str(path)!r} is not a readable state file ({error}).") from error
    if metadata.get("format") != FORMAT:
        found = metadata.get("format", "no format mark")
        raise StateError(f"path: {str(path)!r} has {found!r}; allowed is {FORMAT!r}, as written by Adapted.save.")
    if metadata.get("digest") != _digest(tensors, metadata.get("header", "")):
        raise StateError(f"path: {str(path)!r} is damaged: its contents do not match the digest stored with them.")
    return tensors, json.loads(metadata["header"])


def check_fits(tensors: Mapping[str, Any], expected: Mapping[str, Tensor]) -> None:
    """Refuses a state that is not made of exactly the expected tensors."""
    wrong = sorted(expected.keys() ^ tensors.keys())
    if wrong:
        raise StateError(f"state_dict: {wrong[0]!r} is missing or unknown; needed are {sorted(expected)}.")
    for name, buffer in expected.items():
        got = tensors[name]
        if not isinstance(got, Tensor) or got.shape != buffer.shape or got.dtype != buffer.dtype:
            shape = (tuple(got.shape), got.dtype) if isinstance(got, Tensor) else type(got).__name__
            raise StateError(f"state_dict: {name!r} is {shape}; allowed is {(tuple(buffer.shape), buffer.dtype)}.")
        if name == "theta" and not bool(got.isfinite().all()):
            raise StateError("state_dict: 'theta' has non-finite values; allowed are finite ones.")


def check_classes(tensors: Mapping[str, Any], known: int | None) -> int:
    """Number of classes of a state, 0 before the first batch; refuses one of another number than is known."""
    classes = tensors.get("classes")
    if not isinstance(classes, Tensor):
        raise StateError("state_dict: got no complete adaptation state; allowed is what state_dict() returned.")
    if int(classes) and known is not None and int(classes) != known:
        raise StateError(f"state_dict: it is of {int(classes)} classes; the model has {known}.")
    return int(classes)


def check_source(adapted: "Adapted", header: dict[str, Any], path: Path) -> None:
    """Refuses particles that belong to another network."""
    if header.get("source") != _fingerprint(adapted.source_network):
        raise StateError(
            f"model: the state in {str(path)!r} belongs to a network with other weights; allowed is the same one."
        )


def _fingerprint(network: nn.Module) -> str:
    """Names, shapes and up to a thousand spread-out values of every tensor: fast on large models, and hard to meet."""
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
