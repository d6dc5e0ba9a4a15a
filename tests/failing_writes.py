"""Trains a small run while one of its writes fails, or all from one on; then resumes it without a fault.

    LD_PRELOAD=SHIM python failing_writes.py FOLDER TRIES

SHIM is made of failing_writes.c. Prints a line of JSON: how many writes a run makes, how many of the tries met a fault,
and what went wrong.
"""

import contextlib
import ctypes
import dataclasses
import errno
import io
import json
import random
import shutil
import sys
import warnings
from pathlib import Path

from killing import assert_equal_runs
from small_run import SMALL

from azjax.errors import errors_in_one_line, silence_threads
from azjax.games.registry import make
from azjax.runs import train

GAME = make("connect2")
CONFIG = dataclasses.replace(SMALL, iterations=8, updates_per_iteration=1, keep_checkpoints=2)
NEVER, ALWAYS = 0, 10**9
SHIM = ctypes.CDLL(None)


def resume(folder: Path) -> tuple[int, str]:
    """Trains as a command does; returns the exit code and what it wrote to standard error."""
    error = io.StringIO()
    with contextlib.redirect_stderr(error):
        try:
            with errors_in_one_line():
                train(GAME, CONFIG, folder, resume=True)
        except SystemExit as end:
            return int(end.code or 0), error.getvalue()
    return 0, error.getvalue()


def fail_writes(folder: Path, first: int, last: int, number: int) -> None:
    SHIM.fail_writes(str(folder).encode(), first, last, number)


def main(base: Path, tries: int) -> None:
    silence_threads()
    train(GAME, CONFIG, base / "straight")
    folder = base / "run"
    fail_writes(folder, NEVER, NEVER, 0)
    train(GAME, CONFIG, folder)
    writes, rng, faults, wrong = SHIM.writes(), random.Random(0), 0, []
    for number in range(tries):
        shutil.rmtree(folder)
        first = rng.randint(1, writes)
        error, last = rng.choice(
            [(errno.ENOSPC, first), (errno.ENOSPC, ALWAYS), (errno.EIO, first), (errno.EROFS, ALWAYS)]
        )
        fail_writes(folder, first, last, error)
        code, told = resume(folder)
        faults += SHIM.writes() >= first
        fail_writes(folder, NEVER, NEVER, 0)
        place = f"write {first} to {last}, {errno.errorcode[error]}"
        if code and (len(told.splitlines()) != 1 or str(folder) not in told):
            wrong.append(f"{place}: exit {code}: {told}")
        folder.mkdir(exist_ok=True)
        code, told = resume(folder)
        try:
            assert code == 0, told
            assert_equal_runs(base / "straight", folder)
        except AssertionError as difference:
            wrong.append(f"{place}: resumed: {difference}")
            shutil.copytree(folder, base / f"kept_{number}")
    print(json.dumps({"writes": writes, "tries": tries, "faults": faults, "wrong": wrong}))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(Path(sys.argv[1]), int(sys.argv[2]))
