"""Code that the studies share: output folders, training with a preset, result files, and the style of figures."""

import functools
import hashlib
import inspect
import json
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.console import Console

import azjax
from azjax.benchmark.report import check_output, machine, write_report
from azjax.commands.parsing import parse_with_tyro
from azjax.core.errors import InputError
from azjax.errors import errors_in_one_line, silence_threads
from azjax.evaluation.solution import Solution
from azjax.games.game import AnyGame, Game
from azjax.packaged import archive
from azjax.report.figures import check_picture
from azjax.runs import Checkpoints
from azjax.runs.metrics import TIMING, read_rows
from azjax.runs.run_folder import CHECKPOINTS
from azjax.training import Config, init, make_iteration

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "experiments" / "results"
DOCS = ROOT / "docs"
RUNS = ROOT / "runs"

# What the training of packaged agents changes in the presets of their games, which end sooner.
LONGER_TRAINING: dict[str, dict[str, Any]] = {
    "connect_four": {
        "iterations": 8_400,
        "decay_updates": 268_800,
        "l2": 1e-5,
        "checkpoint_every": 200,
        "keep_checkpoints": 40,
    }
}
PROBE_PLIES = 2  # of the truncated games whose iterations are timed

COLORS = ("#2a6fbb", "#c8553d", "#e0a458", "#5b8c5a", "#7a5195", "#4c4c4c")
GRAY = "#9aa0a6"


def run_study(main: Callable[..., None]) -> None:
    """Runs a study. The arguments of `main` are its options, and its errors end in one line, as those of azjax.

    That its `output` and `plot` can be written is checked first.
    """

    @functools.wraps(main)
    def chosen(*arguments: Any, **options: Any) -> functools.partial[None]:
        return functools.partial(main, *arguments, **options)

    silence_threads()
    with errors_in_one_line():
        name = Path(sys.argv[0]).name
        description = main.__globals__["__doc__"]
        study = parse_with_tyro(chosen, sys.argv[1:], f"python experiments/{name}", description=description)
        check_outputs(**inspect.signature(main).bind(*study.args, **study.keywords).arguments)
        study()


def run_other(script: str, *arguments: str | Path) -> None:
    """Runs another study in a process of its own. If it fails, this one ends with its exit code."""
    done = subprocess.run([sys.executable, str(ROOT / "experiments" / script), *map(str, arguments)])
    if done.returncode:
        sys.exit(done.returncode)


def check_outputs(output: Path | None = None, plot: Path | None = None, **others: Any) -> None:
    """Checks, before anything is measured, that the results and their picture can be written.

    Raises:
      InputError: they cannot.
      FileError: a folder cannot be made.
    """
    del others
    check_output(output)
    check_output(plot)
    if plot is not None:
        check_picture(plot)


class Run(NamedTuple):
    """A finished run.

    Attributes:
      folder: the run folder.
      config: the configuration of the run.
      steps: iterations of the kept checkpoints, ascending.
    """

    folder: Path
    config: Config
    steps: list[int]

    def seconds(self, step: int) -> float:
        """Seconds of training and of evaluation up to iteration `step`."""
        rows = read_rows(self.folder / TIMING)[:step]
        return round(sum(row["seconds"] + row["evaluation_seconds"] for row in rows), 1)


def trained(
    game: Game,
    folder: Path,
    console: Console,
    *,
    seed: int = 0,
    iterations: int | None = None,
    config: Config | None = None,
) -> Run:
    """Trains with `config`, by default the game's preset. Resumes an unfinished run and reuses a finished one.

    A signal that stops the training also ends the study, with the exit code of that signal.
    """
    config = (azjax.preset(game) if config is None else config).replace(seed=seed)
    if iterations is not None:
        config = config.replace(iterations=iterations)
    result = azjax.train(game, config, folder, resume=True, console=console)
    if result.stopped_by is not None:
        sys.exit(128 + result.stopped_by)
    return Run(folder, config, Checkpoints(folder / CHECKPOINTS).steps())


def config_of(name: str, game: Game) -> Config:
    """The configuration that trains the packaged agent `name`."""
    return azjax.preset(game).replace(**LONGER_TRAINING.get(name, {}))


def digest(content: bytes) -> str:
    """The first 16 digits of the SHA-256."""
    return hashlib.sha256(content).hexdigest()[:16]


def config_digest(config: Config) -> str:
    """Of all fields of a configuration."""
    return digest(repr(config).encode())


def agent_digest(name: str) -> str:
    """Of the file of the packaged agent `name`, whose name stays when another agent takes its place."""
    return digest((archive.FOLDER / f"{name}.npz").read_bytes())


def refuse_another_agent(path: Path, rows: Sequence[dict[str, Any]], name: str) -> None:
    """Raises an `InputError` if `rows`, which `path` has, are of an agent that was packaged before under this name."""
    now = agent_digest(name)
    for row in rows:
        if row["agent"] == name and row.get("agent_digest") != now:
            got = row.get("agent_digest", "none")
            raise InputError(f"{path} has {name} with agent_digest {got}, not {now}: name another --output")


def refuse_unknown(kind: str, names: Sequence[str], available: Collection[str]) -> None:
    """Raises an `InputError` that names those of `names` that are not in `available`, and `kind`, what they are."""
    if unknown := sorted(set(names) - {*available}):
        raise InputError(f"unknown {kind} {', '.join(unknown)}; available: {', '.join(available)}")


def seconds_per_iteration(game: AnyGame, configs: Sequence[Config], rounds: int = 3) -> list[float]:
    """Of an iteration that plays and learns, with each configuration: the median of `rounds`.

    The configurations take turns, so that their ratios hold beside other work too. Games are truncated, so that they
    end at once.
    """
    runs = [_prepared(game, config.replace(truncate_at_ply=PROBE_PLIES)) for config in configs]
    seconds: list[list[float]] = [[] for _ in runs]
    for _ in range(rounds + 1):  # the first one compiles
        for iterate, own in zip(runs, seconds, strict=True):
            began = time.perf_counter()
            iterate()
            own.append(time.perf_counter() - began)
    return [float(np.median(own[1:])) for own in seconds]


def _prepared(game: AnyGame, config: Config) -> Callable[[], None]:
    """A function that does the next iteration of a run and waits for its end."""
    hyper = jax.tree.map(jnp.float32, config.hyper)
    state = jax.jit(lambda hyper: init(game, config, 0, hyper))(hyper)
    step = jax.jit(make_iteration(game, config), donate_argnums=0)

    def iterate() -> None:
        nonlocal state
        state, _ = jax.block_until_ready(step(state, hyper))

    return iterate


def write_results(path: Path, study: str, settings: dict[str, Any], **parts: Any) -> None:
    """Writes the result file of a study: its command, its settings, this machine, and `parts`."""
    report = {"command": f"python experiments/{study}", "settings": settings, "machine": machine(), **parts}
    write_report(report, path)


def results_so_far(path: Path, settings: dict[str, Any], **begin: Any) -> dict[str, Any]:
    """The parts of a result file, to which a study adds what is missing; those of `begin` where there is no file.

    Raises:
      InputError: the file has results with other settings.
    """
    if not path.exists():
        return begin
    report = json.loads(path.read_text())
    before, now = report["settings"], json.loads(json.dumps(settings))
    if before != now:
        had = {name: value for name, value in before.items() if now.get(name, ...) != value}
        has = {name: value for name, value in now.items() if before.get(name, ...) != value}
        raise InputError(f"{path} has results with {had}, not with {has}: name another --output")
    return {part: report[part] for part in begin}


def draw_unfinished(solution: Solution, count: int, generator: np.random.Generator) -> np.ndarray:
    """Rows, int [count], of unfinished positions, drawn evenly without repetition, ascending; or all of them."""
    every = np.concatenate([solution.unfinished(ply) for ply in range(solution.num_plies)])
    return np.sort(generator.choice(every, min(count, len(every)), replace=False))


def action_mask(game: AnyGame, actions: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """bool [P, A]: the actions of the chosen slots, bool [P, K], of tables of legal actions, int [P, K]."""
    mask = np.zeros((len(actions), game.num_actions), bool)
    position, slot = np.nonzero(chosen)
    mask[position, actions[position, slot]] = True
    return mask


def board_title(name: str) -> str:
    """The title of a panel, of names such as `connect_four_5x4`."""
    return name.replace("hex", "Hex").replace("connect_four", "Connect Four").replace("_", " ")


def wide_figure(columns: int, width: float = 11, height: float = 3.6, **options: Any) -> tuple[Figure, list[Axes]]:
    """A figure with `columns` panels side by side. It avoids pyplot, which would choose a window system."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, list(np.atleast_1d(figure.subplots(1, columns, **options)))


def style(panel: Axes, title: str, x: str, *, shares: bool = False, legend: bool = True) -> None:
    """Sets title, x label, grid and legend. Call it after drawing. `shares` formats the y axis in percent."""
    panel.set_title(title, fontsize=10)
    panel.set_xlabel(x)
    if shares:
        panel.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    panel.spines[["top", "right"]].set_visible(False)
    panel.grid(axis="y", color="#e6e6e6", linewidth=0.8)
    panel.set_axisbelow(True)
    if legend:
        panel.legend(frameon=False, fontsize=8)


def save_figure(figure: Figure, path: Path) -> None:
    """Saves the figure; the suffix of `path` selects the format."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
