"""How much faster a benchmark of light cells gets with a second worker, on this machine and on a local Ray cluster.

Each worker first runs a cell that is not counted: starting Python and importing torch takes longer than a light cell.
The network waits most of its time, as for a device that does the work, so that what is measured is how well the runner
keeps its workers busy and not how many free cores the machine has; --model bundled/cifar10_resnet_gn measures both.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor, nn

from polytta.lab.bench import Execution, Grid
from polytta.lab.bench.groups import CellOutcome, Group, make_groups
from polytta.lab.bench.on_machine import run_on_machine
from polytta.lab.bench.on_ray import run_on_ray
from polytta.lab.bench.plan import plan_cell
from polytta.models import Preprocessing, SourceModel

EXECUTION = Execution(device="cpu", fold="never")
Runner = Callable[[Sequence[Group]], Iterator[list[CellOutcome]]]


class Waiting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(1, 3)
        self.head = nn.Linear(3, 10)

    def forward(self, x: Tensor) -> Tensor:
        time.sleep(0.01)
        return self.head(self.norm(x).mean(dim=(2, 3)))


def waiting() -> SourceModel:
    torch.manual_seed(0)
    return SourceModel("", Waiting(), Preprocessing((0.5,) * 3, (0.25,) * 3, 32, 32), 10, "")


def groups(model: str, cells: int, images: int) -> list[Group]:
    seeds = tuple(range(cells))
    grid = Grid(models=(model,), corruptions=("contrast",), variants=("tent",), images=images, seeds=seeds)
    return make_groups([plan_cell(cell) for cell in grid.cells()], EXECUTION)


def seconds_after(runner: Runner, work: Sequence[Group], warm_up: Sequence[Group]) -> float:
    """From the end of the warm-up cells, which are handed out first, to the end of all."""
    start = 0.0
    for done, outcomes in enumerate(runner([*warm_up, *work]), start=1):
        assert all(hasattr(outcome, "results") for outcome in outcomes), outcomes
        if done == len(warm_up):
            start = time.perf_counter()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="runners:waiting")
    parser.add_argument("--cells", type=int, default=16)
    parser.add_argument("--images", type=int, default=100)
    parser.add_argument("--ray", action="store_true", help="measure Ray too")
    options = parser.parse_args()
    work = groups(options.model, options.cells, options.images)
    print(f"{options.cells} cells of {options.images} images")
    for name in ("processes", "ray")[: 1 + options.ray]:
        times = {}
        for workers in (1, 2):
            warm_up = groups(options.model, workers, 20)
            if name == "ray":
                import ray

                ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False)
                times[workers] = seconds_after(lambda g: run_on_ray(g, int, EXECUTION, None), work, warm_up)
                ray.shutdown()
            else:
                times[workers] = seconds_after(lambda g, n=workers: run_on_machine(g, int, EXECUTION, n), work, warm_up)
        print(
            f"{name:<10}1 worker {times[1]:.1f} s, 2 workers {times[2]:.1f} s, {times[1] / times[2]:.2f} times as fast"
        )


if __name__ == "__main__":
    main()
