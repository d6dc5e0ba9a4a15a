"""The host loop around the jitted iteration: run folder, progress, metrics, checkpoints, signals."""

import contextlib
import dataclasses
import fcntl
import importlib.metadata
import json
import math
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import jax
import jax.numpy as jnp
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from azjax.evaluation import Solution, mistakes, network_player, solve, tabulate
from azjax.games.game import Game, make
from azjax.training.checkpoint import Checkpoints, RunError
from azjax.training.config import Config, Hyper
from azjax.training.iteration import TrainState, init, make_iteration
from azjax.training.metrics import METRICS, MetricsLog, read_rows, summary_writer

CONFIG = "config.json"
CHECKPOINTS = "checkpoints"
_LOCK = "lock"
_MAY_CHANGE = {"iterations"}  # on resume
_PACKAGES = ("azjax", "jax", "jaxlib", "flax", "optax")


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
    tensorboard: bool = False,
    console: Console | None = None,
) -> TrainResult:
    """Trains an agent, keeping everything in a run folder.

    Ctrl-C and SIGTERM end the iteration under way, save, and return; a second one ends at once.

    Args:
      game: what to learn.
      config: how; see `azjax.training.presets.preset`.
      folder: the run's; made if missing.
      resume: go on with the run in `folder`, to the same bit; begin it where there is none.
      tensorboard: log to `folder/tensorboard` too (extra `log`).
      console: where to write progress; nothing is written if None.

    Raises:
      RunError: the folder holds a run and `resume` is not given, or holds something else, or another configuration,
        or no sound checkpoint; or it cannot be written.
      ValueError: the configuration does not fit the game.
    """
    folder = Path(folder)
    hyper = jax.tree.map(jnp.float32, config.hyper)
    # Tried before anything is written, so that what cannot work leaves no folder behind.
    if tensorboard:
        summary_writer()
    fresh = jax.jit(lambda hyper: init(game, config, config.seed, hyper))
    like = jax.eval_shape(fresh, hyper)
    console = Console(quiet=True) if console is None else console
    solution = None
    if config.evaluate_every:
        with console.status("solving the game, to count mistakes"):
            solution = solve(game)
    _open_folder(folder, game, config, resume)
    with _only_trainer(folder):
        return _train_in(folder, game, config, hyper, fresh, like, solution, tensorboard, console)


def _train_in(
    folder: Path,
    game: Game,
    config: Config,
    hyper: Hyper,
    fresh: Callable[[Hyper], TrainState],
    like: Any,
    solution: Solution | None,
    tensorboard: bool,
    console: Console,
) -> TrainResult:
    """Begins or goes on with the run in a folder that is open and locked."""
    checkpoints = Checkpoints(folder / CHECKPOINTS, config.keep_checkpoints)
    if not checkpoints.steps():
        # Rows beyond the first checkpoint were written after it.
        if any(row["iteration"] > config.checkpoint_every for row in read_rows(folder / METRICS)):
            raise RunError(f"{folder} has metrics and no checkpoint: restore its checkpoints, or name another folder")
        start, state = 0, fresh(hyper)
        console.print(config.make_network().summary(game), highlight=False)
    else:
        start, state = checkpoints.restore(like)
    checkpoints.set_aside_after(start)
    if start:
        console.print(f"resumed {folder} at iteration {start}", highlight=False, soft_wrap=True)
    log = MetricsLog(folder, start, tensorboard)
    try:
        return _train(game, config, hyper, folder, state, start, checkpoints, solution, log, console)
    except OSError as error:
        raise RunError(f"{folder}: {error.strerror}") from error
    finally:
        log.close()


def _train(
    game: Game,
    config: Config,
    hyper: Hyper,
    folder: Path,
    state: TrainState,
    start: int,
    checkpoints: Checkpoints,
    solution: Solution | None,
    log: MetricsLog,
    console: Console,
) -> TrainResult:
    iterate = jax.jit(make_iteration(game, config), donate_argnums=0)
    simulations = config.num_games * config.steps_per_iteration * config.num_simulations
    done, latest = start, dict[str, float]()
    stopped_by: signal.Signals | None = None
    with _progress(console) as progress, _stop_requests() as stops:
        task = progress.add_task("", total=config.iterations, completed=start, rates="compiling")
        while done < config.iterations and stopped_by is None:
            began = time.perf_counter()
            with jax.transfer_guard("disallow"):
                state, metrics = iterate(state, hyper)
                row = {name: float(value) for name, value in jax.device_get(metrics).items()}
            seconds = time.perf_counter() - began
            done += 1
            if solution is not None and done % config.evaluate_every == 0:
                row["mistakes"] = _count_mistakes(game, config, solution, state)
            rates = {"games_per_second": row["games"] / seconds, "simulations_per_second": simulations / seconds}
            log.write(done, row, {"seconds": seconds, **rates})
            if not math.isfinite(row["loss"]) and row["replay_positions"] > 0:
                raise RunError(
                    f"{folder}: the loss is {row['loss']} at iteration {done}; the checkpoints before it are kept. "
                    "A lower learning_rate may help"
                )
            # Read once, so that a signal which comes later is served after the next iteration.
            stopped_by = stops[0] if stops else None
            if stopped_by or done == config.iterations or done % config.checkpoint_every == 0:
                # The rows first: a checkpoint without them could not be resumed to the same files.
                log.flush()
                score = row.get("mistakes" if solution else "loss", math.nan)
                checkpoints.save(done, state, score if math.isfinite(score) else None)
            latest |= row
            progress.update(task, completed=done, rates=_show(latest, rates))
    return TrainResult(folder, state, done, stopped_by if done < config.iterations else None)


def load_run(folder: str | Path) -> tuple[Game, Config]:
    """The game and the configuration of a run folder.

    Raises:
      RunError: it is not a run folder.
    """
    saved = _read_config(Path(folder))
    try:
        config = dict(saved["config"], start_positions=tuple(saved["config"]["start_positions"]))
        return make(saved["game"], **saved["options"]), Config(**{**config, "hyper": Hyper(**config["hyper"])})
    except (ValueError, KeyError, TypeError) as error:
        raise RunError(f"{folder}: its {CONFIG} does not describe a run: {error}") from error


def load_variables(folder: str | Path, step: int | None = None) -> tuple[int, Any]:
    """The network's variables at a checkpoint of a run, the newest sound one by default, and its number.

    Raises:
      RunError: it is not a run folder, or there is no sound checkpoint.
    """
    game, config = load_run(folder)
    like = jax.eval_shape(lambda: init(game, config, 0, config.hyper))
    step, state = Checkpoints(Path(folder) / CHECKPOINTS).restore(like, step)
    return step, state.variables


def _count_mistakes(game: Game, config: Config, solution: Solution, state: TrainState) -> float:
    player = network_player(game, config.make_network(), state.variables)
    return mistakes(solution, tabulate(player, solution, jax.random.key(0))).count


def _describe_run(game: Game, config: Config) -> dict[str, Any]:
    return {
        "versions": {package: importlib.metadata.version(package) for package in _PACKAGES},
        "game": game.name,
        "options": game.options,
        "config": dataclasses.asdict(config),
    }


def _open_folder(folder: Path, game: Game, config: Config, resume: bool) -> None:
    """Makes the run's folder, or holds that the run in it may go on with this configuration."""
    asked = json.loads(json.dumps(_describe_run(game, config)))
    # A first writing that was cut off leaves a partial file alone.
    if not folder.exists() or (folder.is_dir() and {path.name for path in folder.iterdir()} <= {CONFIG + ".partial"}):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _write_config(folder, asked)
        except OSError as error:
            raise RunError(f"{folder} cannot be made: {error.strerror}") from error
        return
    saved = _read_config(folder)
    if not resume:
        raise RunError(f"{folder} holds a run already: go on with --resume, or name another folder with --folder")
    # A run from before a field was there was made with its default.
    saved["config"] = json.loads(json.dumps(dataclasses.asdict(Config()))) | saved["config"]
    for name, (was, now) in _differences(saved, asked).items():
        if name in _PACKAGES:
            warnings.warn(f"{folder} was made with {name} {was}, this is {now}: bits may differ", stacklevel=3)
        elif name not in _MAY_CHANGE:
            raise RunError(f"{folder} was made with {name} = {was}, asked for {now}; nothing was changed")
    try:
        _write_config(folder, asked)
    except OSError as error:
        raise RunError(f"{folder} cannot be written: {error.strerror}") from error


@contextlib.contextmanager
def _only_trainer(folder: Path) -> Iterator[None]:
    """Holds the folder's lock, which the system lets go of when the process ends, however it does.

    Raises:
      RunError: another process trains there.
    """
    with (folder / _LOCK).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise RunError(f"{folder}: another process trains there") from None
        yield


def _write_config(folder: Path, description: dict[str, Any]) -> None:
    partial = folder / (CONFIG + ".partial")
    partial.write_text(json.dumps(description, indent=2) + "\n")
    partial.replace(folder / CONFIG)


def _read_config(folder: Path) -> dict[str, Any]:
    try:
        saved = json.loads((folder / CONFIG).read_text())
        _ = saved["game"], saved["options"], saved["config"]["hyper"]
        return saved
    except FileNotFoundError:
        problem = f"there is no {CONFIG}" if folder.is_dir() else "there is no such folder"
    except NotADirectoryError:
        problem = "it is a file"
    except OSError as error:
        problem = str(error.strerror)
    except (ValueError, KeyError, TypeError):
        problem = f"its {CONFIG} cannot be read"
    raise RunError(f"{folder} is not a run folder: {problem}")


def _differences(saved: dict, asked: dict, prefix: str = "") -> dict[str, tuple[Any, Any]]:
    """Fields that differ, named as the options are, with both values."""
    found: dict[str, tuple[Any, Any]] = {}
    for name in {**saved, **asked}:
        was, now = saved.get(name), asked.get(name)
        if isinstance(was, dict) and isinstance(now, dict):
            found |= _differences(was, now)
        elif was != now:
            found[name] = (was, now)
    return found


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
    return shown + ", ".join(f"{_thousands(rates[f'{what}_per_second'])} {what}/s" for what in ("games", "simulations"))


def _thousands(rate: float) -> str:
    return f"{rate / 1000:.1f}k" if rate < 10_000 else f"{rate / 1000:,.0f}k"
