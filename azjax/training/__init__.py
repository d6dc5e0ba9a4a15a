"""What happens inside the jitted iteration: self-play, targets, replay and optimizer steps."""

from azjax.training.config import Config
from azjax.training.hyper import Hyper
from azjax.training.iteration import TrainState, init, make_iteration
from azjax.training.loss import ALPHAZERO_LOSS, LossTerm, Targets
from azjax.training.presets import preset

__all__ = [
    "ALPHAZERO_LOSS",
    "Config",
    "Hyper",
    "LossTerm",
    "Targets",
    "TrainState",
    "init",
    "make_iteration",
    "preset",
]
