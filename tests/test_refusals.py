"""Bad arguments, crafted files and changed models: one sentence each, nothing allocated, nothing changed."""

import json
import os
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

import polytta
from polytta import persist
from polytta.adapter import Adapted
from polytta.checks.networks import small_model, small_stream
from polytta.data.datasets import npz_images
from polytta.errors import ConfigError, DataError, DiskError, InputError, ModelError, StateError
from polytta.models.preprocessing import Preprocessing
from polytta.system.files import write_whole


@pytest.mark.parametrize(
    "settings",
    [
        {"lr": torch.tensor(1e-3)},
        {"pace": torch.tensor(0.1)},
        {"lr": np.array(1e-3)},
        {"size": [1], "method": None},
        {"preset": [1]},
        {"engine": "graph"},
        {"particles": 10**12},
        {"populations": 10**12},
        {"particles": 60_000, "populations": 60_000},
        {"num_classes": 10**12},
        {"steps": 10**12},
    ],
)
def test_adapt_refuses_in_a_sentence(settings: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"got .*allowed"):
        polytta.adapt(small_model("group"), **{"method": "tent", **settings})


def test_tensors_of_other_layouts_are_refused() -> None:
    adapted = polytta.adapt(small_model("group"), "tent", exclude=None)
    x = small_stream(1, 4)[0]
    adapted(x)
    jagged = torch.nested.nested_tensor([x[0], x[1, :, :4]], layout=torch.jagged)
    for wrong in (x.to_sparse(), jagged):
        with pytest.raises(InputError, match="allowed is a plain, dense one"):
            adapted(wrong)
    state = adapted.state_dict()
    for broken in (
        {**state, "theta": state["theta"].to_sparse()},
        {**state, "classes": torch.tensor([1, 2])},
        {**state, "classes": torch.tensor(10**12)},
        {**state, "classes": torch.tensor(-5)},
        {**state, "optimizer_count": state["optimizer_count"] - 100},
        {**state, "step": torch.tensor(2**62)},
        None,
    ):
        with pytest.raises(StateError, match="allowed"):
            adapted.load_state_dict(broken)


def test_a_batch_that_the_model_cannot_take_is_no_step() -> None:
    adapted = polytta.adapt(small_model("group"), "tent", exclude=None)
    adapted(small_stream(1, 4)[0])
    with pytest.raises(InputError, match="cannot take"):
        adapted(torch.full((2, 7, 8, 8), torch.nan, dtype=torch.float64))
    assert int(adapted.step) == adapted.totals.steps == 1


@pytest.mark.parametrize("settings", [{"method": "tent"}, {}])
def test_predictions_on_broken_images_are_what_learning_answers(settings: dict[str, object]) -> None:
    adapted = polytta.adapt(small_model("group"), exclude=None, **settings)
    stream = small_stream(3, 5)
    adapted(stream[0])
    stream[1][2, 0, 0, 0] = torch.nan
    for x in (stream[1], torch.full_like(stream[2], torch.inf)):
        predicted = adapted.predict(x)
        assert bool(predicted.isfinite().all())
        assert torch.equal(predicted, adapted(x))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_batch_norm_goes_by_stored_statistics(dtype: torch.dtype) -> None:
    adapted = polytta.adapt(small_model("batch").to(dtype), "tent", exclude=None, statistics="source")
    assert bool(adapted(small_stream(1, 4)[0].to(dtype)).isfinite().all())


@pytest.mark.parametrize("wrong", [True, False, np.array([1, 2])])
def test_freezing_takes_a_name_or_a_number(wrong: object) -> None:
    adapted = polytta.adapt(small_model("group"), "tent", exclude=None)
    with pytest.raises(ConfigError, match="which: got"):
        adapted.freeze(wrong)


@pytest.mark.parametrize("wrong", [7, -4, "best", None, True, 1.0, np.array([1, 2])])
def test_a_particle_that_there_is_not_is_refused(wrong: object) -> None:
    adapted = polytta.adapt(small_model("group"), "tent", particles=3, exclude=None)
    with pytest.raises(ConfigError, match=r"^index: got .*; allowed are particles 0\.\.2"):
        adapted.particle(wrong)
    assert adapted.particle(np.int64(2)).keys() == adapted.particle(-1).keys()


def test_a_state_whose_names_are_no_text_is_refused() -> None:
    adapted = polytta.adapt(small_model("group"), "tent", exclude=None)
    with pytest.raises(StateError, match="a name that is no text"):
        adapted.load_state_dict({**adapted.state_dict(), 0: torch.zeros(1)})


@pytest.mark.parametrize("name", ["\ud800", "x" * 300])
def test_paths_that_no_file_can_have_are_refused(name: str) -> None:
    adapted = polytta.adapt(small_model("group"), "tent", exclude=None)
    with pytest.raises(StateError, match="which is not a file"):
        polytta.load(name, small_model("group"))
    for call in (adapted.save, adapted.audit):
        with pytest.raises((ConfigError, DiskError), match=r"got .*; allowed is"):
            call(name)


# ---------------------------------------------------------------------- the model


class Counting(nn.Module):
    """Writes to a buffer, and to its statistics, whatever ``eval`` says."""

    count: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.inner = small_model("batch")
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        self.count += 1
        self.inner.blocks[0].norm.running_mean.add_(0.1)
        return self.inner(x)


def test_what_a_forward_pass_writes_stays_out_of_the_model() -> None:
    model = Counting().eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    adapted = polytta.adapt(model, "tent", exclude=None)
    for x in small_stream(2, 4):
        adapted(x)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_training_the_model_later_is_noticed_and_leaves_frozen_ones_alone() -> None:
    model = small_model("group")
    adapted = polytta.adapt(model, "tent", exclude=None)
    x = small_stream(1, 4)[0]
    adapted(x)
    frozen = [adapted.freeze(which) for which in ("merged", "ensemble")]
    before = [one(x) for one in frozen]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(x).sum().backward()
    optimizer.step()
    for call in (adapted, adapted.predict):
        with pytest.raises(ModelError, match="changed since adapt"):
            call(x)
    assert all(torch.equal(one(x), was) for one, was in zip(frozen, before, strict=True))


def test_a_state_belongs_to_every_weight_and_every_eps(tmp_path: Path) -> None:
    def wide() -> nn.Module:
        torch.manual_seed(0)
        return nn.Sequential(nn.Flatten(), nn.Linear(192, 64), nn.LayerNorm(64), nn.Linear(64, 5)).double()

    adapted = polytta.adapt(wide(), "tent", exclude=None)
    adapted(small_stream(1, 4)[0])
    adapted.save(tmp_path / "state")
    polytta.load(tmp_path / "state", wide())
    one_weight, other_eps, other_forward = wide(), wide(), wide()
    with torch.no_grad():
        one_weight[1].weight[3, 7] += 1e-9
    other_eps[2].eps = 1e-3
    other_forward[0] = nn.Sequential(nn.Flatten(), nn.ReLU())
    for model in (one_weight, other_eps, other_forward):
        with pytest.raises(StateError, match="other weights"):
            polytta.load(tmp_path / "state", model)


# ---------------------------------------------------------------------- files


@pytest.fixture
def crafted(tmp_path: Path) -> Callable[[str | Callable[[Any], object]], Adapted]:
    """Loads a whole state file with another header, or a changed one."""
    adapted = polytta.adapt(small_model("group"), "tent", particles=2, exclude=None)
    adapted(small_stream(1, 4)[0])
    adapted.save(tmp_path / "state")
    tensors = load_file(tmp_path / "state")
    with safe_open(tmp_path / "state", "pt") as file:
        metadata = file.metadata()

    def load(change: str | Callable[[Any], object]) -> Adapted:
        header = json.loads(metadata["header"])
        if callable(change):
            change(header)
        text = change if isinstance(change, str) else json.dumps(header, sort_keys=True)
        save_file(tensors, tmp_path / "crafted", {**metadata, "header": text, "digest": persist._digest(tensors, text)})
        return polytta.load(tmp_path / "crafted", small_model("group"))

    return load


def test_a_crafted_header_allocates_nothing(crafted: Callable[..., Adapted]) -> None:
    for option in ("particles", "num_classes", "populations"):
        with pytest.raises((ConfigError, StateError), match=option):
            crafted(lambda header, option=option: header["settings"].update({option: 10**12}))
    for text in (
        "[]",
        "{",
        '{"settings": 3}',
        '{"settings": {}, "lr_origin": 1, "source": 2, "totals": 3}',
        "null",
        "[" * 200_000,
    ):
        with pytest.raises(StateError, match="allowed"):
            crafted(text)


@pytest.mark.parametrize(
    ("option", "value"), [("statistics", None), ("statistics", 3), ("statistics", True), ("steps", None)]
)
def test_crafted_options_are_refused_at_loading(crafted: Callable[..., Adapted], option: str, value: object) -> None:
    with pytest.raises(StateError, match=f"^{option}: got {value}; allowed is what Adapted.save wrote"):
        crafted(lambda header: header["settings"].update({option: value}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("samples", None),
        ("samples", -1),
        ("samples", 10**400),
        ("samples", 1.5),
        ("samples", True),
        ("samples", [1]),
        ("stepped", 3),
        ("stepped", "ab"),
        ("stepped", [1, None]),
        ("stepped", [1, 2, 3]),
        ("selected", []),
        ("selected", {"entropy": 3}),
        ("selected", {"all": [1]}),
        ("unheard_of", 3),
    ],
)
def test_crafted_totals_are_refused_at_loading(crafted: Callable[..., Adapted], name: str, value: object) -> None:
    with pytest.raises(StateError, match=r"^totals: got .*; allowed are"):
        crafted(lambda header: header["totals"].update({name: value}))


def test_totals_of_older_files_may_lack_some(crafted: Callable[..., Adapted]) -> None:
    adapted = crafted(lambda header: header["totals"].pop("rejected"))
    adapted(small_stream(1, 4)[0])
    assert (adapted.totals.rejected, adapted.totals.samples) == (0, 8)


def test_saving_keeps_links_and_modes_and_refuses_what_is_no_file(tmp_path: Path) -> None:
    file, link = tmp_path / "state", tmp_path / "link"
    write_whole(file, b"one")
    file.chmod(0o600)
    link.symlink_to(file)
    write_whole(link, b"two")
    assert link.is_symlink()
    assert file.read_bytes() == b"two"
    assert file.stat().st_mode & 0o777 == 0o600
    adapted = polytta.adapt(small_model("group"), "tent", exclude=None)
    for wrong in (None, 3, "", b"x", "a\0b"):
        with pytest.raises(ConfigError, match="path: got"):
            adapted.save(wrong)
    os.mkfifo(tmp_path / "pipe")
    for wrong in (tmp_path, tmp_path / "pipe", file / "below"):
        with pytest.raises(DiskError, match="allowed is"):
            adapted.save(wrong)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["link", "pipe", "state"]


def test_a_disk_that_is_full_halfway_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    adapted, file = polytta.adapt(small_model("group"), "tent", exclude=None), tmp_path / "state"
    adapted.save(file)
    before = file.read_bytes()
    adapted(small_stream(1, 6)[0])
    allowed = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) // 2, allowed[1]))
    try:
        with pytest.raises(DiskError, match="allowed is a place with room"):
            adapted.save(file)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, allowed)
    assert file.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["state"]


def test_an_audit_log_that_cannot_grow_costs_no_step(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    adapted = polytta.adapt(small_model("group"), "tent", particles=1, lr=1e20, exclude=None, guard="default")
    adapted.audit(tmp_path / "audit.jsonl")
    allowed = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, allowed[1]))
    try:
        for x in small_stream(2, 6):
            assert bool(adapted(x).isfinite().all())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, allowed)
    assert adapted.last is not None
    assert "cannot be written any more" in caplog.text


def test_an_audit_log_is_a_plain_file(tmp_path: Path) -> None:
    adapted = polytta.adapt(small_model("group"), "tent", exclude=None)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/null")
    for name in ("pipe", "link", "."):
        with pytest.raises(ConfigError, match=r"^audit: got .*; allowed is a file to append to"):
            adapted.audit(tmp_path / name)
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(ConfigError, match="it is no plain file"):
        adapted.audit(tmp_path / "pipe")
    os.close(reader)
    adapted.audit(tmp_path / "log")
    assert (tmp_path / "log").read_bytes() == b""


def test_what_killed_processes_left_is_swept_up(tmp_path: Path) -> None:
    gone, alive, young = (tmp_path / f".state.{pid}.ab12.tmp" for pid in (2**30, os.getpid(), 2**30 + 1))
    for left in (gone, alive, young):
        left.write_bytes(b"half")
    for left in (gone, alive):
        os.utime(left, (time.time() - 3600,) * 2)
    write_whole(tmp_path / "state", b"whole")
    assert not gone.exists()
    assert alive.exists()
    assert young.exists()


def test_a_strip_of_pixels_does_not_become_gigabytes() -> None:
    prepare = Preprocessing((0.5, 0.5, 0.5), (0.5, 0.5, 0.5), 224, 256)
    with pytest.raises(InputError, match="allowed is a longer side"):
        prepare([np.zeros((1, 4000, 3), np.uint8)])
    assert prepare([np.zeros((100, 400, 3), np.uint8)]).shape == (1, 3, 224, 224)


def test_a_label_does_not_name_billions_of_classes(tmp_path: Path) -> None:
    np.savez(tmp_path / "images.npz", x=np.zeros((1, 4, 4, 3), np.uint8), y=np.array([2**31 - 1]))
    with pytest.raises(DataError, match="label 2147483647"):
        npz_images(tmp_path / "images.npz")


def test_nothing_at_all_is_no_batch() -> None:
    adapted = polytta.adapt(small_model("group"), "tent", exclude=None)
    for call in (lambda: adapted(), lambda: adapted(None)):
        with pytest.raises(InputError, match="x: got NoneType; allowed are floating-point images"):
            call()
