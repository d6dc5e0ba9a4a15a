"""Runs commands that write files while one of their writes fails, or all from one on; then runs each without a fault.

    LD_PRELOAD=SHIM python failing_outputs.py FOLDER MOST

SHIM is made of failing_writes.c. Of each command at most MOST writes fail, evenly spread, in both ways. Prints a line
of JSON: how many writes each command makes, how many tries met a fault, and what went wrong.
"""

import contextlib
import errno
import io
import json
import os
import shutil
import sys
import warnings
from pathlib import Path

import numpy as np
from failing_writes import ALWAYS, NEVER, SHIM, fail_writes
from small_run import SMALL

from azjax.cli import main as azjax
from azjax.errors import silence_threads
from azjax.games.registry import make
from azjax.runs import train

ERROR = 1


def run(*arguments: object) -> tuple[int, str]:
    """The exit code of a command, and what it wrote to standard error."""
    output, error = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(error):
        try:
            azjax([str(argument) for argument in arguments])
        except SystemExit as end:
            return int(end.code or 0), error.getvalue()
    return 0, error.getvalue()


def commands(folder: Path) -> dict[str, list[object]]:
    """The commands, and a folder or file that each writes below `folder`."""
    trained, games = folder / "report", ["--games", "4"]
    train(make("connect2"), SMALL, trained)
    match = ["match", "random", "uct:4", "--game", "connect2", *games]
    return {
        "table.npz": ["solve", "hex", "--size", "2", "--output", folder / "table.npz"],
        "games.jsonl": [*match, "--records", folder / "games.jsonl"],
        "pool.jsonl": [*match, "--pool", folder / "pool.jsonl"],
        "weights": ["export", trained, "--format", "safetensors", "--output", folder / "weights"],
        "page": ["play", "connect2", "--export", folder / "page"],
        "report": ["report", trained, *games, "--num-simulations", "4"],
    }


def contents(path: Path) -> dict[str, bytes]:
    """The files at a path, by name."""
    files = [path] if path.is_file() else sorted(path.rglob("*"))
    return {str(file): file.read_bytes() for file in files if file.is_file()}


def main(folder: Path, most: int) -> None:
    silence_threads()
    folder.mkdir(parents=True)
    writes, faults, wrong = {}, 0, []
    outputs = commands(folder)
    for name, command in outputs.items():
        path, kept = folder / name, folder / "kept"
        is_run = name == "report"  # the page is written into the folder of the run
        if is_run:
            shutil.copytree(path, kept)
        fail_writes(path, NEVER, NEVER, 0)
        code, told = run(*command)
        assert code == 0, told
        writes[name] = SHIM.writes()
        for first in sorted({int(each) for each in np.linspace(1, writes[name], most)}):
            for last, number in ((first, errno.EIO), (ALWAYS, errno.ENOSPC)):
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
                if is_run:
                    shutil.copytree(kept, path)
                fail_writes(path, first, last, number)
                code, told = run(*command)
                faults += SHIM.writes() >= first
                fail_writes(path, NEVER, NEVER, 0)
                place = f"{name}, write {first} to {last} of {writes[name]}: exit {code}: {told}"
                if code != ERROR or len(told.splitlines()) != 1 or str(path) not in told:
                    wrong.append(place)
                if list(folder.rglob("*.part")):
                    wrong.append(f"{place}: a part is left")
                again, told = run(*command)
                if again:
                    wrong.append(f"{place}: then exit {again}: {told}")
        before = contents(path)
        fail_writes(path, 1, ALWAYS, errno.ENOSPC)
        code, told = run(*command)
        fail_writes(path, NEVER, NEVER, 0)
        if contents(path) != before:
            wrong.append(f"{name}: what was there has changed: exit {code}: {told}")
        shutil.rmtree(kept, ignore_errors=True)
    print(json.dumps({"writes": writes, "faults": faults, "wrong": wrong}))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    os.environ.setdefault("COLUMNS", "400")  # a line is a line
    main(Path(sys.argv[1]), int(sys.argv[2]))
