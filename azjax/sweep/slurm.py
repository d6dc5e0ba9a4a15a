"""Workers as an array of jobs of SLURM, by submitit."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from submitit import AutoExecutor
from submitit.helpers import CommandFunction

from azjax.core.errors import InputError


def submit(
    command: Sequence[str],
    folder: Path,
    workers: int,
    parameters: dict[str, Any],
    *,
    name: str,
    cluster: str = "slurm",
) -> list[Any]:
    """Writes and submits an array of jobs.

    Args:
      command: that makes one worker.
      folder: for the script and what the jobs write.
      workers: jobs of the array.
      parameters: as submitit names them, such as timeout_min, cpus_per_task and slurm_partition.
      name: of the jobs.
      cluster: where to; `local` runs the jobs as processes of this machine.

    Returns:
      submitit's jobs.

    Raises:
      ValueError: a parameter that submitit does not know.
      RuntimeError: there is no SLURM here, or it refuses the jobs.
    """
    executor = AutoExecutor(folder=folder, cluster=cluster)
    try:
        executor.update_parameters(**{"name": name, **parameters})
    except (NameError, AssertionError) as error:
        raise InputError(f"[slurm]: {error}") from error
    # A plain command, so that nothing of ours is put into submitit's file.
    worker = CommandFunction(list(command))
    with executor.batch():
        return [executor.submit(worker) for _ in range(workers)]
