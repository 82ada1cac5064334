"""Shared rules of the suite: no network, one thread per worker, the same random numbers every time."""

import socket
from importlib import import_module

import pytest
import torch

torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    connect = socket.socket.connect

    def only_local(self: socket.socket, address: object) -> None:
        host = address[0] if isinstance(address, tuple) else "local"
        if host not in ("local", "localhost", "127.0.0.1", "::1"):
            raise RuntimeError(f"a test tried to reach {address!r}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", only_local)


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _unguarded(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mechanics are tested on untrained networks at rates that no guard lets pass; whoever tests the guard names it."""
    if "tests/guard" not in str(request.path):
        monkeypatch.setattr("polytta.guard.policy.UNLESS_SAID", "off")


@pytest.fixture(autouse=True)
def _few_images_suffice(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mechanics are tested on batches of a few images by their own statistics; whoever tests small batches knows."""
    if request.path.name != "test_small_batches.py":
        for room in ("network.statistics", "settings.resolve", "engine.making"):
            monkeypatch.setattr(import_module(f"polytta.{room}"), "FEWEST_IMAGES", 4)
