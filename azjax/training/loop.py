"""The host loop around the jitted iteration: run folder, progress, metrics, checkpoints, signals."""

import contextlib
import dataclasses
import importlib.metadata
import json
import math
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import jax
import jax.numpy as jnp
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from azjax.evaluation import Solution, mistakes, network_player, solve, tabulate
from azjax.games.game import Game, make, options_of
from azjax.training.checkpoint import Checkpoints, RunError
from azjax.training.config import Config, Hyper
from azjax.training.iteration import TrainState, init, make_iteration
from azjax.training.metrics import MetricsLog

CONFIG = "config.json"
CHECKPOINTS = "checkpoints"
_MAY_CHANGE = {"iterations", "azjax", "jax"}  # on resume


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
    # Traced before anything is written, so that a configuration that cannot work leaves no folder behind.
    fresh = jax.jit(lambda hyper: init(game, config, config.seed, hyper))
    like = jax.eval_shape(fresh, hyper)
    is_new = _open_folder(folder, game, config, resume)
    checkpoints = Checkpoints(folder / CHECKPOINTS, config.keep_checkpoints)
    console = Console(quiet=True) if console is None else console
    if is_new or not checkpoints.steps():
        start, state = 0, fresh(hyper)
        console.print(config.make_network().summary(game), highlight=False)
    else:
        start, state = checkpoints.restore(like)
    checkpoints.set_aside_after(start)
    if start:
        console.print(f"resumed {folder} at iteration {start}", highlight=False, soft_wrap=True)
    solution = solve(game) if config.evaluate_every else None
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
    with _progress(console) as progress, _stop_requests() as stops:
        task = progress.add_task("", total=config.iterations, completed=start, rates="compiling")
        while done < config.iterations and not stops:
            began = time.perf_counter()
            with jax.transfer_guard("disallow"):
                state, metrics = iterate(state, hyper)
                row = {name: float(value) for name, value in jax.device_get(metrics).items()}
            seconds = time.perf_counter() - began
            done += 1
            is_last = done == config.iterations or bool(stops)
            if solution is not None and done % config.evaluate_every == 0:
                row["mistakes"] = _count_mistakes(game, config, solution, state)
            rates = {"games_per_second": row["games"] / seconds, "simulations_per_second": simulations / seconds}
            log.write(done, row, {"seconds": seconds, **rates})
            if is_last or done % config.checkpoint_every == 0:
                # The rows first: a checkpoint without them could not be resumed to the same files.
                log.flush()
                score = row.get("mistakes" if solution else "loss", math.nan)
                checkpoints.save(done, state, score if math.isfinite(score) else None)
            latest |= row
            progress.update(task, completed=done, rates=_show(latest, rates))
    return TrainResult(folder, state, done, stops[0] if stops and done < config.iterations else None)


def load_run(folder: str | Path) -> tuple[Game, Config]:
    """The game and the configuration of a run folder.

    Raises:
      RunError: it is not a run folder.
    """
    saved = _read_config(Path(folder))
    config = dict(saved["config"], start_positions=tuple(saved["config"]["start_positions"]))
    return make(saved["game"], **saved["options"]), Config(**{**config, "hyper": Hyper(**config["hyper"])})


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
    return mistakes(solution, tabulate(player, solution, jax.random.key(0))[0]).count


def _describe_run(game: Game, config: Config) -> dict[str, Any]:
    return {
        **{package: importlib.metadata.version(package) for package in ("azjax", "jax")},
        "game": game.name,
        "options": options_of(game),
        "config": dataclasses.asdict(config),
    }


def _open_folder(folder: Path, game: Game, config: Config, resume: bool) -> bool:
    """True if a new run begins in `folder`, False if one goes on there."""
    asked = json.loads(json.dumps(_describe_run(game, config)))
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _write_config(folder, asked)
        except OSError as error:
            raise RunError(f"{folder} cannot be made: {error.strerror}") from error
        return True
    saved = _read_config(folder)
    if not resume:
        raise RunError(f"{folder} holds a run already: go on with --resume, or name another folder with --folder")
    for name, (was, now) in _differences(saved, asked).items():
        if name not in _MAY_CHANGE:
            raise RunError(f"{folder} was made with {name} = {was}, asked for {now}; nothing was changed")
    try:
        _write_config(folder, asked)
    except OSError as error:
        raise RunError(f"{folder} cannot be written: {error.strerror}") from error
    return False


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
