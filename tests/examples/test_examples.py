"""Every example runs as it stands, with the library it is about."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
import torch
from tests.extras import needs

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def are_log_probabilities(told: torch.Tensor, shape: tuple[int, int]) -> bool:
    return told.shape == shape and torch.allclose(told.exp().sum(1), torch.ones(shape[0]), atol=1e-4)


@needs("transformers")
def test_transformers() -> None:
    assert are_log_probabilities(example("transformers_vit").main(), (8, 10))


@needs("timm")
def test_timm() -> None:
    assert are_log_probabilities(example("timm_model").main(), (4, 10))


def test_a_data_loader() -> None:
    before, after = example("data_loader").main(64)
    assert 0 < before < 1
    assert 0 < after <= 1


@needs("cv2")
def test_a_camera() -> None:
    said = example("camera_loop").main(4)
    assert len(said) == 4
    assert all(-1 <= one < 10 for one in said)


@needs("lightning")
@pytest.mark.filterwarnings("ignore")
def test_lightning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = example("lightning_predict")
    told = found.main()
    assert len(told) == 3
    assert all(are_log_probabilities(one, (4, 10)) for one in told)


@needs("accelerate")
@pytest.mark.filterwarnings("ignore")
def test_accelerate() -> None:
    import accelerate

    import polytta
    from polytta.checks.networks import small_model, small_stream

    adapted = accelerate.Accelerator(cpu=True).prepare(polytta.adapt(small_model("group"), "tent", exclude=None))
    assert adapted(small_stream(1, 4)[0]).shape == (4, 5)


@needs("mlflow")
@needs("tensorboard")
@pytest.mark.filterwarnings("ignore")
def test_trackers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "mlruns").as_uri())
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    example("tracking").main(str(tmp_path))
    import mlflow
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    curves = EventAccumulator(str(tmp_path / "tensorboard"))
    curves.Reload()
    assert [event.step for event in curves.Scalars("loss")] == [1, 2, 3, 4, 5]
    runs = mlflow.search_runs(experiment_names=["adaptation"], output_format="list")
    assert runs[0].data.metrics["images"] == 4
