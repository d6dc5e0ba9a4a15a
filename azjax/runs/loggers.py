"""Callbacks that send the metrics of runs to other programs. Each needs an extra."""

import contextlib
import importlib
import math
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from azjax.core.errors import InputError, RunError
from azjax.runs.callback import Callback, Update
from azjax.training.config import Config
from azjax.training.saved_config import config_to_json


class TensorBoard(Callback):
    """Writes to `tensorboard` in the run folder.

    Raises:
      InputError: tensorboardX is not installed.
    """

    def __init__(self) -> None:
        self._writer = _import("tensorboardX", "log").SummaryWriter
        self._writers: dict[Path, Any] = {}

    def begin(self, folder: Path, config: Config, iteration: int) -> None:
        # TensorBoard drops what an earlier process wrote of these iterations.
        self._writers[folder] = self._writer(str(folder / "tensorboard"), purge_step=iteration + 1)

    def __call__(self, update: Update) -> None:
        for name, value in _finite(update).items():
            self._writers[update.folder].add_scalar(name, value, update.iteration)

    def end(self) -> None:
        for writer in self._writers.values():
            writer.close()


class _Service(Callback):
    """A program that keeps metrics elsewhere. When it fails, which costs no run, it gets no more of them.

    Args:
      package: its name.
      extra: what installs it.
    """

    def __init__(self, package: str, extra: str) -> None:
        self._package = package
        self._module = _import(package, extra)
        self._has_failed = False

    def __call__(self, update: Update) -> None:
        self._attempt(lambda: self._log(update))

    def end(self) -> None:
        self._attempt(self._finish)

    def _log(self, update: Update) -> None:
        raise NotImplementedError

    def _finish(self) -> None:
        raise NotImplementedError

    def _attempt(self, work: Callable[[], None]) -> None:
        if self._has_failed:
            return
        try:
            work()
        except Exception as error:
            self._has_failed = True
            warnings.warn(f"{self._package} gets no more metrics: {_one_line(error)}", stacklevel=3)


class WeightsAndBiases(_Service):
    """Writes to Weights & Biases, whose environment variables (`WANDB_PROJECT`, `WANDB_MODE`, ...) hold.

    Each process that trains makes a run there, in the group of its run folder, since a run there cannot take back the
    iterations that a resumed run does again.

    Raises:
      InputError: wandb is not installed.
    """

    def __init__(self) -> None:
        super().__init__("wandb", "wandb")
        self._runs: dict[Path, Any] = {}

    def begin(self, folder: Path, config: Config, iteration: int) -> None:
        name = f"{folder.name} from iteration {iteration}" if iteration else folder.name
        with _in_one_line("wandb"):
            self._runs[folder] = self._module.init(
                name=name, group=str(folder), config=config_to_json(config), dir=str(folder), reinit="create_new"
            )

    def _log(self, update: Update) -> None:
        self._runs[update.folder].log(_finite(update), step=update.iteration)

    def _finish(self) -> None:
        for run in self._runs.values():
            run.finish()


class MlFlow(_Service):
    """Writes to MLflow, whose environment variables (`MLFLOW_TRACKING_URI`, `MLFLOW_EXPERIMENT_NAME`) hold.

    Each process that trains makes a run there; see `WeightsAndBiases`.

    Raises:
      InputError: mlflow is not installed.
    """

    def __init__(self) -> None:
        super().__init__("mlflow", "mlflow")
        self._client: Any = None
        self._runs: dict[Path, str] = {}

    def begin(self, folder: Path, config: Config, iteration: int) -> None:
        with _in_one_line("mlflow"):
            if self._client is None:
                self._client = self._module.MlflowClient()
            experiment = self._module.set_experiment(
                self._module.environment_variables.MLFLOW_EXPERIMENT_NAME.get() or "azjax"
            )
            name = f"{folder.name} from iteration {iteration}" if iteration else folder.name
            run = self._client.create_run(experiment.experiment_id, run_name=name, tags={"folder": str(folder)})
            self._runs[folder] = run.info.run_id
            settings = config_to_json(config)
            for key, value in (settings.pop("hyper") | settings).items():
                self._client.log_param(run.info.run_id, key, value)

    def _log(self, update: Update) -> None:
        for name, value in _finite(update).items():
            self._client.log_metric(self._runs[update.folder], name, value, step=update.iteration)

    def _finish(self) -> None:
        for run in self._runs.values():
            self._client.set_terminated(run)


@contextlib.contextmanager
def _in_one_line(package: str) -> Iterator[None]:
    """Errors of the package that keep it from beginning, as such of azjax."""
    try:
        yield
    except Exception as error:
        raise RunError(f"{package}: {_one_line(error)}") from error


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _import(package: str, extra: str) -> ModuleType:
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        raise InputError(f"{package} is not installed: pip install 'azjax[{extra}]'") from error


def _finite(update: Update) -> dict[str, float]:
    return {name: value for name, value in {**update.metrics, **update.timing}.items() if math.isfinite(value)}
