"""Learning from self-play."""

from azjax.training.checkpoint import Checkpoints, RunError, SettingsError
from azjax.training.config import Config, Hyper
from azjax.training.iteration import TrainState, init, make_iteration
from azjax.training.loop import TrainResult, train
from azjax.training.population import members_of, train_population
from azjax.training.presets import preset
from azjax.training.run_folder import load_run, load_state, load_variables
from azjax.training.throughput import Throughput, measure_throughput

__all__ = [
    "Checkpoints",
    "Config",
    "Hyper",
    "RunError",
    "SettingsError",
    "Throughput",
    "TrainResult",
    "TrainState",
    "init",
    "load_run",
    "load_state",
    "load_variables",
    "make_iteration",
    "measure_throughput",
    "members_of",
    "preset",
    "train",
    "train_population",
]
