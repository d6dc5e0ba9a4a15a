"""Workers as an array of SLURM jobs, with submitit."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from submitit import AutoExecutor, Job
from submitit.helpers import CommandFunction

from azjax.core.errors import InputError, RunError


def submit(
    command: Sequence[str],
    folder: Path,
    workers: int,
    parameters: dict[str, Any],
    *,
    name: str,
    cluster: str = "slurm",
) -> list[Job[Any]]:
    """Writes and submits an array of jobs.

    Args:
      command: the command of one worker.
      folder: the folder for the script and the output of the jobs.
      workers: number of jobs.
      parameters: submitit's parameters, such as timeout_min, cpus_per_task and slurm_partition.
      name: the name of the jobs.
      cluster: `slurm`, or `local` to run the jobs as processes of this machine.

    Returns:
      submitit's jobs.

    Raises:
      InputError: submitit does not know a parameter.
      RunError: there is no SLURM on this machine, or it refuses the jobs.
    """
    # A plain command, so that submitit's file holds nothing of azjax.
    worker = CommandFunction(list(command))
    try:
        executor = AutoExecutor(folder=folder, cluster=cluster)
        executor.update_parameters(**{"name": name, **parameters})
        with executor.batch():
            return [executor.submit(worker) for _ in range(workers)]
    except (NameError, AssertionError) as error:
        raise InputError(f"[slurm]: {error}") from error
    except RuntimeError as error:
        raise RunError(str(error)) from error
