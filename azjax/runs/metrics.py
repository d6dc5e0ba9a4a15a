"""The metrics files of a run, as JSON lines.

`metrics.jsonl` is the same in every run of one configuration; `timing.jsonl` holds times and rates.
"""

import contextlib
import json
import math
import os
from pathlib import Path
from typing import Any, TextIO, TypeAlias

from azjax.core.errors import FileError, RunError
from azjax.core.files import write_text
from azjax.core.json_text import parse_json
from azjax.runs.callback import Callback, Update
from azjax.training.config import Config

METRICS = "metrics.jsonl"
TIMING = "timing.jsonl"

Row: TypeAlias = dict[str, Any]
"""A line of either file: `iteration`, an int, and floats by name; None for a number that is not finite."""


class MetricsLog(Callback):
    """Appends one row for each iteration to both files of a run, at once; other programs can read them meanwhile."""

    def __init__(self) -> None:
        self._files: dict[Path, TextIO] = {}

    def begin(self, folder: Path, config: Config, iteration: int) -> None:
        """Drops the rows after `iteration`, since the checkpoint does not contain them.

        Raises:
          RunError: a row up to `iteration` is damaged or missing.
          FileError: a file cannot be written.
        """
        del config
        for path in (folder / METRICS, folder / TIMING):
            write_text(path, "".join(json.dumps(row) + "\n" for row in rows_up_to(path, iteration)))
            self._files[path] = path.open("a", buffering=1)  # by line

    def __call__(self, update: Update) -> None:
        """Appends the rows; numbers that are not finite become null."""
        for name, row in ((METRICS, update.metrics), (TIMING, update.timing)):
            finite = {key: value if math.isfinite(value) else None for key, value in row.items()}
            self._files[update.folder / name].write(json.dumps({"iteration": update.iteration, **finite}) + "\n")

    def save(self) -> None:
        """Writes what is buffered.

        Raises:
          FileError: a file was removed or replaced, and so perhaps the whole folder.
        """
        for path, file in self._files.items():
            file.flush()
            os.fsync(file.fileno())
            if not (path.exists() and os.path.samestat(path.stat(), os.fstat(file.fileno()))):
                raise FileError(f"{path} was removed or replaced while the run went on")

    def end(self) -> None:
        for file in self._files.values():
            # `save` has reported a full disk, and another error that ends the run must not be hidden.
            with contextlib.suppress(OSError):
                file.close()


def read_rows(path: Path) -> list[Row]:
    """The rows of a metrics file up to the first that cannot be read; none if the file is missing."""
    rows: list[Row] = []
    for line in path.read_bytes().splitlines() if path.exists() else []:
        try:
            row = parse_json(line)
        except ValueError:
            break
        if not (isinstance(row, dict) and type(row.get("iteration")) is int):
            break
        if not all(number is None or type(number) in (int, float) for number in row.values()):
            break
        rows.append(row)
    return rows


def rows_up_to(path: Path, iteration: int) -> list[Row]:
    """The rows of iterations 1 to `iteration`.

    Raises:
      RunError: one of them is damaged or missing.
    """
    kept = [row for row in read_rows(path) if row["iteration"] <= iteration]
    if [row["iteration"] for row in kept] != list(range(1, iteration + 1)):
        sound = next((n for n, row in enumerate(kept) if row["iteration"] != n + 1), len(kept))
        raise RunError(f"{path}: line {sound + 1} is damaged or missing; there must be rows 1 to {iteration}")
    return kept
