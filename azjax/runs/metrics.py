"""What a run writes down as it goes: JSON lines, and TensorBoard where asked.

`metrics.jsonl` holds only what is the same in every run of the same configuration; times go to `timing.jsonl`.
"""

from azjax.core.errors import InputError
import contextlib
import json
import math
import os
from pathlib import Path
from typing import Any

from azjax.core.errors import RunError

METRICS = "metrics.jsonl"
TIMING = "timing.jsonl"


class MetricsLog:
    """Appends a row an iteration to both files of a run.

    Args:
      folder: the run's.
      iteration: rows of later iterations are cut off: they belong to work that the checkpoint does not hold; those
        up to it must be there.
      tensorboard: write the same numbers to `folder/tensorboard` too.
    Raises:
      RunError: a row up to `iteration` is damaged or missing.
    """

    def __init__(self, folder: Path, iteration: int, tensorboard: bool = False):
        for name in (METRICS, TIMING):
            _cut_back(folder / name, iteration)
        self._files = {name: (folder / name).open("a") for name in (METRICS, TIMING)}
        self._tensorboard = (
            summary_writer()(str(folder / "tensorboard"), purge_step=iteration + 1) if tensorboard else None
        )

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
        """Lets go of the files; rows since the last `flush` may be lost, as they are when a process is killed."""
        for file in self._files.values():
            # A disk that is full was told of by `flush`, or what stops the run is told now.
            with contextlib.suppress(OSError):
                file.close()
        if self._tensorboard is not None:
            self._tensorboard.close()

    def __enter__(self) -> "MetricsLog":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a metrics file up to the first that cannot be read; a missing file has none."""
    rows = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            row = json.loads(line)
            _ = int(row["iteration"])
        except (ValueError, TypeError, KeyError):
            break
        rows.append(row)
    return rows


def _cut_back(path: Path, iteration: int) -> None:
    kept = [row for row in read_rows(path) if row["iteration"] <= iteration]
    if [row["iteration"] for row in kept] != list(range(1, iteration + 1)):
        sound = next((n for n, row in enumerate(kept) if row["iteration"] != n + 1), len(kept))
        raise RunError(f"{path}: line {sound + 1} is damaged or missing; there must be rows 1 to {iteration}")
    partial = path.with_suffix(".partial")
    partial.write_text("".join(json.dumps(row) + "\n" for row in kept))
    partial.replace(path)


def summary_writer() -> Any:
    """TensorBoard's writer class.

    Raises:
      ValueError: tensorboardX is not installed.
    """
    try:
        from tensorboardX import SummaryWriter
    except ModuleNotFoundError as error:
        raise InputError("tensorboard needs tensorboardX: pip install 'azjax[log]'") from error
    return SummaryWriter
