"""The loop around the jitted iteration: checks, checkpoints, metrics, evaluation and signals."""

import contextlib
import dataclasses
import functools
import signal
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

import jax
import numpy as np
from jaxtyping import Float32
from rich.console import Console

from azjax.core.errors import AzjaxError, FileError, InputError, RunError, SettingsError
from azjax.core.files import write_atomically
from azjax.core.signals import discard_output, stop_requests
from azjax.games.arguments import check_is_game
from azjax.games.game import AnyGame
from azjax.networks import summarize
from azjax.parallel.processes import is_first, largest_of_all, wait_for_all
from azjax.parallel.sharding import WHOLE, Devices, shard
from azjax.runs.beginning import Run, restore_or_begin
from azjax.runs.callback import Callback, Update
from azjax.runs.compiled_run import CompiledRun, Seeds, compile_run
from azjax.runs.divergence import DivergenceWarning
from azjax.runs.evaluation import PeriodicEvaluation
from azjax.runs.folder_guard import FolderGuard
from azjax.runs.ladder_games import save_ladder_games
from azjax.runs.memory import memory_of
from azjax.runs.metrics import METRICS, TIMING, MetricsLog, rows_up_to
from azjax.runs.precision import settle_precision
from azjax.runs.progress import TrainingProgress
from azjax.runs.run_folder import check_folder, describe_run, only_trainer, write_config
from azjax.training.config import Config
from azjax.training.hyper import Hyper
from azjax.training.iteration import TrainState
from azjax.training.learner import skipped_batch
from azjax.training.loss import ALPHAZERO_LOSS, LossTerm, check_loss_terms
from azjax.training.schedules import mean_simulations


@dataclasses.dataclass(frozen=True)
class TrainResult:
    """How a call of `train` ended.

    Attributes:
      folder: the run folder.
      iteration: number of iterations done in all.
      stopped_by: the signal that ended training early; None if it ran to the end.
    """

    folder: Path
    iteration: int
    stopped_by: signal.Signals | None
    _select_state: Callable[[], TrainState]

    @property
    def state(self) -> TrainState:
        """The state after the last iteration; of a member of a population, a copy."""
        return self._select_state()


def train(
    game: AnyGame,
    config: Config,
    folder: str | Path,
    *,
    resume: bool = False,
    accept_changes: bool = False,
    console: Console | None = None,
    devices: Devices = 1,
    loss_terms: tuple[LossTerm, ...] = ALPHAZERO_LOSS,
    callbacks: Sequence[Callable[[Update], None]] = (),
) -> TrainResult:
    """Trains an agent and keeps everything in a run folder.

    Ctrl-C, SIGTERM or SIGHUP finishes the current iteration, saves, and returns. So does an output whose reader is
    gone, as SIGPIPE. A second signal acts as usual.

    The parallel games, their replay and the batch of an optimizer step are split over the devices. With several
    processes (`azjax.parallel.peers.joined`) every process makes the same call with the same shared folder. A signal
    to one process stops all of them, and process 0 alone writes the files that are not arrays.

    Args:
      game: the game to learn.
      config: the configuration; see `azjax.training.presets.preset`.
      folder: the run folder; made if missing.
      resume: continue the run in `folder` to the same bit, or begin it if there is none.
      accept_changes: continue although the configuration, the rules of the game, the platform or the package versions
        have changed, as long as all arrays keep their shapes; a warning names the changes.
      console: where to show progress; nothing is shown if None.
      devices: number of devices of each process, or `all`. Games draw the same random numbers on any number of devices
        and networks compute the same up to rounding, so a run may continue on another number.
      loss_terms: the terms of the loss.
      callbacks: called after each iteration; see `azjax.runs.Callback`.

    Raises:
      RunError: the folder holds a run and `resume` is false; it is not a run folder; it needs `accept_changes`; it has
        no sound checkpoint; or another process trains there.
      SettingsError: too little memory, or too many updates in a row were skipped.
      FileError: a file cannot be written.
      InputError: the configuration or the number of devices does not fit the game, or a callback is none.
    """
    check_is_game(game)
    if not isinstance(config, Config):
        raise InputError(f"config must be a Config, such as azjax.preset(game), got {config!r}")
    if not isinstance(folder, str | Path):
        raise InputError(f"folder must be a path, got {folder!r}")
    loss_terms = check_loss_terms(loss_terms)
    folder, console = Path(folder), console or Console(quiet=True)
    config = settle_precision(game, config, folder, console)
    return train_runs(
        game,
        compile_run(game, config.static, devices, loss_terms),
        [config],
        [folder],
        seeds=np.uint32(config.seed),
        hyper=jax.tree.map(np.float32, config.hyper),
        resume=resume,
        accept_changes=accept_changes,
        console=console,
        loss_terms=loss_terms,
        callbacks=callbacks,
    )[0]


def train_runs(
    game: AnyGame,
    compiled_run: CompiledRun,
    configs: Sequence[Config],
    folders: Sequence[Path],
    *,
    seeds: Seeds,
    hyper: Hyper,
    resume: bool,
    accept_changes: bool,
    console: Console,
    loss_terms: tuple[LossTerm, ...],
    callbacks: Sequence[Callable[[Update], None]],
) -> list[TrainResult]:
    """Trains the runs of one program; the arguments that are not listed are those of `train`.

    Args:
      game: the game to learn.
      compiled_run: the program.
      configs: the configuration of each run; they differ in the seed and in `hyper` alone.
      folders: the folder of each run.
      seeds: for `compiled_run.begin`.
      hyper: likewise.
    """
    config, mesh, users = configs[0], compiled_run.mesh, [*map(_as_callback, callbacks)]
    seeds, hyper = shard(mesh, WHOLE, seeds), shard(mesh, WHOLE, hyper)
    # These checks come before anything is written, so that a run that cannot work leaves no folder behind.
    memory, need = memory_of(mesh.local_devices[0], len(mesh.local_devices)), compiled_run.need
    need.check(config, memory)
    _warn_of_a_short_schedule(config)
    runs = [
        Run(each, folder, describe_run(game, each, compiled_run.devices_per_run, loss_terms))
        for each, folder in zip(configs, folders, strict=True)
    ]
    name = folders[0] if len(runs) == 1 else folders[0].parent
    for run in runs:
        check_folder(run.folder, run.description, resume=resume, accept_changes=accept_changes)
    with console.status("solving the game, to count mistakes" if config.evaluate_every else "beginning"):
        evaluation = PeriodicEvaluation(game, config)
    wait_for_all("folders are checked")
    writers, changes = runs if is_first() else [], dict[Path, str]()
    try:
        with contextlib.ExitStack() as stack:
            for run in writers:
                stack.enter_context(only_trainer(run.folder))
                # Another process may have trained there since the first check.
                changes[run.folder] = check_folder(
                    run.folder, run.description, resume=resume, accept_changes=accept_changes
                )
            start, state = restore_or_begin(runs, compiled_run, seeds, hyper)
            if start > config.iterations:
                raise RunError(f"{name} has done {start:,} iterations, and {config.iterations:,} are requested")
            for folder, changed in changes.items():
                if changed:
                    warnings.warn(f"{folder} was made with {changed}; going on with the requested values", stacklevel=2)
            if start < config.iterations:
                with console.status("compiling"):
                    need = need.with_temporary(compiled_run.compiled)
                    evaluation.compile(compiled_run.abstract_run)
                need.check(config, memory)
            wait_for_all("state is restored")
            for run in writers:  # before any of them is changed
                for metrics_file in (METRICS, TIMING):
                    rows_up_to(run.folder / metrics_file, start)
            for run in writers:
                run.checkpoints.set_aside_after(start)
                write_config(run.folder, run.description)
            network = summarize(config.make_network(game), game)
            beginning = f"resumed {name} at iteration {start}" if start else network
            console.print(beginning, highlight=False, soft_wrap=True)
            end, steps = _schedule(config)
            if end > steps:
                note = f"warmup_updates is {config.warmup_updates:,}, decay_updates is {config.decay_updates:,}"
                note = f"the learning rate does not reach the end of its schedule: {note}, and this run has "
                console.print(f"{note}{steps:,} updates", highlight=False, soft_wrap=True)
            own = MetricsLog(), FolderGuard(), DivergenceWarning()
            called = [*own, *users, TrainingProgress(console)] if writers else []
            for callback in called:
                stack.callback(callback.end)
                for run in runs:
                    callback.begin(run.folder, run.config, start)
            return _Loop(game, compiled_run, hyper, runs, evaluation, console, called).iterate(start, state)
    except (AzjaxError, BrokenPipeError):
        raise
    except OSError as error:
        raise FileError(f"{error.filename or name}: {error.strerror or error}") from error
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        raise SettingsError(f"{name}: the memory ran out; {need.explain(config)}") from error


def _schedule(config: Config) -> tuple[int, int]:
    """The optimizer step at which the schedule of the learning rate ends, and those of the run."""
    return config.warmup_updates + config.decay_updates, config.iterations * config.updates_per_iteration


def _warn_of_a_short_schedule(config: Config) -> None:
    """Warns of a run that learns for more than a tenth of its steps after the learning rate has fallen to its end."""
    end, steps = _schedule(config)
    if config.decay_updates and not config.gate_games and steps > 1.1 * end:  # a gate may take fewer steps, or more
        warnings.warn(
            f"the learning rate falls until optimizer step {end:,} of {steps:,} and then stays at final_learning_rate: "
            "give decay_updates too, with other iterations",
            stacklevel=3,
        )


@dataclasses.dataclass(frozen=True)
class _Loop:
    """Iterates runs whose folders are open and locked."""

    game: AnyGame
    compiled_run: CompiledRun
    hyper: Hyper
    runs: Sequence[Run]
    evaluation: PeriodicEvaluation
    console: Console
    callbacks: Sequence[Callback]

    def iterate(self, done: int, state: TrainState) -> list[TrainResult]:
        """Iterates from the state after `done` iterations until the end or a signal."""
        config = self.runs[0].config
        plies = config.num_games * config.steps_per_iteration
        total = {"seconds": 0.0, "evaluation_seconds": 0.0}
        rows = [{"skipped_in_a_row": 0.0} for _ in self.runs]
        stopped_by: signal.Signals | None = None
        with stop_requests() as stops:
            while done < config.iterations and stopped_by is None:
                began = time.perf_counter()
                with jax.transfer_guard("disallow"):
                    state, metrics = self.compiled_run.compiled(state, self.hyper)
                    rows = _rows(jax.device_get(metrics), len(self.runs))
                seconds = time.perf_counter() - began
                done += 1
                times = {"seconds": seconds, "evaluation_seconds": 0.0}
                if self.evaluation.is_due(done):
                    state = self._evaluate(done, state, rows)
                    times["evaluation_seconds"] = time.perf_counter() - began - seconds
                for index, (run, row) in enumerate(zip(self.runs, rows, strict=True)):
                    rates = {
                        "games_per_second": row["games"] / seconds,
                        "simulations_per_second": plies * mean_simulations(run.config, done - 1) / seconds,
                    }
                    select = functools.partial(self.compiled_run.select, state, index)
                    update = Update(run.folder, done, config.iterations, row, times | rates, select)
                    try:
                        for callback in self.callbacks:
                            callback(update)
                    except BrokenPipeError:  # whoever reads the output has ended, as `head -1` does
                        discard_output([1])
                        stops.append(signal.SIGPIPE)
                if all(row["skipped_in_a_row"] > config.max_skipped_updates for row in rows):
                    self._give_up(done, state, rows)
                # Read once: a signal that comes later is served after the next iteration.
                stop = largest_of_all(stops[0] if stops else 0)
                stopped_by = signal.Signals(stop) if stop else None
                if stopped_by or done == config.iterations or done % config.checkpoint_every == 0:
                    self._save(done, state, rows)
                total = {name: taken + times[name] for name, taken in total.items()}
        if total["evaluation_seconds"]:
            share = total["evaluation_seconds"] / sum(total.values())
            self.console.print(f"evaluation took {share:.1%} of the time", highlight=False)
        for run, row in zip(self.runs, rows, strict=True):
            if row["skipped_in_a_row"]:
                count = f"{row['skipped_in_a_row']:.0f}"
                told = f"{run.folder}: the last {count} updates were skipped, since their gradient was not finite"
                warnings.warn(told, stacklevel=3)
        stopped_by = stopped_by if done < config.iterations else None
        return [
            TrainResult(run.folder, done, stopped_by, functools.partial(self.compiled_run.select, state, index))
            for index, run in enumerate(self.runs)
        ]

    def _evaluate(self, done: int, state: TrainState, rows: list[dict[str, float]]) -> TrainState:
        """Adds the evaluation of each run to its row; returns the state with the new ladders."""
        ladders = []
        for index, row in enumerate(rows):
            run_state = self.compiled_run.select(state, index)
            if not row["skipped_in_a_row"]:  # else the network may be broken for good
                run_state, metrics, match = self.evaluation(done, run_state)
                row |= metrics
                if match is not None and is_first():
                    save_ladder_games(self.runs[index].folder, self.game, done, match)
            ladders.append(run_state.ladder)
        return dataclasses.replace(state, ladder=self.compiled_run.stack(ladders))

    def _save(self, done: int, state: TrainState, rows: list[dict[str, float]]) -> None:
        # The rows go first: without them a run could not resume from the checkpoint to the same files.
        for callback in self.callbacks:
            callback.save()
        for index, (run, row) in enumerate(zip(self.runs, rows, strict=True)):
            # One that a stop made is never the best. Neither it nor the end of a run that goes on later stays, so that
            # what is kept does not depend on them.
            is_regular = done % run.config.checkpoint_every == 0
            score = self.evaluation.score(row) if is_regular or done == run.config.iterations else None
            run.checkpoints.save(done, self.compiled_run.select(state, index), score, temporary=not is_regular)
        # Only now: a process killed between the saves of two members resumes from a step that all members have.
        for run in self.runs if is_first() else []:
            run.checkpoints.prune()

    def _give_up(self, done: int, state: TrainState, rows: list[dict[str, float]]) -> NoReturn:
        """Saves the batch of the last skipped update of the first run, and raises."""
        run, row, state = self.runs[0], rows[0], self.compiled_run.select(state, 0)
        path = run.folder / f"skipped_batch_{done}.npz"
        whole = state.iteration.sharding
        batch = jax.jit(skipped_batch, static_argnums=1, out_shardings=whole)(state.learner, run.config, state.replay)
        if is_first():
            with write_atomically(path) as file:
                np.savez(file, **jax.device_get(batch))
        raise SettingsError(
            f"{run.folder}: {row['skipped_in_a_row']:.0f} updates in a row were skipped up to iteration {done}, since "
            f"their gradient was not finite; {path} holds the key and the batch of the last, and the checkpoints "
            "before it are kept. A lower learning_rate may help; of a game of your own, `azjax check` finds NaN"
        )


def _rows(metrics: Mapping[str, Float32[np.ndarray, "*P"]], count: int) -> list[dict[str, float]]:
    """One row for each run, from metrics of shape [], or [P] in a population."""
    columns = {name: np.reshape(value, count) for name, value in metrics.items()}
    return [{name: float(column[index]) for name, column in columns.items()} for index in range(count)]


class _Function(Callback):
    """A function as a callback."""

    def __init__(self, function: Callable[[Update], None]):
        self._function = function

    def __call__(self, update: Update) -> None:
        self._function(update)


def _as_callback(function: Callable[[Update], None]) -> Callback:
    if isinstance(function, type) or not callable(function):
        raise InputError(f"callbacks must be functions of an Update or objects of Callback, got {function!r}")
    return function if isinstance(function, Callback) else _Function(function)
