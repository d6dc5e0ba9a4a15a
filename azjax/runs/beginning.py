"""Where training begins: at the first iteration, or after the last one that all runs of a program have saved."""

import dataclasses
import functools
import warnings
from collections.abc import Sequence
from pathlib import Path

from azjax.core.errors import RunError
from azjax.runs.checkpoint import Checkpoints
from azjax.runs.compiled_run import CompiledRun, Seeds
from azjax.runs.metrics import METRICS, read_rows
from azjax.runs.run_folder import CHECKPOINTS, RunDescription
from azjax.training.config import Config
from azjax.training.hyper import Hyper
from azjax.training.iteration import TrainState


@dataclasses.dataclass
class Run:
    """One run, perhaps a member of a population."""

    config: Config
    folder: Path
    description: RunDescription

    @functools.cached_property
    def checkpoints(self) -> Checkpoints:
        return Checkpoints(self.folder / CHECKPOINTS, self.config.keep_checkpoints)


def restore_or_begin(
    runs: Sequence[Run], compiled_run: CompiledRun, seeds: Seeds, hyper: Hyper
) -> tuple[int, TrainState]:
    """The number of iterations that all runs have done, and the state after them."""
    if all(run.checkpoints.steps() for run in runs):
        steps, states = [], []
        for run in runs:
            step, state = run.checkpoints.restore(compiled_run.abstract_run)
            steps.append(step)
            states.append(compiled_run.hold(state))
        # A process killed between two saves leaves some runs ahead of the others.
        start = min(steps)
        for place, (run, step) in enumerate(zip(runs, steps, strict=True)):
            if step > start:
                states[place] = compiled_run.hold(run.checkpoints.restore(compiled_run.abstract_run, start)[1])
        return start, compiled_run.join(states)
    begun = [run.folder for run in runs if run.checkpoints.steps()]
    for run in runs:
        if run.folder not in begun:
            _check_has_lost_no_checkpoint(run, begun)
        for step in run.checkpoints.unfinished_steps():
            warnings.warn(f"{run.folder}: checkpoint {step} has no manifest; the run begins at its start", stacklevel=3)
    return 0, compiled_run.begin(seeds, hyper)


def _check_has_lost_no_checkpoint(run: Run, begun: Sequence[Path]) -> None:
    """Checks that a run without a checkpoint, beside those in the folders `begun` that have one, had none so far."""
    rows = read_rows(run.folder / METRICS)
    # Rows after the first checkpoint is due prove that there was one. After the last row there is one too, unless the
    # run was stopped before it was written: then the folder of checkpoints holds none.
    has_folder = run.checkpoints.folder.is_dir()
    due = run.config.checkpoint_every + 1 if has_folder else min(run.config.checkpoint_every + 1, run.config.iterations)
    if any(row["iteration"] >= due for row in rows):
        raise RunError(f"{run.folder} has metrics and no checkpoint: restore its checkpoints, or name another folder")
    # One that has rows was stopped between its first save and that of another.
    if begun and not rows:
        raise RunError(
            f"{run.folder} has no checkpoint and {begun[0]} has: a population goes on with the members that it "
            "began with; train others in another folder"
        )
    if rows:
        warnings.warn(
            f"{run.folder} has {len(rows):,} rows of metrics and no checkpoint: it begins again", stacklevel=4
        )
