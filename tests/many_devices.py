"""Trains on several forced host devices, in a separate process.

Usage as a program: FOLDER CHANGES COUNT..., where CHANGES are JSON.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

GAME = "connect2"


def train_on(folder: Path, counts: list[int], changes: dict) -> dict[int, list[dict]]:
    """Trains or resumes the small run with `changes` in `folder/COUNT` on COUNT devices; the metrics by COUNT."""
    flags = f"--xla_force_host_platform_device_count={max(counts)} {os.environ.get('XLA_FLAGS', '')}"
    path = os.pathsep.join(
        [str(Path(__file__).parent), str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    )
    command = [sys.executable, __file__, str(folder), json.dumps(changes), *map(str, counts)]
    done = subprocess.run(
        command, env={**os.environ, "XLA_FLAGS": flags, "PYTHONPATH": path}, capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0, done.stderr
    return {count: rows(folder / str(count)) for count in counts}


def rows(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


if __name__ == "__main__":
    from small_run import SMALL

    from azjax.games.registry import make
    from azjax.runs import train

    folder, changes, *counts = sys.argv[1:]
    for count in counts:
        train(make(GAME), SMALL.replace(**json.loads(changes)), Path(folder) / count, resume=True, devices=int(count))
