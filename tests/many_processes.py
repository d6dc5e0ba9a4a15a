"""Trains through the command line in several processes of this machine."""

import socket
import subprocess
import time
from pathlib import Path

from killing import KILLED, TIMEOUT_SECONDS, train_command

GAME = "connect2"


def start(folder: Path, *options: str, processes: int = 2) -> list[subprocess.Popen]:
    """Starts the processes of one run, which resumes if it exists; by rank."""
    with socket.create_server(("", 0)) as free:
        meeting = [f"--coordinator=localhost:{free.getsockname()[1]}", f"--processes={processes}"]
    sizes = [f"--{name}={value}" for name, value in {**KILLED, "num-games": 12, "batch-size": 12}.items()]
    return [
        subprocess.Popen(
            train_command(GAME, folder, [*sizes, *options, *meeting, f"--process={rank}"]),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(processes)
    ]


def wait_for_checkpoint(folder: Path, step: int, run: list[subprocess.Popen]) -> None:
    """Returns when the checkpoint exists or a process has ended."""
    began = time.monotonic()
    while not (folder / "checkpoints" / f"{step}.json").exists() and all(one.poll() is None for one in run):
        assert time.monotonic() - began < TIMEOUT_SECONDS
        time.sleep(0.01)


def finish(run: list[subprocess.Popen], seconds: float = TIMEOUT_SECONDS) -> list[tuple[int, str]]:
    """Exit code and standard error of each process."""
    try:
        return [(err, one.returncode)[::-1] for one in run for _, err in [one.communicate(timeout=seconds)]]
    finally:
        for one in run:
            one.kill()
