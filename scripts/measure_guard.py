"""What the guard costs, and how often it alarms where nothing is wrong.

    python scripts/measure_guard.py cost [--device cuda]
    python scripts/measure_guard.py alarms [--device cuda] [--images 100000] [--models bundled/cifar10_resnet_gn]
    python scripts/measure_guard.py loudness [--models bundled/cifar10_resnet_bn] [--distinct 192] [--seed 1]
    python scripts/measure_guard.py signals [--models bundled/cifar10_resnet_gn] [--rows tent deyo] [--distinct 500]
    python scripts/measure_guard.py sides [--models bundled/cifar10_resnet_bn]

Cost: milliseconds of a step with the guard off and on, taken in turn within one process, the least of each, since
others on the machine only ever add. Alarms: honest images for ever (clean ones shuffled, or classes one after the
other, 500 images of each), at the rates nobody had to give; printed are steps with a particle judged to have collapsed,
and every action of the guard. Loudness: how loud the loudest honest image of a batch is to its neighbours
(``polytta.network.neighbours``), and how many are set aside, for clean images, eleven corruptions that the bound was
not set on, and all of them mixed. Signals: the least and the most of each number of ``adapted.last.signals`` over the
second half of 30 steps, batches of 16, on honest streams and on some that ruin a particle. Sides: batches of 32 images
of all classes and of one, clean and under every corruption at severity 5, that are taken for images of one class
(``polytta.network.one_sided``), and percent right by stored statistics, by those of the batch, and as is decided.
"""

import argparse
import time
from contextlib import suppress

import torch
from torch import Tensor, nn
from tqdm import tqdm

import polytta
from polytta.data.corruption_names import CORRUPTIONS
from polytta.lab.attack.crafted import Attacker
from polytta.lab.attack.material import open_images
from polytta.lab.attack.streams import ATTACKS, Material, clean
from polytta.network.copies import share_structure
from polytta.network.neighbours import LOOK_AT, LOUD, loudness_of, moments
from polytta.network.norms import is_batch_norm
from polytta.network.one_sided import OneSided
from polytta.network.statistics import use_statistics

MODELS = ("bundled/cifar10_resnet_gn", "bundled/cifar10_vit_ln", "bundled/cifar10_resnet_bn")
ROWS: dict[str, dict[str, object]] = {
    "default": {},
    "tent": {"method": "tent", "particles": 1},
    "deyo": {"method": "deyo", "particles": 1},
}
SIGNAL_STREAMS = (
    *(("clean", 1), ("one-class", 1), ("glass_blur", 1)),
    *(("glass_blur", 16), ("glass_blur", 100), ("noise", 100)),
)
"""And the learning rate, as a multiple of the reference one; the first three ruin nothing within 30 steps."""
IN_A_ROW = 500
"""Images of one class before the next."""
HONEST = (
    *("shot_noise", "defocus_blur", "zoom_blur", "snow", "frost", "elastic_transform", "jpeg_compression"),
    *("speckle_noise", "gaussian_blur", "spatter", "saturate"),
)


def now(device: str) -> float:
    """Seconds, of the processor's time on a CPU, which others may be using."""
    if not device.startswith("cuda"):
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()


def cost(options: argparse.Namespace) -> None:
    """Prints milliseconds of a step with the guard off and on."""
    for name in options.models:
        # Images of noise look like one class to BatchNorm, and who sees that looks again at every step.
        source, images, _ = open_images(name, options.dataset, 64, options.seed)
        model = source.module.to(options.device)
        for batch in (1, 64):
            x = images[:batch].to(options.device)
            for row in options.rows:
                both = [polytta.adapt(model, guard=guard, **ROWS[row]) for guard in ("off", "default")]  # type: ignore[arg-type]
                took: list[list[float]] = [[], []]
                for turn in range(options.repeats + 2):
                    for own, adapted in zip(took, both, strict=True):
                        began = now(options.device)
                        for _ in range(options.calls):
                            adapted(x)
                        if turn >= 2:
                            own.append((now(options.device) - began) / options.calls)
                off, on = (1000 * min(own) for own in took)
                print(
                    f"{name} batch {batch} {row}: {off:.3f} ms off, {on:.3f} ms on, {100 * (on / off - 1):+.1f} %",
                    flush=True,
                )


def honest(x: Tensor, labels: Tensor, images: int, batch: int, *, in_turn: bool) -> list[Tensor]:
    """Places of every batch."""
    draw, found = torch.Generator().manual_seed(0), list[Tensor]()
    while sum(map(len, found)) < images:
        if in_turn:
            for one in range(int(labels.max()) + 1):
                places = (labels == one).nonzero().flatten()
                found.append(places[torch.randint(len(places), (IN_A_ROW,), generator=draw)])
        else:
            found.append(torch.randperm(len(x), generator=draw))
    return list(torch.cat(found)[:images].split(batch))


def alarms(options: argparse.Namespace) -> None:
    """Prints what the guard did on honest streams."""
    for name in options.models:
        source, x, numbers = open_images(name, options.dataset, options.distinct, 0)
        labels = torch.from_numpy(numbers)
        x, model = x.to(options.device), source.module.to(options.device)
        for row in options.rows:
            for in_turn in (False, True):
                adapted = polytta.adapt(model, **ROWS[row])  # type: ignore[arg-type]
                collapsed = 0
                places = honest(x, labels, options.images, options.batch_size, in_turn=in_turn)
                for own in tqdm(places, desc=f"{name} {row}", mininterval=10):
                    adapted(x[own.to(options.device)])
                    collapsed += adapted.last is not None and "collapsed" in adapted.last.health
                done = {one: sum(counts) for one, counts in sorted(adapted.totals.actions.items())}
                stream = "classes in turn" if in_turn else "shuffled"
                print(f"{name} {row}, {stream}, {options.images} images: {collapsed} collapses, {done}", flush=True)


def signals(options: argparse.Namespace) -> None:
    """Prints what signals are on healthy streams and on ruinous ones, without a guard."""
    nobody = Attacker(nn.Identity(), 0.0, 1, by_batch=False)
    for name in options.models:
        source, x, numbers = open_images(name, options.dataset, options.distinct, options.seed)
        blurred = open_images(name, options.dataset, options.distinct, options.seed, "glass_blur")[1]
        for row in options.rows:
            for stream, rate in SIGNAL_STREAMS:
                images = blurred if stream == "glass_blur" else x
                given = Material(images, torch.from_numpy(numbers), 16, 30, 0.5, nobody)
                scale = {"pace": (0.0, 0.1 * rate)} if row == "default" else {"lr": 2.5e-4 * rate}
                preset = {"preset": "recommended"} if row == "default" else {}
                adapted = polytta.adapt(source.module, **ROWS[row], **preset, **scale, guard="off")  # type: ignore[arg-type]
                seen = []
                for step in ATTACKS.get(stream, clean)(given):
                    adapted(step.x)
                    assert adapted.last is not None
                    seen += [one for one in adapted.last.signals if one.drift > 0]
                told = []
                for signal in ("loss", "gradient_norm", "selected_share", "entropy", "disagreement", "drift"):
                    values = [getattr(one, signal) for one in seen[len(seen) // 2 :]]
                    told.append(f"{signal} {min(values):.2g} to {max(values):.2g}")
                print(f"{name} {row}, {stream} x{rate}: {', '.join(told)}", flush=True)


class _EnoughError(Exception):
    """Nothing after the layer looked at is needed."""


def loudness(options: argparse.Namespace) -> None:
    """Prints how loud honest images are in batches of three sizes."""
    for name in options.models:
        source, x, _ = open_images(name, options.dataset, options.distinct, options.seed)
        network = share_structure(source.module)
        use_statistics(network, "batch")
        layers = [module for module in network.modules() if is_batch_norm(module)]
        if len(layers) <= LOOK_AT:
            continue
        seen: list[Tensor] = []

        def look(_: nn.Module, inputs: tuple[Tensor, ...], seen: list[Tensor] = seen) -> None:
            seen.append(inputs[0])
            raise _EnoughError

        layers[LOOK_AT].register_forward_pre_hook(look)
        streams = {"clean": x}
        for corruption in HONEST:
            streams[corruption] = open_images(name, options.dataset, options.distinct, options.seed, corruption)[1]
        kinds = list(streams.values())
        streams["mixed"] = torch.stack([kinds[n % len(kinds)][n] for n in range(len(x))])
        for stream, images in streams.items():
            told = []
            for batch in (8, 16, 64):
                found = []
                for part in images.split(batch):
                    with torch.no_grad(), suppress(_EnoughError):
                        network(part)
                    mean, var = (one.unsqueeze(0) for one in moments(seen.pop()))
                    found.append(loudness_of(mean, var, torch.ones(1, len(part), dtype=torch.bool)).flatten())
                every = torch.cat(found)
                told.append(f"{batch}: {float(every.max()):.1f} ({int((every > LOUD).sum())} set aside)")
            print(f"{name} {stream}, loudest in batches of {', '.join(told)}", flush=True)


def sides(options: argparse.Namespace) -> None:
    """Prints how often batches of all classes, and of one, are taken for batches of one."""
    for name in options.models:
        clean_images = open_images(name, options.dataset, options.distinct, options.seed)
        source, _, numbers = clean_images
        told, labels = OneSided(source.module), torch.from_numpy(numbers)
        by_stored, by_batch = share_structure(source.module), share_structure(source.module)
        use_statistics(by_batch, "batch")
        places = {"all": torch.arange(len(labels)).split(32)[:4]}
        places["one"] = tuple(torch.nonzero(labels == label).flatten()[:32] for label in (0, 3, 5, 8))
        found: dict[str, list[tuple[bool, float, float]]] = {"all": [], "one": []}
        for corruption in (None, *CORRUPTIONS):
            x = clean_images[1]
            if corruption is not None:
                x = open_images(name, options.dataset, options.distinct, options.seed, corruption)[1]
            for kind, batches in places.items():
                for place in batches:
                    with torch.no_grad():
                        answers = [network(x[place]).argmax(dim=1) for network in (by_stored, by_batch)]
                    right = [100 * float((own == labels[place]).float().mean()) for own in answers]
                    found[kind].append((told(x[place]), *right))
        for kind, rows in found.items():
            stored, batch = (sum(row[n] for row in rows) / len(rows) for n in (1, 2))
            decided = sum(row[1] if row[0] else row[2] for row in rows) / len(rows)
            print(
                f"{name}, batches of {kind} class(es): {sum(row[0] for row in rows)} of {len(rows)} taken for one; "
                f"{stored:.1f} by stored statistics, {batch:.1f} by those of the batch, {decided:.1f} as decided",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["cost", "alarms", "loudness", "signals", "sides"])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--rows", nargs="+", default=list(ROWS), choices=list(ROWS))
    parser.add_argument("--dataset", default="bundled")
    parser.add_argument("--distinct", type=int, default=2000, help="images of the dataset; they come again and again")
    parser.add_argument("--images", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--calls", type=int, default=10, help="in a row, of each repeat")
    options = parser.parse_args()
    torch.set_num_threads(1)
    {"cost": cost, "alarms": alarms, "loudness": loudness, "signals": signals, "sides": sides}[options.what](options)


if __name__ == "__main__":
    main()
