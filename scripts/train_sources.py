"""Train the bundled source classifiers on the CIFAR-10 training set, on one GPU in minutes.

    PYTHONPATH=src python scripts/train_sources.py --data cifar10.npz --minutes 3

``--data`` is an npz with x_train, x_test (uint8, N x 32 x 32 x 3) and y_train, y_test. The whole data set
lives on the device and is augmented there by crops, flips, cutout and (for the transformer) colour, mixup and
cutmix. Noise and blur stay out of the augmentation on purpose: the models must meet the corruptions of the
test streams for the first time there.

Writes NAME.safetensors (fp16) and assets.json beside it. The recorded accuracy is that of the fp16-rounded
weights on the full test set; the test set plays no part in the choice of weights.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import math
import os
import time
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional as F

from polytta.models.bundled import BUNDLED, BundledModel


@dataclass(frozen=True)
class Recipe:
    """Everything that decides the weights besides the data, the seed and the architecture."""

    epochs: int
    batch: int
    optimizer: str
    peak_lr: float
    weight_decay: float
    warmup: float  # share of all steps
    clip_norm: float
    cutout: int
    mix_probability: float  # share of batches under mixup or cutmix
    mix_until: float  # share of all steps after which mixing stops
    colour: float  # half-width of the random brightness and contrast factors
    ema_decay: float


RESNET = Recipe(
    epochs=80,
    batch=512,
    optimizer="sgd",
    peak_lr=0.4,
    weight_decay=5e-4,
    warmup=0.15,
    clip_norm=5.0,
    cutout=8,
    mix_probability=0.0,
    mix_until=0.0,
    colour=0.0,
    ema_decay=0.998,
)
RECIPES = {
    "cifar10_resnet_bn": RESNET,
    "cifar10_resnet_gn": replace(RESNET, epochs=120, peak_lr=0.3),
    "cifar10_vit_ln": Recipe(
        epochs=130,
        batch=512,
        optimizer="adamw",
        peak_lr=1.5e-3,
        weight_decay=0.05,
        warmup=0.06,
        clip_norm=1.0,
        cutout=8,
        mix_probability=0.5,
        mix_until=0.9,
        colour=0.2,
        ema_decay=0.999,
    ),
}
PAD = 4
SIZE = 32


@dataclass(frozen=True)
class Arrays:
    """CIFAR-10 on the device; training images are stored padded, ready for cropping."""

    x_train: Tensor
    y_train: Tensor
    x_test: Tensor
    y_test: Tensor


def load_arrays(path: Path, device: torch.device, limit: int | None) -> Arrays:
    with np.load(path) as archive:
        x_train, y_train = archive["x_train"][:limit], archive["y_train"][:limit]
        x_test, y_test = archive["x_test"][:limit], archive["y_test"][:limit]
    for name, images in (("x_train", x_train), ("x_test", x_test)):
        if images.dtype != np.uint8 or images.shape[1:] != (SIZE, SIZE, 3):
            raise SystemExit(f"{path}: {name} must be uint8 N x 32 x 32 x 3, got {images.dtype} {images.shape}.")
    padded = np.pad(x_train, ((0, 0), (PAD, PAD), (PAD, PAD), (0, 0)), mode="reflect")

    def to(array: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(device)

    return Arrays(to(padded), to(y_train).long(), to(x_test), to(y_test).long())


class Augmenter:
    """Crops, flips, colours, cuts and mixes a batch on the device."""

    def __init__(self, model: BundledModel, recipe: Recipe, device: torch.device) -> None:
        self.recipe = recipe
        self.device = device
        self.mean = torch.tensor(model.mean, device=device)
        self.std = torch.tensor(model.std, device=device)
        self.offsets = torch.arange(SIZE, device=device)

    def normalise(self, images: Tensor) -> Tensor:
        """uint8 NHWC to float NCHW in channels-last memory."""
        return ((images.float() / 255 - self.mean) / self.std).permute(0, 3, 1, 2)

    def __call__(self, padded: Tensor, index: Tensor) -> Tensor:
        count, grid = len(index), self.offsets
        rows = torch.randint(0, 2 * PAD + 1, (count, 1), device=self.device) + grid
        columns = torch.randint(0, 2 * PAD + 1, (count, 1), device=self.device) + grid
        columns = torch.where(torch.rand(count, 1, device=self.device) < 0.5, columns, columns.flip(1))
        images = padded[index[:, None, None], rows[:, :, None], columns[:, None, :]]
        return self.cut_out(self.jitter(self.normalise(images)))

    def jitter(self, images: Tensor) -> Tensor:
        """Random contrast around the image mean and random brightness, one factor per image."""
        if not self.recipe.colour:
            return images
        factors = 1 + self.recipe.colour * (2 * torch.rand(2, len(images), 1, 1, 1, device=self.device) - 1)
        centre = images.mean((1, 2, 3), keepdim=True)
        return (images - centre) * factors[0] + centre + (factors[1] - 1) * 2

    def cut_out(self, images: Tensor) -> Tensor:
        centres = torch.randint(0, SIZE, (2, len(images), 1), device=self.device)
        inside = (self.offsets - centres + self.recipe.cutout // 2).clamp(-1, self.recipe.cutout)
        inside = (inside >= 0) & (inside < self.recipe.cutout)
        return images.masked_fill((inside[0][:, :, None] & inside[1][:, None, :])[:, None], 0.0)


def mix(images: Tensor, rng: np.random.Generator) -> tuple[Tensor, Tensor, float]:
    """Mixup (alpha 0.2) or cutmix (alpha 1), one draw per batch: images, partners, the originals' weight."""
    partner = torch.randperm(len(images), device=images.device)
    if rng.random() < 0.5:
        share = float(rng.beta(0.2, 0.2))
        return share * images + (1 - share) * images[partner], partner, share
    side = math.sqrt(1 - float(rng.beta(1.0, 1.0))) * SIZE
    row, column = rng.integers(0, SIZE, 2)
    top, bottom = (int(np.clip(row + sign * side / 2, 0, SIZE)) for sign in (-1, 1))
    left, right = (int(np.clip(column + sign * side / 2, 0, SIZE)) for sign in (-1, 1))
    mixed = images.clone()
    mixed[:, :, top:bottom, left:right] = images[partner, :, top:bottom, left:right]
    return mixed, partner, 1 - (bottom - top) * (right - left) / SIZE**2


def make_optimizer(module: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    """Weight decay on matrices and kernels only: norm parameters, biases and positions stay free."""
    decayed = [p for n, p in module.named_parameters() if p.ndim > 1 and "pos_embed" not in n]
    free = [p for n, p in module.named_parameters() if p.ndim <= 1 or "pos_embed" in n]
    groups = [
        {"params": decayed, "weight_decay": recipe.weight_decay},
        {"params": free, "weight_decay": 0.0},
    ]
    fused = decayed[0].is_cuda
    if recipe.optimizer == "sgd":
        return torch.optim.SGD(groups, lr=recipe.peak_lr, momentum=0.9, nesterov=True, fused=fused)
    return torch.optim.AdamW(groups, lr=recipe.peak_lr, betas=(0.9, 0.98), fused=fused)


def rate(progress: float, recipe: Recipe) -> float:
    """Linear warm-up, then half a cosine to zero."""
    if progress < recipe.warmup:
        return recipe.peak_lr * (0.05 + 0.95 * progress / recipe.warmup)
    return recipe.peak_lr * 0.5 * (1 + math.cos(math.pi * (progress - recipe.warmup) / (1 - recipe.warmup)))


class Average:
    """Exponential moving average of all floating-point state, running statistics included."""

    def __init__(self, module: nn.Module, decay: float) -> None:
        self.decay = decay
        self.live = [t for t in module.state_dict().values() if t.is_floating_point()]
        self.mean = [t.clone() for t in self.live]
        self.updates = 0

    @torch.no_grad()
    def update(self) -> None:
        self.updates += 1
        decay = min(self.decay, (1 + self.updates) / (10 + self.updates))
        torch._foreach_lerp_(self.mean, self.live, 1 - decay)

    @torch.no_grad()
    def copy_to_module(self) -> None:
        torch._foreach_copy_(self.live, self.mean)


@torch.no_grad()
def accuracy(module: nn.Module, augmenter: Augmenter, images: Tensor, labels: Tensor) -> float:
    module.eval()
    hits = 0
    for start in range(0, len(images), 1000):
        logits = module(augmenter.normalise(images[start : start + 1000]))
        hits += int((logits.argmax(1) == labels[start : start + 1000]).sum())
    return hits / len(images)


class Trainer:
    """One model's training run."""

    def __init__(self, model: BundledModel, recipe: Recipe, data: Arrays, seed: int, compiled: bool) -> None:
        self.model, self.recipe, self.data, self.seed = model, recipe, data, seed
        self.device = data.x_test.device
        torch.manual_seed(seed)
        self.module = model.build(model.num_classes).to(self.device, memory_format=torch.channels_last)
        self.forward = torch.compile(self.module) if compiled else self.module
        self.augmenter = Augmenter(model, recipe, self.device)
        self.steps_per_epoch = max(1, len(data.x_train) // recipe.batch)
        self.restart()

    def restart(self) -> None:
        """Fresh optimiser, average and random streams; the weights are left as they are."""
        torch.manual_seed(self.seed)
        self.rng = np.random.default_rng(self.seed)
        self.optimizer = make_optimizer(self.module, self.recipe)
        self.average = Average(self.module, self.recipe.ema_decay)

    def step(self, index: Tensor, progress: float) -> Tensor:
        for group in self.optimizer.param_groups:
            group["lr"] = rate(progress, self.recipe)
        images, labels = self.augmenter(self.data.x_train, index), self.data.y_train[index]
        partner, share = None, 1.0
        if progress < self.recipe.mix_until and self.rng.random() < self.recipe.mix_probability:
            images, partner, share = mix(images, self.rng)
        # bf16 is for the GPU only: some CPUs die of an illegal instruction in it.
        on_gpu = self.device.type == "cuda"
        with torch.autocast("cuda", torch.bfloat16) if on_gpu else nullcontext():
            logits = self.forward(images)
        loss = F.cross_entropy(logits.float(), labels)
        if partner is not None:
            loss = share * loss + (1 - share) * F.cross_entropy(logits.float(), labels[partner])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.module.parameters(), self.recipe.clip_norm)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.average.update()
        return loss.detach()

    def seconds_per_epoch(self) -> float:
        """Time a few steps on throw-away weights, then put the initial weights back."""
        initial = {k: v.clone() for k, v in self.module.state_dict().items()}
        self.module.train()
        timed = min(30, self.steps_per_epoch)
        for count in (min(10, self.steps_per_epoch), timed):
            started = time.perf_counter()
            for _ in range(count):
                index = torch.randint(0, len(self.data.x_train), (self.recipe.batch,), device=self.device)
                loss = self.step(index, 0.0)
            loss.item()
        seconds = (time.perf_counter() - started) / timed * self.steps_per_epoch
        self.module.load_state_dict(initial)
        self.restart()
        return seconds

    def fit(self, minutes: float | None) -> float:
        """Train; return the number of epochs done."""
        started = time.perf_counter()
        epochs, deadline = self.recipe.epochs, math.inf
        if minutes is not None:
            # The rest is kept for the last look at the test set and for writing the file.
            deadline = 0.96 * 60 * minutes
            seconds = self.seconds_per_epoch()
            left = deadline - (time.perf_counter() - started)
            epochs = max(1, min(epochs, int(0.95 * left / seconds)))
            print(f"{self.model.name}: {seconds:.2f} s per epoch, {epochs} epochs", flush=True)
        total, done = epochs * self.steps_per_epoch, 0
        for epoch in range(epochs):
            self.module.train()
            losses = torch.zeros((), device=self.device)
            order = torch.randperm(len(self.data.x_train), device=self.device)
            first = done
            for batch in order.split(self.recipe.batch)[: self.steps_per_epoch]:
                # A slow stretch pulls the schedule forward, so that the rate still reaches zero in time.
                progress = max(done / total, (time.perf_counter() - started) / deadline)
                if progress >= 1:
                    break
                losses += self.step(batch, progress)
                done += 1
            loss = losses.item() / max(1, done - first)
            line = f"{self.model.name} epoch {epoch + 1}/{epochs} loss {loss:.4f}"
            if (epoch + 1) % 10 == 0 or epoch + 1 == epochs:
                live = accuracy(self.module, self.augmenter, self.data.x_test, self.data.y_test)
                line += f" test (live weights) {100 * live:.2f} %"
            elapsed = time.perf_counter() - started
            print(f"{line} {elapsed:.0f} s", flush=True)
            if not math.isfinite(loss):
                raise SystemExit(f"{self.model.name}: the loss is no longer finite; lower peak_lr.")
            if elapsed >= deadline:
                break
        return done / self.steps_per_epoch


def save(trainer: Trainer, folder: Path, epochs: float, seconds: float) -> dict[str, object]:
    """Write the averaged weights in fp16, measure what was written, return its record."""
    model, module = trainer.model, trainer.module
    trainer.average.copy_to_module()
    state = module.state_dict()
    halved = {k: (v.half() if v.is_floating_point() else v).contiguous().cpu() for k, v in state.items()}
    path = folder / f"{model.name}.safetensors"
    save_file(halved, path)
    path.chmod(0o644)
    module.load_state_dict({k: v.to(trainer.device) for k, v in load_file(path).items()})
    scored = accuracy(module, trainer.augmenter, trainer.data.x_test, trainer.data.y_test)
    on_gpu = trainer.device.type == "cuda"
    return {
        "file": path.name,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "bytes": path.stat().st_size,
        "parameters": sum(p.numel() for p in module.parameters()),
        "num_classes": model.num_classes,
        "image_size": model.image_size,
        "mean": model.mean,
        "std": model.std,
        "test_accuracy": scored,
        "test_images": len(trainer.data.x_test),
        "trained_on": "CIFAR-10 training set, 50,000 images (Krizhevsky 2009)",
        "recipe": {**asdict(trainer.recipe), "epochs": round(epochs, 1)},
        "seed": trainer.seed,
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name() if on_gpu else "cpu",
        "minutes": round(seconds / 60, 2),
    }


def record(folder: Path, name: str, entry: dict[str, object]) -> None:
    """Add one model to assets.json; the folder is locked, as models may be trained side by side."""
    path = folder / "assets.json"
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        known = json.loads(path.read_text()) if path.exists() else {"format": 1, "models": {}}
        known["models"][name] = entry
        path.write_text(json.dumps(known, indent=2) + "\n")
    finally:
        os.close(handle)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="npz with x_train, y_train, x_test, y_test")
    parser.add_argument("--out", type=Path, default=Path("src/polytta/models/assets"), help="where results go")
    parser.add_argument("--models", nargs="+", default=list(RECIPES), choices=list(RECIPES))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, help="cap per model; the schedule is shortened up front to fit")
    parser.add_argument("--epochs", type=int, help="instead of the recipe's own number")
    parser.add_argument("--compile", action="store_true", help="torch.compile the network")
    parser.add_argument("--smoke", action="store_true", help="a few steps on a few images: does it run at all?")
    args = parser.parse_args()

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cudnn.benchmark = True
    data = load_arrays(args.data, device, 512 if args.smoke else None)
    args.out.mkdir(parents=True, exist_ok=True)
    for name in args.models:
        recipe = RECIPES[name] if args.epochs is None else replace(RECIPES[name], epochs=args.epochs)
        if args.smoke:
            recipe = replace(recipe, batch=64, epochs=2)
        started = time.perf_counter()
        trainer = Trainer(BUNDLED[name], recipe, data, args.seed, args.compile)
        epochs = trainer.fit(args.minutes)
        entry = save(trainer, args.out, epochs, time.perf_counter() - started)
        record(args.out, name, entry)
        print(
            f"{name}: {100 * float(entry['test_accuracy']):.2f} % {entry['bytes']} bytes {entry['sha256']}",
            flush=True,
        )


if __name__ == "__main__":
    main()
