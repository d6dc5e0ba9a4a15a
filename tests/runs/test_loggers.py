"""Other programs get the numbers of the metrics file."""

import math
import time

import pytest

from azjax.core.errors import InputError, RunError
from azjax.runs import MlFlow, TensorBoard, Update, WeightsAndBiases, loggers
from azjax.training import Config


def log_two_iterations(logger, folder):
    folder.mkdir()
    logger.begin(folder, Config(seed=5), 3)
    for iteration, loss in ((4, math.nan), (5, 2.0)):
        logger(Update(folder, iteration, 9, {"loss": loss, "games": 7.0}, {"seconds": 1.0}, lambda: None))
    logger.save()
    logger.end()


def test_tensorboard_gets_the_numbers(tmp_path):
    pytest.importorskip("tensorboardX")
    log_two_iterations(TensorBoard(), tmp_path / "run")
    (events,) = (tmp_path / "run" / "tensorboard").iterdir()
    assert b"loss" in events.read_bytes()


@pytest.mark.filterwarnings("default")
def test_weights_and_biases_gets_the_numbers_without_a_network(tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    log_two_iterations(WeightsAndBiases(), tmp_path / "run")
    (record,) = (tmp_path / "run" / "wandb").glob("offline-run-*/run-*.wandb")
    deadline = time.monotonic() + 60
    while b"games" not in record.read_bytes() and time.monotonic() < deadline:
        time.sleep(0.1)  # another process writes it
    written = record.read_bytes()
    assert b"run from iteration 3" in written
    assert b"games" in written


@pytest.mark.filterwarnings("default")
def test_mlflow_gets_the_numbers(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"file:{tmp_path / 'mlruns'}")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    log_two_iterations(MlFlow(), tmp_path / "run")
    client = mlflow.MlflowClient()
    (run,) = client.search_runs([experiment.experiment_id for experiment in client.search_experiments()])
    assert run.info.status == "FINISHED"
    assert run.info.run_name == "run from iteration 3"
    assert run.data.params["seed"] == "5"
    assert [(metric.step, metric.value) for metric in client.get_metric_history(run.info.run_id, "games")] == [
        (4, 7.0),
        (5, 7.0),
    ]
    assert [metric.step for metric in client.get_metric_history(run.info.run_id, "loss")] == [5]


def test_a_program_that_is_not_installed_is_named(monkeypatch):
    def missing(name):
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(loggers.importlib, "import_module", missing)
    with pytest.raises(InputError, match=r"wandb is not installed: pip install 'azjax\[wandb\]'"):
        WeightsAndBiases()


def test_a_program_that_fails_gets_no_more_metrics_and_ends_no_run(tmp_path, monkeypatch):
    calls = []

    class Program:
        def init(self, **options):
            return self

        def log(self, metrics, step):
            calls.append(step)
            raise OSError("no route\nto host")

        def finish(self):
            calls.append("finish")

    monkeypatch.setattr(loggers.importlib, "import_module", lambda name: Program())
    with pytest.warns(UserWarning, match=r"^wandb gets no more metrics: no route to host$") as told:
        log_two_iterations(WeightsAndBiases(), tmp_path / "run")
    assert (calls, len(told)) == ([4], 1)


@pytest.mark.parametrize("error", [ValueError("No API key\nconfigured."), RuntimeError("No API key configured.")])
def test_a_program_that_refuses_a_run_is_told_in_one_line(tmp_path, monkeypatch, error):
    class Program:
        def init(self, **options):
            raise error

    monkeypatch.setattr(loggers.importlib, "import_module", lambda name: Program())
    with pytest.raises(RunError, match=r"^wandb: No API key configured\.$"):
        WeightsAndBiases().begin(tmp_path, Config(), 0)
