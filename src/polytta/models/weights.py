"""Loads weights without running anything in the file: safetensors, or torch files under ``weights_only``."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TypeAlias

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from polytta.errors import DataError, InputError

WeightsPath: TypeAlias = str | os.PathLike[str]

WRAPPERS = ("state_dict", "model", "model_state_dict")
CHUNK = 1 << 20


def load_weights(module: nn.Module, path: WeightsPath) -> str:
    """Load a file into a module, every name and shape matching, and return the file's SHA-256."""
    file = Path(path).expanduser()
    state = read_state(file)
    own = module.state_dict()
    missing = sorted(name for name in own.keys() - state.keys() if not name.endswith("num_batches_tracked"))
    unknown = sorted(state.keys() - own.keys())
    if missing or unknown:
        first = f"lacks {missing[0]}" if missing else f"has the unknown {unknown[0]}"
        raise InputError(
            f"weights: got {file}, which {first} ({len(missing)} names missing, {len(unknown)} unknown); "
            "allowed are those of the model."
        )
    for name, tensor in state.items():
        if tensor.shape != own[name].shape:
            found, expected = tuple(tensor.shape), tuple(own[name].shape)
            raise InputError(f"weights: got {file}, where {name} has shape {found}; allowed is {expected}.")
    module.load_state_dict(state, strict=False)
    return sha256_of(file)


def read_state(file: Path) -> dict[str, Tensor]:
    """Read named tensors; the wrappers and prefixes that training scripts add are taken off."""
    if not file.is_file():
        raise DataError(f"weights: got {file}, which is missing; allowed is a file of weights.")
    try:
        if file.suffix == ".safetensors":
            return load_file(file)
        loaded = torch.load(file, map_location="cpu", weights_only=True)
    # What a damaged file makes a parser raise has no end.
    except Exception as error:
        raise InputError(
            f"weights: got {file}, which does not load safely; allowed are safetensors, or a torch file of tensors."
        ) from error
    for key in WRAPPERS:
        if isinstance(loaded, dict) and isinstance(loaded.get(key), dict):
            loaded = loaded[key]
    if not isinstance(loaded, dict) or not all(isinstance(key, str) and _plain(loaded[key]) for key in loaded):
        raise InputError(f"weights: got {file}, which holds no named tensors; allowed is a state dict.")
    return {name.removeprefix("module."): tensor for name, tensor in loaded.items()}


def _plain(value: object) -> bool:
    """Whether it is a dense tensor of real numbers."""
    dense = isinstance(value, Tensor) and value.layout is torch.strided and not value.is_nested
    return dense and isinstance(value, Tensor) and not value.is_complex()


def sha256_of(file: Path) -> str:
    """Hash a file piece by piece."""
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while chunk := stream.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def missing_weights(model_id: str, file: str, where: str) -> DataError:
    """Build the error for a zoo model asked for without its weights: nothing is downloaded."""
    return DataError(f"weights: got none for {model_id}; allowed is {file} ({where}), as `weights` or {model_id}=FILE.")
