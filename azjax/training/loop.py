"""The host loop around the jitted iteration: progress, metrics, checkpoints, signals."""

import contextlib
import dataclasses
import functools
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, Literal, NoReturn

import jax
import numpy as np
from jax.sharding import NamedSharding
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from azjax.games.game import Game
from azjax.training.checkpoint import Checkpoints, RunError
from azjax.training.config import Config
from azjax.training.evaluation import Evaluation
from azjax.training.iteration import Metrics, TrainState, init, make_iteration, place_state
from azjax.training.learner import skipped_batch
from azjax.training.memory import free_memory, memory_need
from azjax.training.metrics import METRICS, MetricsLog, read_rows, summary_writer
from azjax.training.processes import is_first, largest_of_all, wait_for_all
from azjax.training.run_folder import CHECKPOINTS, check_folder, describe_run, only_trainer, write_config
from azjax.training.sharding import WHOLE, make_mesh, place


@dataclasses.dataclass(frozen=True)
class TrainResult:
    """How a call of `train` ended.

    Attributes:
      folder: the run's.
      state: after the last iteration done.
      iteration: how many are done in all.
      stopped_by: the signal that ended it early; None if it ran to the end.
    """

    folder: Path
    state: TrainState
    iteration: int
    stopped_by: signal.Signals | None


def train(
    game: Game,
    config: Config,
    folder: str | Path,
    *,
    resume: bool = False,
    accept_changes: bool = False,
    tensorboard: bool = False,
    console: Console | None = None,
    devices: int | Literal["all"] = 1,
) -> TrainResult:
    """Trains an agent, keeping everything in a run folder.

    Ctrl-C and SIGTERM end the iteration under way, save, and return; a second one ends at once.

    Games, their replay and the batch of a step are split over the devices. After `jax.distributed.initialize` (see
    `azjax.training.peers.joined`) all processes must call it alike, with a folder that they share: they train together,
    a signal to one of them stops all, and what is not an array is written by process 0 alone.

    Args:
      game: what to learn.
      config: how; see `azjax.training.presets.preset`.
      folder: the run's; made if missing.
      resume: go on with the run in `folder`, to the same bit; begin it where there is none.
      accept_changes: go on although configuration, rules of the game, platform or packages are not those of the run,
        as long as the arrays are of the same shapes; what changed is told in a warning.
      tensorboard: log to `folder/tensorboard` too (extra `log`).
      console: where to write progress; nothing is written if None.
      devices: how many of each process; `all` that it has. Games are drawn alike on any number of them, networks
        compute the same up to rounding, and a run may go on with another number.

    Raises:
      RunError: the folder holds a run and `resume` is not given, or holds something else, or what was not accepted,
        or no sound checkpoint; or it cannot be written; or another process trains there; or the memory is too small;
        or too many updates in a row were skipped.
      ValueError: the configuration does not fit the game, or the number of devices.
    """
    folder = Path(folder)
    mesh = make_mesh(config, devices)
    hyper = place(mesh, WHOLE, jax.tree.map(np.float32, config.hyper))
    # Tried before anything is written, so that what cannot work leaves no folder behind.
    if tensorboard:
        summary_writer()
    begin = functools.partial(init, game, config, config.seed)
    like = place_state(mesh, jax.eval_shape(begin, hyper))
    where = jax.tree.map(lambda leaf: leaf.sharding, like)
    own = len(mesh.local_devices)
    free, need = free_memory(mesh.local_devices[0], own), memory_need(game, config, like, mesh.size)
    need.check(config, free)
    description = describe_run(game, config, mesh.size)
    check_folder(folder, description, resume=resume, accept_changes=accept_changes)
    console = Console(quiet=True) if console is None else console
    with console.status("solving the game, to count mistakes" if config.evaluate_every else "beginning"):
        evaluation = Evaluation(game, config)
    wait_for_all("the folder is checked")
    try:
        with only_trainer(folder) if is_first() else contextlib.nullcontext():
            if is_first():
                # Again, since another trainer may have been there meanwhile.
                changes = check_folder(folder, description, resume=resume, accept_changes=accept_changes)
                if changes:
                    warnings.warn(f"{folder} was made with {changes}; going on with what is asked", stacklevel=2)
            checkpoints = Checkpoints(folder / CHECKPOINTS, config.keep_checkpoints)
            fresh = jax.jit(begin, out_shardings=where)
            start, state = _last_or_fresh(folder, config, checkpoints, like, lambda: fresh(hyper))
            iterate: Any = None
            if start < config.iterations:
                with console.status("compiling"):
                    iteration = make_iteration(game, config, mesh)
                    jitted = jax.jit(iteration, donate_argnums=0, out_shardings=(where, NamedSharding(mesh, WHOLE)))
                    iterate = jitted.lower(like, hyper).compile()
                    evaluation.compile(like)
                need = need.with_rest(iterate)
                need.check(config, free)
            wait_for_all("the state is there")
            if is_first():
                checkpoints.set_aside_after(start)
                write_config(folder, description)
            told = f"resumed {folder} at iteration {start}" if start else config.make_network().summary(game)
            console.print(told, highlight=False, soft_wrap=True)
            with MetricsLog(folder, start, tensorboard) if is_first() else contextlib.nullcontext() as log:
                run = _Run(config, folder, checkpoints, evaluation, log, console)
                return run.go_on(start, state, lambda state: iterate(state, hyper))
    except OSError as error:
        raise RunError(f"{folder}: {error.strerror or error}") from error
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        raise RunError(f"{folder}: the memory ran out; {need.explain(config)}") from error


def _last_or_fresh(
    folder: Path, config: Config, checkpoints: Checkpoints, like: Any, fresh: Callable[[], TrainState]
) -> tuple[int, TrainState]:
    """How many iterations are done, and the state after them."""
    if checkpoints.steps():
        return checkpoints.restore(like)
    # Rows beyond the first checkpoint were written after it.
    if any(row["iteration"] > config.checkpoint_every for row in read_rows(folder / METRICS)):
        raise RunError(f"{folder} has metrics and no checkpoint: restore its checkpoints, or name another folder")
    for step in checkpoints.unfinished_steps():
        warnings.warn(f"{folder}: checkpoint {step} has no manifest; beginning anew", stacklevel=3)
    return 0, fresh()


@dataclasses.dataclass(frozen=True)
class _Run:
    """A run whose folder is open and locked."""

    config: Config
    folder: Path
    checkpoints: Checkpoints
    evaluation: Evaluation
    log: MetricsLog | None
    console: Console

    def go_on(
        self, done: int, state: TrainState, iterate: Callable[[TrainState], tuple[TrainState, Metrics]]
    ) -> TrainResult:
        """Iterates from the state after `done` iterations until the end, or a signal."""
        config = self.config
        simulations = config.num_games * config.steps_per_iteration * config.num_simulations
        latest, total = dict[str, float](), {"seconds": 0.0, "evaluation_seconds": 0.0}
        stopped_by: signal.Signals | None = None
        with _progress(self.console) as progress, _stop_requests() as stops:
            task = progress.add_task("", total=config.iterations, completed=done, rates="")
            while done < config.iterations and stopped_by is None:
                began = time.perf_counter()
                with jax.transfer_guard("disallow"):
                    state, metrics = iterate(state)
                    row = {name: float(value) for name, value in jax.device_get(metrics).items()}
                seconds = time.perf_counter() - began
                done += 1
                if not row["skipped_in_a_row"]:  # else the network may be broken, and learn no more
                    state, measured = self.evaluation(done, state)
                    row |= measured
                times = {"seconds": seconds, "evaluation_seconds": time.perf_counter() - began - seconds}
                rates = {"games_per_second": row["games"] / seconds, "simulations_per_second": simulations / seconds}
                if self.log is not None:
                    self.log.write(done, row, {**times, **rates})
                if row["skipped_in_a_row"] > config.max_skipped_updates:
                    self._give_up(done, state, row)
                # Read once, so that a signal which comes later is served after the next iteration.
                stop = largest_of_all(stops[0] if stops else 0)
                stopped_by = signal.Signals(stop) if stop else None
                if stopped_by or done == config.iterations or done % config.checkpoint_every == 0:
                    # The rows first: a checkpoint without them could not be resumed to the same files.
                    if self.log is not None:
                        self.log.flush()
                    self.checkpoints.save(done, state, self.evaluation.score(row))
                latest |= row
                total = {name: taken + times[name] for name, taken in total.items()}
                progress.update(task, completed=done, rates=_show(latest, rates))
        if total["evaluation_seconds"]:
            share = total["evaluation_seconds"] / sum(total.values())
            self.console.print(f"evaluation took {share:.1%} of the time", highlight=False)
        return TrainResult(self.folder, state, done, stopped_by if done < config.iterations else None)

    def _give_up(self, done: int, state: TrainState, row: dict[str, float]) -> NoReturn:
        """Too many updates in a row had a gradient that is not finite: what the last one learned from is kept."""
        path = self.folder / f"skipped_batch_{done}.npz"
        whole = state.iteration.sharding
        batch = jax.jit(skipped_batch, static_argnums=1, out_shardings=whole)(state.learner, self.config, state.replay)
        if is_first():
            np.savez(path, **jax.device_get(batch))
        raise RunError(
            f"{self.folder}: {row['skipped_in_a_row']:.0f} updates in a row were skipped up to iteration {done}, since "
            f"their gradient was not finite; {path} holds the key and the batch of the last, and the checkpoints "
            "before it are kept. A lower learning_rate may help"
        )


@contextlib.contextmanager
def _stop_requests() -> Iterator[list[signal.Signals]]:
    """Collects Ctrl-C and SIGTERM; after the first, the next one acts as usual."""
    stops: list[signal.Signals] = []

    def ask(number: int, frame: FrameType | None) -> None:
        del frame
        stops.append(signal.Signals(number))
        signal.signal(number, before[number])

    before: dict[int, Any] = {}
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            # Only the main thread may listen; elsewhere the caller does.
            with contextlib.suppress(ValueError):
                before[number] = signal.signal(number, ask)
        yield stops
    finally:
        for listened, handler in before.items():
            signal.signal(listened, handler)


def _progress(console: Console) -> Progress:
    """Fits into 80 columns."""
    return Progress(
        BarColumn(12), MofNCompleteColumn(), TextColumn("{task.fields[rates]}"), TimeRemainingColumn(), console=console
    )


def _show(row: dict[str, float], rates: dict[str, float]) -> str:
    """The latest numbers beside the bar."""
    shown = f"loss {row['loss']:.2f}, "
    if "mistakes" in row:
        shown += f"{row['mistakes']:.0f} mistakes, "
    if "ladder_rating" in row:
        shown += f"{row['ladder_rating']:+.0f} Elo, "
    return shown + ", ".join(f"{_thousands(rates[f'{what}_per_second'])} {what}/s" for what in ("games", "simulations"))


def _thousands(rate: float) -> str:
    return f"{rate / 1000:.1f}k" if rate < 10_000 else f"{rate / 1000:,.0f}k"
