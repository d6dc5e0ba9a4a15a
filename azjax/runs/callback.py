"""What a run calls on the host after each iteration: progress, logs, and callbacks of users."""

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path

from azjax.training.config import Config
from azjax.training.iteration import TrainState


@dataclasses.dataclass(frozen=True)
class Update:
    """A run after an iteration.

    Attributes:
      folder: the run folder.
      iteration: number of iterations done.
      iterations: number of iterations in all.
      metrics: of the iteration by name, such as `loss` and `games`; NaN where there is none, as for the loss before the
        first game has ended.
      timing: `seconds` and `evaluation_seconds` of the iteration, `games_per_second` and `simulations_per_second`.
    """

    folder: Path
    iteration: int
    iterations: int
    metrics: Mapping[str, float]
    timing: Mapping[str, float]
    _select_state: Callable[[], TrainState] = dataclasses.field(repr=False)

    @property
    def state(self) -> TrainState:
        """The state of the run. Its arrays are gone after the next iteration: copy what you keep."""
        return self._select_state()


class Callback:
    """Base class of callbacks; a function of an `Update` is a callback too.

    In a population `begin` and `__call__` are called for each run, `save` and `end` once for all. Of several processes
    the first one calls them. An exception ends the training; the checkpoints before it are kept.
    """

    def begin(self, folder: Path, config: Config, iteration: int) -> None:
        """A run begins, or goes on after `iteration` iterations. Later ones, if any, are done again."""

    def __call__(self, update: Update) -> None:
        """An iteration is done."""

    def save(self) -> None:
        """A checkpoint is about to be written: what came before must be on disk now."""

    def end(self) -> None:
        """The training has ended, in whatever way. Called once."""
