"""State files: what comes back, and what is refused."""

import math
import random
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import polytta
from polytta import methods as registry
from polytta import persist
from polytta.adapter import Adapted
from polytta.checks.networks import small_model, small_stream
from polytta.errors import StateError
from polytta.methods import SAR, DeYO
from polytta.optim import SGD, Adam, AdamW
from polytta.settings.plain import from_plain, to_plain

VECTORS = Path(__file__).parent / "vectors"
SHARPNESS_THEN = 5.0


@pytest.fixture
def adapted() -> Adapted:
    made = polytta.adapt(
        small_model("group"),
        DeYO(entropy_threshold=0.9, plpd_threshold=-0.5),
        optimizer=[SGD(lr=0.01), Adam(lr=0.001), AdamW(lr=0.001)],
        exclude=None,
        seed=7,
    )
    for x in small_stream(4, 4):
        made(x)
    return made


def test_everything_comes_back(adapted: Adapted, tmp_path: Path) -> None:
    adapted.save(tmp_path / "state.safetensors")
    back = polytta.load(tmp_path / "state.safetensors", small_model("group"))
    assert back.settings == adapted.settings
    assert back.totals == adapted.totals
    for x in small_stream(4, 4, seed=1):
        assert torch.equal(back(x), adapted(x))
    assert list(tmp_path.iterdir()) == [tmp_path / "state.safetensors"], "no temporary file is left behind"


def test_an_adapter_can_be_saved_before_its_first_batch(tmp_path: Path) -> None:
    fresh = polytta.adapt(small_model("layer"), "sar")
    fresh.save(tmp_path / "fresh")
    back = polytta.load(tmp_path / "fresh", small_model("layer"))
    x = small_stream(1, 2)[0]
    assert torch.equal(back(x), fresh(x))
    assert back.learning_rates.tolist() == fresh.learning_rates.tolist()
    assert back.lr_origin == fresh.lr_origin


def test_parts_a_file_cannot_hold_are_asked_for(tmp_path: Path) -> None:
    method = DeYO(shuffle=lambda x, noise: x.flip(-1))
    adapted = polytta.adapt(small_model("group"), method, lr=0.01)
    adapted.save(tmp_path / "state")
    with pytest.raises(StateError, match=r"'deyo' whose 'shuffle' is not stored.*allowed is method="):
        polytta.load(tmp_path / "state", small_model("group"))
    assert polytta.load(tmp_path / "state", small_model("group"), method=method).config.method == method


def test_another_model_is_refused(adapted: Adapted, tmp_path: Path) -> None:
    adapted.save(tmp_path / "state")
    with pytest.raises(StateError, match="got one with other weights"):
        polytta.load(tmp_path / "state", small_model("group", seed=1))


def test_a_network_that_differs_elsewhere_is_refused_too(tmp_path: Path) -> None:
    def network(seed: int) -> torch.nn.Module:
        torch.manual_seed(seed)
        return torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.LayerNorm(6), torch.nn.Linear(6, 3))

    polytta.adapt(network(0), "tent").save(tmp_path / "state")
    with pytest.raises(StateError, match="other weights"):
        polytta.load(tmp_path / "state", network(1))


class Counting(torch.nn.Module):
    """Its forward writes to a buffer, and makes another."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = small_model("group")
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        self.register_buffer("last", x.detach().mean())
        return self.inner(x)


def test_a_network_whose_forward_writes_to_buffers_is_known_again(tmp_path: Path) -> None:
    model = Counting().eval()
    adapted = polytta.adapt(model, "tent", lr=0.01, exclude=None)
    adapted(small_stream(1, 4)[0])
    adapted.save(tmp_path / "state")
    back = polytta.load(tmp_path / "state", model)
    assert torch.equal(back.theta, adapted.theta)
    back.load_state_dict(adapted.state_dict())
    moved = adapted.double()
    moved.save(tmp_path / "moved")
    polytta.load(tmp_path / "moved", Counting().eval().double())
    model.calls += 1
    with pytest.raises(StateError, match="other weights"):
        polytta.load(tmp_path / "state", model)


def test_changes_at_loading_are_applied(adapted: Adapted, tmp_path: Path) -> None:
    adapted.save(tmp_path / "state")
    back = polytta.load(tmp_path / "state", small_model("group"), lr=[1.0, 2.0, 3.0], engine="loop")
    assert back.learning_rates.tolist() == [1.0, 2.0, 3.0]
    assert back.settings.engine == "loop"


def test_a_state_file_of_the_format_before_goes_on_as_it_would_have() -> None:
    model = small_model("group")
    model.load_state_dict(load_file(VECTORS / "state-1-model.safetensors"))
    adapted = polytta.load(VECTORS / "state-1.safetensors", model)
    assert adapted.settings.method == SAR(entropy_threshold=0.9, reset_below=0.1), "which was called margin then"
    assert adapted.config.layers == ("blocks.0.norm",)
    assert (adapted.totals.steps, adapted.lr_origin) == (3, "lr, one per particle")
    expected = load_file(VECTORS / "state-1-goes-on.safetensors")
    for x, answer in zip(small_stream(6, 4)[3:], expected["answers"], strict=True):
        assert torch.allclose(weighed_as_then(adapted, x), answer, atol=1e-9)
        adapted(x)
    assert torch.allclose(adapted.theta, expected["theta"], atol=1e-9)


def weighed_as_then(adapted: Adapted, x: torch.Tensor) -> torch.Tensor:
    """The answer by the evidence of that version, from what the adapter knows of its particles and what they say."""
    mean, entropy = adapted.evidence["mean_probs"], adapted.evidence["mean_entropy"]
    scores = -2 * torch.xlogy(mean, mean).sum(dim=1) - entropy
    weights = (SHARPNESS_THEN * scores / math.log(10)).softmax(dim=0)
    told = adapted.particles_log_probs(x).clamp(min=math.log(1e-6))
    return (weights[:, None, None] * told).sum(dim=0).log_softmax(dim=-1)


def test_foreign_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StateError, match=r"^path: got \w+; allowed is the path of a file"):
        polytta.load(small_model("group"), tmp_path / "nothing")  # type: ignore[arg-type]
    with pytest.raises(StateError, match="is not a file"):
        polytta.load(tmp_path / "nothing", small_model("group"))
    (tmp_path / "text").write_text("hello")
    with pytest.raises(StateError, match="not a readable state file"):
        polytta.load(tmp_path / "text", small_model("group"))
    torch.save({"theta": torch.zeros(1)}, tmp_path / "pickle")
    with pytest.raises(StateError, match="not a readable state file"):
        polytta.load(tmp_path / "pickle", small_model("group"))
    save_file({"theta": torch.zeros(1)}, tmp_path / "other.safetensors")
    with pytest.raises(StateError, match="'no format mark'; allowed are 'polytta-state-2' and 'polytta-state-1'"):
        polytta.load(tmp_path / "other.safetensors", small_model("group"))


def test_every_flipped_bit_is_noticed(adapted: Adapted, tmp_path: Path) -> None:
    adapted.save(tmp_path / "state")
    whole = (tmp_path / "state").read_bytes()
    draw = random.Random(0)
    for _ in range(300):
        broken = bytearray(whole)
        broken[draw.randrange(len(whole))] ^= 1 << draw.randrange(8)
        (tmp_path / "broken").write_bytes(broken)
        with pytest.raises(StateError):
            polytta.load(tmp_path / "broken", small_model("group"))
    (tmp_path / "short").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(StateError):
        polytta.load(tmp_path / "short", small_model("group"))


def test_settings_that_were_not_stored_are_asked_for_whatever_kind_of_class_has_them(tmp_path: Path) -> None:
    method = DeYO(shuffle=(len,))  # type: ignore[arg-type]
    assert registry.METHODS.plain(method)["shuffle"] == [{"not stored": repr(len)}]
    with pytest.raises(StateError, match="'deyo' whose 'shuffle' is not stored"):
        registry.METHODS.make(registry.METHODS.plain(method))


def test_a_file_does_not_choose_what_is_imported(tmp_path: Path) -> None:
    model = small_model("group")
    (tmp_path / "never_imported.py").write_text("raise RuntimeError('imported')")
    for lens, imported in (("never_imported:f", False), ("os.path:basename", True)):
        plain = to_plain(polytta.adapt(model, "tent", lr=0.01).settings) | {"lenses": {"transforms": [lens]}}
        stored = from_plain(plain)
        with pytest.raises(StateError, match=f"lenses: got '{lens}' from 'x'; allowed is a module that was imported"):
            persist.check_parts(stored, Path("x"), ())
        persist.check_parts(stored, Path("x"), ("lenses",))
        assert imported is (lens.partition(":")[0] in sys.modules)
    with pytest.raises(StateError, match="settings: got 'brand_new', of another version"):
        from_plain(plain | {"brand_new": 1})


def test_layers_with_names_that_are_no_expressions_come_back(tmp_path: Path) -> None:
    torch.manual_seed(0)
    norms = torch.nn.ModuleDict({"x(y": torch.nn.GroupNorm(2, 4), "z": torch.nn.GroupNorm(2, 4)})

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norms, self.head = norms, torch.nn.Linear(4, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(self.norms["z"](self.norms["x(y"](x)).flatten(2).mean(2))

    model = Net().eval()
    adapted = polytta.adapt(model, "tent", lr=0.01, exclude=None)
    adapted(torch.randn(2, 4, 5, 5))
    adapted.save(tmp_path / "state")
    assert polytta.load(tmp_path / "state", model).config.layers == ("norms.x(y", "norms.z")


RELATIVE = {"method": "tent", "pace": 0.1}
ADAM = {"method": "tent", "optimizer": "adam", "lr": 0.001}


@pytest.mark.parametrize(
    ("settings", "name", "values"),
    [
        ({}, "evidence_mean_probs", (1e30, 2.0, -0.05)),
        ({}, "evidence_fine_probs", (1e30, 1.0)),
        ({}, "evidence_turn_mean", (1e38, 1.0)),
        ({}, "evidence_turn_near", (1e38, -1.0)),
        ({}, "evidence_agreement", (2.0, -1.0)),
        ({}, "evidence_mean_entropy", (-1.0, 1e38)),
        ({}, "evidence_images", (-1.0, 1e38)),
        ({"guard": "default"}, "guard_answers", (2.0, math.nan)),
        ({}, "theta", (1e38,)),
        (ADAM, "optimizer_exp_avg_sq", (-0.01, 1e38)),
        (ADAM, "optimizer_exp_avg", (1e38,)),
        (ADAM, "learning_rates", (1e38, -1.0)),
        (RELATIVE, "pace_square", (-1.0, 1e38)),
        (RELATIVE, "pace_loss", (-1.0, 1e38)),
        (RELATIVE, "pace_count", (-1.0, 1e38)),
        (RELATIVE, "optimizer_momentum", (1e38,)),
        ({"method": "roid"}, "method_mean_probs", (math.nan, math.inf, -1.0, 1.0)),
        ({"method": "eata"}, "method_mean_probs", (math.nan, 1e38)),
        ({"method": "sar"}, "method_entropy_average", (-1.0, math.inf)),
    ],
)
def test_values_that_no_step_leaves_behind_are_refused(
    settings: dict[str, object], name: str, values: tuple[float, ...]
) -> None:
    adapted = polytta.adapt(small_model("group"), exclude=None, **settings)
    adapted(small_stream(1, 8)[0])
    state = adapted.state_dict()
    for value in values:
        with pytest.raises(StateError, match=f"got a value in '{name}' that no step leaves behind; allowed are"):
            adapted.load_state_dict({**state, name: torch.full_like(state[name], value)})
    adapted.load_state_dict(state)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("method", [None, "source", "norm", "tent", "eata", "sar", "deyo", "memo", "roid", "rdumb"])
def test_whatever_steps_of_a_method_leave_behind_comes_back(method: str | None, dtype: torch.dtype) -> None:
    model = small_model("group").to(dtype)
    settings = {} if method is None else {"method": method, "particles": 2}
    adapted = polytta.adapt(model, exclude=None, **settings)
    again = polytta.adapt(model, exclude=None, **settings)
    again.load_state_dict(adapted.state_dict())
    for x in small_stream(6, 4):
        adapted(x.to(dtype))
        again.load_state_dict(adapted.state_dict())
    assert torch.equal(again.theta, adapted.theta)
