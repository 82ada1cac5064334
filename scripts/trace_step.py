"""How one batch travels through the rooms: ``python scripts/trace_step.py [--list]``.

Adapts a small network of its own (DeYO with KL, three particles, on the CPU, every filter passed by some image) for two
batches and writes down every call of a polytta function during the third. A room is a folder of the package; the files
beside the folders are one room together. A change of room is a call in another room than the call before it.
"""

import argparse
import sys
from itertools import pairwise
from pathlib import Path
from types import FrameType

import torch
from torch import Tensor, nn

import polytta

PACKAGE = Path(polytta.__file__).parent


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.norms = nn.ModuleList([nn.GroupNorm(2, 8) for _ in range(4)])
        self.head = nn.Linear(8, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for norm in self.norms:
            x = x + nn.functional.silu(norm(x))
        return 12 * self.head(x.mean(dim=(2, 3)))


def trace() -> list[tuple[str, str]]:
    """(file, function) of every call during one step."""
    torch.manual_seed(0)
    method = polytta.methods.DeYO(entropy_threshold=0.9, plpd_threshold=-0.5)
    adapted = polytta.adapt(Network().eval(), method, diversity="kl", particles=3, lr=0.01, exclude=None)
    batches = torch.randn(3, 6, 3, 8, 8)
    calls: list[tuple[str, str]] = []

    def note(frame: FrameType, event: str, _argument: object) -> None:
        file = Path(frame.f_code.co_filename)
        if event == "call" and file.is_relative_to(PACKAGE):
            calls.append((file.relative_to(PACKAGE).as_posix(), frame.f_code.co_name))

    for x in batches[:2]:
        adapted(x)
    sys.setprofile(note)
    try:
        adapted(batches[2])
    finally:
        sys.setprofile(None)
    if not all(adapted.last.stepped):
        raise RuntimeError("some particle kept no image, so the trace is not of a whole step")
    return calls


def room(file: str) -> str:
    return file.partition("/")[0] if "/" in file else "polytta"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="print every call")
    calls = trace()
    if parser.parse_args().list:
        for file, function in calls:
            print(f"{room(file):<10} {file}: {function}")
    rooms = [room(file) for file, _ in calls]
    visits = [rooms[0], *(after for before, after in pairwise(rooms) if before != after)]
    print(" > ".join(visits))
    print(f"{len(calls)} calls, {len({file for file, _ in calls})} files, {len(visits) - 1} changes of room")


if __name__ == "__main__":
    main()
