"""Learning from self-play."""

from azjax.training.checkpoint import Checkpoints, RunError
from azjax.training.config import Config, Hyper
from azjax.training.iteration import TrainState, init, make_iteration
from azjax.training.loop import TrainResult, load_run, load_variables, train
from azjax.training.presets import preset

__all__ = [
    "Checkpoints",
    "Config",
    "Hyper",
    "RunError",
    "TrainResult",
    "TrainState",
    "init",
    "load_run",
    "load_variables",
    "make_iteration",
    "preset",
    "train",
]
