"""The host loop around the jitted iteration: progress, metrics, checkpoints, signals."""

import contextlib
import dataclasses
import functools
import signal
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Literal, NoReturn

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from azjax.games.game import Game
from azjax.core.errors import RunError, SettingsError
from azjax.runs.checkpoint import Checkpoints
from azjax.training.config import Config, Hyper
from azjax.runs.evaluation import Evaluation
from azjax.training.iteration import Metrics, TrainState, init, make_iteration, place_state
from azjax.training.learner import skipped_batch
from azjax.runs.memory import MemoryNeed, free_memory, memory_need
from azjax.runs.metrics import METRICS, MetricsLog, read_rows, summary_writer
from azjax.parallel.processes import is_first, largest_of_all, wait_for_all
from azjax.runs.run_folder import CHECKPOINTS, check_folder, describe_run, only_trainer, write_config
from azjax.parallel.sharding import WHOLE, make_mesh, place


@dataclasses.dataclass(frozen=True)
class TrainResult:
    """How a call of `train` ended.

    Attributes:
      folder: the run's.
      iteration: how many are done in all.
      stopped_by: the signal that ended it early; None if it ran to the end.
    """

    folder: Path
    iteration: int
    stopped_by: signal.Signals | None
    _part: Callable[[], TrainState]

    @property
    def state(self) -> TrainState:
        """After the last iteration done; a copy where several runs were trained at once."""
        return self._part()


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
    `azjax.parallel.peers.joined`) all processes must call it alike, with a folder that they share: they train together,
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
    return run_program(
        game,
        program_of_run(game, config.static, devices),
        [config],
        [Path(folder)],
        seeds=np.uint32(config.seed),
        hypers=jax.tree.map(np.float32, config.hyper),
        resume=resume,
        accept_changes=accept_changes,
        tensorboard=tensorboard,
        console=console,
    )[0]


@dataclasses.dataclass(frozen=True)
class Program:
    """What is iterated: the state of a run, or of several at once. Runs that differ in arrays alone share it.

    Attributes:
      like: shapes and shardings of the state of one run.
      all_like: and of the state of all.
      hypers_like: and of what an iteration reads.
      begin: `begin(seeds, hypers) -> state`, of all runs.
      iterate: `iterate(state, hypers) -> (state, metrics)`, see `make_iteration`; jitted.
      need: of memory, without that of the compiled iteration.
      mesh: the devices.
      devices_of_a_run: over how many of them a run is split.
      part: `part(state, number)`: the state of one run.
      whole: `whole(states)`: the state of all runs.
      with_ladders: `with_ladders(state, ladders)`: the state with other ladders, a list of those of the runs.
    """

    like: TrainState
    all_like: TrainState
    hypers_like: Hyper
    begin: Callable[[Any, Hyper], TrainState]
    iterate: Any
    need: MemoryNeed
    mesh: Mesh
    devices_of_a_run: int
    part: Callable[[TrainState, int], TrainState] = lambda state, _: state
    whole: Callable[[list[TrainState]], TrainState] = lambda states: states[0]
    with_ladders: Callable[[TrainState, list], TrainState] = lambda state, ladders: dataclasses.replace(
        state, ladder=ladders[0]
    )

    @functools.cached_property
    def compiled(self) -> Any:
        """The iteration, compiled once for all runs that share it."""
        return self.iterate.lower(self.all_like, self.hypers_like).compile()


@functools.lru_cache(maxsize=4)
def program_of_run(game: Game, config: Config, devices: int | Literal["all"]) -> Program:
    """Of one run, whose configuration has this static part."""
    mesh = make_mesh(config, devices)
    begin = functools.partial(init, game, config)
    hyper = place(mesh, WHOLE, jax.eval_shape(lambda: jax.tree.map(jnp.float32, config.hyper)))
    like = place_state(mesh, jax.eval_shape(begin, jax.ShapeDtypeStruct((), np.uint32), hyper))
    where = jax.tree.map(lambda leaf: leaf.sharding, like)
    iteration = make_iteration(game, config, mesh)
    return Program(
        like=like,
        all_like=like,
        hypers_like=hyper,
        begin=jax.jit(begin, out_shardings=where),
        iterate=jax.jit(iteration, donate_argnums=0, out_shardings=(where, NamedSharding(mesh, WHOLE))),
        need=memory_need(game, config, like, mesh.size),
        mesh=mesh,
        devices_of_a_run=mesh.size,
    )


def run_program(
    game: Game,
    program: Program,
    configs: Sequence[Config],
    folders: Sequence[Path],
    *,
    seeds: Any,
    hypers: Hyper,
    resume: bool,
    accept_changes: bool,
    tensorboard: bool,
    console: Console | None,
) -> list[TrainResult]:
    """See `train`; the configurations differ in the seed and in `hyper` alone.

    Args:
      program: of the runs.
      configs: of each run.
      folders: of each run.
      seeds: of the runs, as the program takes them.
      hypers: likewise.
      resume: see `train`.
      accept_changes: see `train`.
      tensorboard: see `train`.
      console: see `train`.
    """
    config, mesh = configs[0], program.mesh
    seeds, hypers = (place(mesh, WHOLE, each) for each in (seeds, hypers))
    # Tried before anything is written, so that what cannot work leaves no folder behind.
    if tensorboard:
        summary_writer()
    free, need = free_memory(mesh.local_devices[0], len(mesh.local_devices)), program.need
    need.check(config, free)
    console = Console(quiet=True) if console is None else console
    runs = [
        _Run(each, folder, describe_run(game, each, program.devices_of_a_run))
        for each, folder in zip(configs, folders, strict=True)
    ]
    told = str(folders[0]) if len(runs) == 1 else str(folders[0].parent)
    for run in runs:
        check_folder(run.folder, run.description, resume=resume, accept_changes=accept_changes)
    with console.status("solving the game, to count mistakes" if config.evaluate_every else "beginning"):
        evaluation = Evaluation(game, config)
    wait_for_all("the folder is checked")
    try:
        with contextlib.ExitStack() as stack:
            for run in runs if is_first() else []:
                stack.enter_context(only_trainer(run.folder))
                # Again, since another trainer may have been there meanwhile.
                changes = check_folder(run.folder, run.description, resume=resume, accept_changes=accept_changes)
                if changes:
                    warnings.warn(f"{run.folder} was made with {changes}; going on with what is asked", stacklevel=2)
            start, state = _last_or_fresh(runs, program, seeds, hypers)
            if start < config.iterations:
                with console.status("compiling"):
                    need = need.with_rest(program.compiled)
                    evaluation.compile(program.like)
                need.check(config, free)
            wait_for_all("the state is there")
            for run in runs if is_first() else []:
                run.checkpoints.set_aside_after(start)
                write_config(run.folder, run.description)
            beginning = f"resumed {told} at iteration {start}" if start else config.make_network().summary(game)
            console.print(beginning, highlight=False, soft_wrap=True)
            for run in runs if is_first() else []:
                run.log = stack.enter_context(MetricsLog(run.folder, start, tensorboard))
            loop = _Loop(program, runs, evaluation, console)
            return loop.go_on(start, state, lambda state: program.compiled(state, hypers))
    except OSError as error:
        raise RunError(f"{told}: {error.strerror or error}") from error
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        raise SettingsError(f"{told}: the memory ran out; {need.explain(config)}") from error


@dataclasses.dataclass
class _Run:
    """A run, its folder, and, once it goes on, where its rows are written."""

    config: Config
    folder: Path
    description: dict[str, Any]
    log: MetricsLog | None = None

    @functools.cached_property
    def checkpoints(self) -> Checkpoints:
        return Checkpoints(self.folder / CHECKPOINTS, self.config.keep_checkpoints)


def _last_or_fresh(runs: Sequence[_Run], program: Program, seeds: Any, hypers: Hyper) -> tuple[int, TrainState]:
    """How many iterations are done in all of the runs, and the state after them."""
    if all(run.checkpoints.steps() for run in runs):
        found = [run.checkpoints.restore(program.like) for run in runs]
        # Whoever was killed while they were saved has some that are ahead.
        start = min(step for step, _ in found)
        states = [
            state if step == start else run.checkpoints.restore(program.like, start)[1]
            for run, (step, state) in zip(runs, found, strict=True)
        ]
        return start, program.whole(states)
    for run in runs:
        # Rows beyond the first checkpoint were written after it.
        if any(row["iteration"] > run.config.checkpoint_every for row in read_rows(run.folder / METRICS)):
            raise RunError(
                f"{run.folder} has metrics and no checkpoint: restore its checkpoints, or name another folder"
            )
        for step in run.checkpoints.unfinished_steps():
            warnings.warn(f"{run.folder}: checkpoint {step} has no manifest; beginning anew", stacklevel=3)
    return 0, program.begin(seeds, hypers)


@dataclasses.dataclass(frozen=True)
class _Loop:
    """Runs whose folders are open and locked."""

    program: Program
    runs: Sequence[_Run]
    evaluation: Evaluation
    console: Console

    def go_on(
        self, done: int, state: TrainState, iterate: Callable[[TrainState], tuple[TrainState, Metrics]]
    ) -> list[TrainResult]:
        """Iterates from the state after `done` iterations until the end, or a signal."""
        config = self.runs[0].config
        simulations = config.num_games * config.steps_per_iteration * config.num_simulations
        latest, total = dict[str, float](), {"seconds": 0.0, "evaluation_seconds": 0.0}
        stopped_by: signal.Signals | None = None
        with _progress(self.console) as progress, _stop_requests() as stops:
            task = progress.add_task("", total=config.iterations, completed=done, rates="")
            while done < config.iterations and stopped_by is None:
                began = time.perf_counter()
                with jax.transfer_guard("disallow"):
                    state, metrics = iterate(state)
                    rows = _rows(jax.device_get(metrics), len(self.runs))
                seconds = time.perf_counter() - began
                done += 1
                if self.evaluation.is_due(done):
                    state = self._evaluate(done, state, rows)
                evaluation_seconds = time.perf_counter() - began - seconds
                times = {"seconds": seconds, "evaluation_seconds": evaluation_seconds}
                for run, row in zip(self.runs, rows, strict=True):
                    rates = {
                        "games_per_second": row["games"] / seconds,
                        "simulations_per_second": simulations / seconds,
                    }
                    if run.log is not None:
                        run.log.write(done, row, {**times, **rates})
                if all(row["skipped_in_a_row"] > config.max_skipped_updates for row in rows):
                    self._give_up(done, state, rows)
                # Read once, so that a signal which comes later is served after the next iteration.
                stop = largest_of_all(stops[0] if stops else 0)
                stopped_by = signal.Signals(stop) if stop else None
                if stopped_by or done == config.iterations or done % config.checkpoint_every == 0:
                    self._save(done, state, rows)
                latest |= _mean(rows)
                total = {name: taken + times[name] for name, taken in total.items()}
                games = sum(row["games"] for row in rows) / seconds
                progress.update(task, completed=done, rates=_show(latest, games, len(rows) * simulations / seconds))
        if total["evaluation_seconds"]:
            share = total["evaluation_seconds"] / sum(total.values())
            self.console.print(f"evaluation took {share:.1%} of the time", highlight=False)
        stopped_by = stopped_by if done < config.iterations else None
        return [
            TrainResult(run.folder, done, stopped_by, functools.partial(self.program.part, state, number))
            for number, run in enumerate(self.runs)
        ]

    def _evaluate(self, done: int, state: TrainState, rows: list[dict[str, float]]) -> TrainState:
        """Adds what is measured to the rows, and returns the state on its ladder."""
        ladders = []
        for number, row in enumerate(rows):
            part = self.program.part(state, number)
            if not row["skipped_in_a_row"]:  # else the network may be broken, and learn no more
                part, measured = self.evaluation(done, part)
                row |= measured
            ladders.append(part.ladder)
        return self.program.with_ladders(state, ladders)

    def _save(self, done: int, state: TrainState, rows: list[dict[str, float]]) -> None:
        for number, (run, row) in enumerate(zip(self.runs, rows, strict=True)):
            # The rows first: a checkpoint without them could not be resumed to the same files.
            if run.log is not None:
                run.log.flush()
            run.checkpoints.save(done, self.program.part(state, number), self.evaluation.score(row))

    def _give_up(self, done: int, state: TrainState, rows: list[dict[str, float]]) -> NoReturn:
        """Too many updates in a row had a gradient that is not finite: what the last one learned from is kept."""
        run, row, state = self.runs[0], rows[0], self.program.part(state, 0)
        path = run.folder / f"skipped_batch_{done}.npz"
        whole = state.iteration.sharding
        batch = jax.jit(skipped_batch, static_argnums=1, out_shardings=whole)(state.learner, run.config, state.replay)
        if is_first():
            np.savez(path, **jax.device_get(batch))
        raise SettingsError(
            f"{run.folder}: {row['skipped_in_a_row']:.0f} updates in a row were skipped up to iteration {done}, since "
            f"their gradient was not finite; {path} holds the key and the batch of the last, and the checkpoints "
            "before it are kept. A lower learning_rate may help"
        )


def _rows(metrics: Metrics, count: int) -> list[dict[str, float]]:
    """A row for each run, of metrics [] or [count]."""
    columns = {name: np.reshape(value, count) for name, value in metrics.items()}
    return [{name: float(column[number]) for name, column in columns.items()} for number in range(count)]


def _mean(rows: list[dict[str, float]]) -> dict[str, float]:
    """Of what all rows have."""
    names = set.intersection(*map(set, rows))
    return {name: sum(row[name] for row in rows) / len(rows) for name in names}


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


def _show(row: dict[str, float], games_per_second: float, simulations_per_second: float) -> str:
    """The latest numbers beside the bar."""
    shown = f"loss {row['loss']:.2f}, "
    if "mistakes" in row:
        shown += f"{row['mistakes']:.0f} mistakes, "
    if "ladder_rating" in row:
        shown += f"{row['ladder_rating']:+.0f} Elo, "
    return f"{shown}{_thousands(games_per_second)} games/s, {_thousands(simulations_per_second)} simulations/s"


def _thousands(rate: float) -> str:
    return f"{rate / 1000:.1f}k" if rate < 10_000 else f"{rate / 1000:,.0f}k"
