"""What happens inside the jitted iteration: self-play, targets, replay and optimiser steps."""

from azjax.training.config import Config, Hyper
from azjax.training.iteration import TrainState, init, make_iteration
from azjax.training.presets import preset

__all__ = ["Config", "Hyper", "TrainState", "init", "make_iteration", "preset"]
