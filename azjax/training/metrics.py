"""What a run writes down as it goes: JSON lines, and TensorBoard where asked.

`metrics.jsonl` holds only what is the same in every run of the same configuration; times go to `timing.jsonl`.
"""

import json
import math
import os
from pathlib import Path
from typing import Any

METRICS = "metrics.jsonl"
TIMING = "timing.jsonl"


class MetricsLog:
    """Appends a row an iteration to both files of a run.

    Args:
      folder: the run's.
      iteration: rows of later iterations are cut off: they belong to work that the checkpoint does not hold.
      tensorboard: write the same numbers to `folder/tensorboard` too.

    Raises:
      ValueError: TensorBoard is asked for and tensorboardX is not installed.
    """

    def __init__(self, folder: Path, iteration: int, tensorboard: bool = False):
        for name in (METRICS, TIMING):
            _cut_back(folder / name, iteration)
        self._files = {name: (folder / name).open("a") for name in (METRICS, TIMING)}
        self._tensorboard = _summary_writer(folder / "tensorboard", iteration) if tensorboard else None

    def write(self, iteration: int, metrics: dict[str, float], timing: dict[str, float]) -> None:
        """Adds the rows of `iteration`; numbers that are not finite become null."""
        for name, row in ((METRICS, metrics), (TIMING, timing)):
            finite = {key: value if math.isfinite(value) else None for key, value in row.items()}
            self._files[name].write(json.dumps({"iteration": iteration, **finite}) + "\n")
        if self._tensorboard is not None:
            for key, value in {**metrics, **timing}.items():
                self._tensorboard.add_scalar(key, value, iteration)

    def flush(self) -> None:
        """Returns when all rows are on the disk."""
        for file in self._files.values():
            file.flush()
            os.fsync(file.fileno())

    def close(self) -> None:
        for file in self._files.values():
            file.close()
        if self._tensorboard is not None:
            self._tensorboard.close()


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a metrics file; a last line that was cut off is left out, a missing file has none."""
    rows = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            rows.append(json.loads(line))
        except ValueError:
            break
    return rows


def _cut_back(path: Path, iteration: int) -> None:
    kept = [row for row in read_rows(path) if row["iteration"] <= iteration]
    partial = path.with_suffix(".partial")
    partial.write_text("".join(json.dumps(row) + "\n" for row in kept))
    partial.replace(path)


def _summary_writer(folder: Path, iteration: int) -> Any:
    try:
        from tensorboardX import SummaryWriter
    except ModuleNotFoundError as error:
        raise ValueError("tensorboard needs tensorboardX: pip install 'azjax[log]'") from error
    return SummaryWriter(str(folder), purge_step=iteration + 1)
