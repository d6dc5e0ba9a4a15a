"""Trains through the command line in processes that are killed (signal 9) at random moments."""

import contextlib
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from azjax.runs import Checkpoints, load_run
from azjax.training import init

TIMEOUT_SECONDS = 300

# Iterations take milliseconds and checkpoints are frequent, so that kills hit the writing of some.
KILLED = {
    "iterations": 200,
    "width": 16,
    "num-simulations": 2,
    "num-games": 8,
    "updates-per-iteration": 1,
    "batch-size": 8,
    "replay-size": 128,
    "evaluate-every": 2,
    "evaluation-share": 100,
    "checkpoint-every": 3,
}

TRAIN = "from azjax.cli import main; main()"

# Kills the process at its n-th operation on a checkpoint file: while it writes, renames or removes one.
_DIE_AT_OPERATION = """
import os, sys
left = {number}
def watch(event, arguments):
    global left
    if event in ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir") and "/checkpoints" in str(arguments[0]):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), 9)
sys.addaudithook(watch)
"""


@contextlib.contextmanager
def hangups_heard() -> Iterator[None]:
    """Within, SIGHUP is not ignored, as it is where nohup began the tests; processes inherit that."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


def train_command(game: str, folder: Path, options: list[str], program: str = TRAIN) -> list[str]:
    """The command that begins or resumes a run. Of several `--NAME=VALUE` of one name it has the last."""
    options = [*{option.partition("=")[0]: option for option in options}.values()]
    command = [sys.executable, "-c", program, "train", game, "--folder", str(folder), "--resume", "--games", "2"]
    return [*command, *options]


def train_to_the_end(game: str, folder: Path, options: list[str]) -> None:
    """Trains without a fault."""
    done = subprocess.run(train_command(game, folder, options), capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    assert done.returncode == 0, done


def train_killed(game: str, folder: Path, options: list[str], *, kills: int, longest: float, seed: int) -> int:
    """Kills the training `kills` times, up to `longest` seconds after its first write each, then lets it end.

    Every second kill happens during an operation on a checkpoint file instead. Each process must have resumed from the
    last committed checkpoint.

    Returns:
      how many processes were still training when they were killed.
    """
    rng = random.Random(seed)
    at_work = 0
    for kill in range(kills):
        steps = Checkpoints(folder / "checkpoints").steps()
        before = _newest(folder)
        at_operation = kill % 2 == 1
        program = _DIE_AT_OPERATION.format(number=rng.randint(1, 400)) + TRAIN if at_operation else TRAIN
        process = subprocess.Popen(
            train_command(game, folder, options, program), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        if not at_operation:
            began = time.monotonic()
            while _newest(folder) == before and process.poll() is None and time.monotonic() - began < TIMEOUT_SECONDS:
                time.sleep(0.01)
            time.sleep(rng.uniform(0, longest))
            process.kill()
        out, err = process.communicate(timeout=TIMEOUT_SECONDS)
        assert process.returncode in (-9, 0), err
        at_work += process.returncode == -9
        if "resumed" in out or not at_operation:
            assert not steps or f"resumed {folder} at iteration {steps[-1]}\n" in out, (steps, out)
    train_to_the_end(game, folder, options)
    return at_work


def _newest(folder: Path) -> float:
    """The time of the last write to the metrics."""
    path = folder / "metrics.jsonl"
    return path.stat().st_mtime if path.exists() else 0.0


def checkpoint_bits(folder: Path) -> tuple[int, list[bytes]]:
    """The newest checkpoint of a run: its step, and every array as bytes."""
    game, config = load_run(folder)
    like = jax.eval_shape(lambda: init(game, config, 0, config.hyper))
    step, state = Checkpoints(folder / "checkpoints").restore(like)
    return step, [_array(leaf).tobytes() for leaf in jax.tree.leaves(state)]


def _array(leaf: jax.Array) -> np.ndarray:
    return np.asarray(jax.random.key_data(leaf) if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf)


def assert_equal_runs(left: Path, right: Path) -> None:
    """Two runs ended in the same state and wrote the same metrics, byte for byte."""
    assert checkpoint_bits(left) == checkpoint_bits(right)
    assert Checkpoints(left / "checkpoints").steps() == Checkpoints(right / "checkpoints").steps()
    assert (left / "metrics.jsonl").read_bytes() == (right / "metrics.jsonl").read_bytes()
