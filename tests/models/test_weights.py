import pickle

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
