from pathlib import Path

import pytest
from tests.lab.bench.records import random_record

from polytta.errors import ConfigError
from polytta.lab.bench.trackers import open_trackers


def test_tensorboard_gets_curves_and_scores(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    record = random_record()
    (tracker,) = open_trackers(["tensorboard"], tmp_path)
    tracker.finished(record)
    tracker.close()
    (run,) = (tmp_path / "tensorboard").iterdir()
    events = EventAccumulator(str(run))
    events.Reload()
    points = [(point.step, point.value) for point in events.Scalars("stream/accuracy")]
    assert points == list(zip(record.curves.position, record.curves.accuracy, strict=True))
    assert events.Scalars("final/accuracy")[0].value == pytest.approx(record.results.accuracy)


@pytest.mark.filterwarnings("ignore")
def test_mlflow_gets_cell_and_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "runs").as_uri())
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    record = random_record()
    (tracker,) = open_trackers(["mlflow"], tmp_path)
    tracker.finished(record)
    tracker.close()
    client = mlflow.MlflowClient((tmp_path / "runs").as_uri())
    (run,) = client.search_runs([client.get_experiment_by_name("polytta").experiment_id])
    assert run.data.params["key"] == record.key
    assert run.data.metrics["accuracy"] == pytest.approx(record.results.accuracy)


def test_an_unknown_tracker_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="abacus"):
        open_trackers(["abacus"], tmp_path)


@pytest.mark.parametrize("row", ["../../escaped", "/absolute", "a\\b", "..", "x" * 500])
def test_a_rows_name_leads_out_of_no_folder(tmp_path: Path, row: str) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (tracker,) = open_trackers(["tensorboard"], folder)
    tracker.finished(random_record(variant=row))
    assert {path.relative_to(tmp_path).parts[:2] for path in tmp_path.rglob("*") if path.is_file()} == {
        ("run", "tensorboard")
    }
