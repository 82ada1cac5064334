import pickle
import random

import pytest
import torch
from safetensors.torch import save_file

from polytta.errors import DataError, InputError
from polytta.models.weights import load_weights, sha256_of


def net():
    return torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))


@pytest.mark.parametrize("form", ["plain", "state_dict", "model", "module."])
def test_torch_files_with_usual_wrappings(tmp_path, form):
    source, target = net(), net()
    state = source.state_dict()
    if form == "module.":
        state = {f"module.{k}": v for k, v in state.items()}
    elif form != "plain":
        state = {form: state, "epoch": 3}
    path = tmp_path / "w.pth"
    torch.save(state, path)
    assert load_weights(target, path) == sha256_of(path)
    assert torch.equal(target[0].weight, source[0].weight)


def test_safetensors_may_leave_out_the_batch_counter(tmp_path):
    source = net()
    state = {k: v for k, v in source.state_dict().items() if "num_batches" not in k}
    save_file(state, tmp_path / "w.safetensors")
    load_weights(net(), tmp_path / "w.safetensors")


class Evil:
    def __reduce__(self):
        return (print, ("code ran",))


def bare_pickle(path):
    path.write_bytes(pickle.dumps({"weight": Evil()}, protocol=2))


def torch_archive(path):
    torch.save({"weight": Evil()}, path)


@pytest.mark.parametrize("write", [bare_pickle, torch_archive])
@pytest.mark.parametrize("name", ["w.pth", "w.safetensors"])
def test_code_in_a_file_is_refused_and_not_run(tmp_path, capsys, write, name):
    write(tmp_path / name)
    with pytest.raises(InputError, match="does not load safely"):
        load_weights(net(), tmp_path / name)
    assert "code ran" not in capsys.readouterr().out


def test_misfits_are_named(tmp_path):
    path = tmp_path / "w.safetensors"
    save_file({"other": torch.zeros(1)}, path)
    with pytest.raises(InputError, match=r"lacks 0\.bias \(6 names missing, 1 unknown\)"):
        load_weights(net(), path)
    save_file({**net().state_dict(), "other": torch.zeros(1)}, path)
    with pytest.raises(InputError, match="has the unknown other"):
        load_weights(net(), path)
    save_file({**net().state_dict(), "0.bias": torch.zeros(4)}, path)
    with pytest.raises(InputError, match=r"0\.bias has shape \(4,\); allowed is \(3,\)"):
        load_weights(net(), path)


def test_missing_file_and_other_content(tmp_path):
    with pytest.raises(DataError, match=r"none\.pth, which is missing; allowed is a file of weights"):
        load_weights(net(), tmp_path / "none.pth")
    torch.save([torch.zeros(1)], tmp_path / "list.pth")
    with pytest.raises(InputError, match="holds no named tensors"):
        load_weights(net(), tmp_path / "list.pth")


@pytest.mark.parametrize("form", ["archive", "stream", "safetensors"])
def test_damaged_files_load_or_are_refused_in_a_sentence(tmp_path, form):
    path, draw, told = tmp_path / ("w.safetensors" if form == "safetensors" else "w.pth"), random.Random(0), set()
    if form == "safetensors":
        save_file(net().state_dict(), path)
    else:
        torch.save(net().state_dict(), path, _use_new_zipfile_serialization=form == "archive")
    whole = path.read_bytes()
    for _ in range(150):
        damaged = bytearray(whole)
        if draw.random() < 0.3:
            damaged = damaged[: draw.randrange(len(whole))]
        for _ in range(draw.randint(1, 3)):
            place = draw.randrange(len(damaged) or 1)
            damaged[place : place + 1] = bytes([draw.randrange(256)])
        path.write_bytes(damaged)
        try:
            load_weights(net(), path)
        except InputError as error:
            told.add(str(error).partition("w.")[2])
    assert told, "the test needs damage"


def test_tensors_that_are_no_weights_are_refused(tmp_path):
    state = net().state_dict()
    for wrong in (
        {1: torch.zeros(2)},
        {name: value.to_sparse() for name, value in state.items()},
        {name: value.to(torch.complex64) for name, value in state.items()},
    ):
        torch.save(wrong, tmp_path / "w.pth")
        with pytest.raises(InputError, match="holds no named tensors"):
            load_weights(net(), tmp_path / "w.pth")
