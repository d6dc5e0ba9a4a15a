"""A warning when the loss of a run has grown beyond all bounds."""

import math
import warnings
from pathlib import Path

from azjax.runs.callback import Callback, Update
from azjax.runs.metrics import METRICS, read_rows
from azjax.training.config import Config

_GROWTH = 100


class DivergenceWarning(Callback):
    """Warns once when the loss of an iteration is 100 times the first one of the run."""

    def __init__(self) -> None:
        self._first: dict[Path, float] = {}
        self._warned: set[Path] = set()

    def begin(self, folder: Path, config: Config, iteration: int) -> None:
        """Looks for the first loss among the rows of the iterations that are done."""
        del config, iteration
        losses = (row.get("loss") for row in read_rows(folder / METRICS))
        first = next((loss for loss in losses if isinstance(loss, float)), None)
        if first is not None:
            self._first[folder] = first

    def __call__(self, update: Update) -> None:
        loss = update.metrics["loss"]
        if not math.isfinite(loss):
            return
        first = self._first.setdefault(update.folder, loss)
        if loss > _GROWTH * abs(first) > 0 and update.folder not in self._warned:
            self._warned.add(update.folder)
            warnings.warn(
                f"{update.folder}: the loss is {loss:,.4g} at iteration {update.iteration}, more than {_GROWTH} times "
                f"the first one, {first:,.4g}; a lower learning_rate may help",
                stacklevel=2,
            )
