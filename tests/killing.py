"""Trains through the command line in processes that are killed (signal 9) at random moments."""

import dataclasses
import random
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np

from azjax.training import Checkpoints, init, load_run

TIMEOUT_SECONDS = 300

# Iterations of milliseconds and many checkpoints, so that kills hit the writing of some.
KILLED = {
    "iterations": 200,
    "width": 16,
    "num-simulations": 2,
    "num-games": 8,
    "updates-per-iteration": 1,
    "batch-size": 8,
    "replay-size": 128,
    "evaluate-every": 2,
    "checkpoint-every": 3,
}


def train_command(game: str, folder: Path, options: list[str]) -> list[str]:
    """The command that begins or resumes the run."""
    program = "from azjax.cli import main; main()"
    command = [sys.executable, "-c", program, "train", game, "--folder", str(folder), "--resume", "--games", "2"]
    return [*command, *options]


def train_to_the_end(game: str, folder: Path, options: list[str]) -> None:
    """Trains without a disturbance."""
    subprocess.run(train_command(game, folder, options), check=True, capture_output=True, timeout=TIMEOUT_SECONDS)


def train_killed(game: str, folder: Path, options: list[str], *, kills: int, longest: float, seed: int) -> int:
    """Kills the training `kills` times, each up to `longest` seconds after it began to write, then lets it end.

    Returns:
      how many of the kills found it still at work.
    """
    rng = random.Random(seed)
    at_work = 0
    for _ in range(kills):
        before = _newest(folder)
        process = subprocess.Popen(
            train_command(game, folder, options), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        began = time.monotonic()
        while _newest(folder) == before and process.poll() is None and time.monotonic() - began < TIMEOUT_SECONDS:
            time.sleep(0.01)
        time.sleep(rng.uniform(0, longest))
        at_work += process.poll() is None
        process.kill()
        process.communicate()
    train_to_the_end(game, folder, options)
    return at_work


def _newest(folder: Path) -> float:
    """When the metrics were last written."""
    path = folder / "metrics.jsonl"
    return path.stat().st_mtime if path.exists() else 0.0


def checkpoint_bits(folder: Path) -> tuple[int, list[bytes]]:
    """The newest checkpoint of a run: its step, and every array as bytes."""
    game, config = load_run(folder)
    like = jax.eval_shape(lambda: init(game, config, 0, config.hyper))
    step, state = Checkpoints(folder / "checkpoints").restore(like)
    state = dataclasses.replace(state, key=jax.random.key_data(state.key))
    return step, [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(state)]


def assert_equal_runs(left: Path, right: Path) -> None:
    """Two runs ended in the same state and wrote the same metrics, byte for byte."""
    assert checkpoint_bits(left) == checkpoint_bits(right)
    assert (left / "metrics.jsonl").read_bytes() == (right / "metrics.jsonl").read_bytes()
