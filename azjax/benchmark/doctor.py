"""`azjax doctor`: versions, devices, speed and memory of this machine, beside those of `reference.json`, which the same
command wrote on another machine.
"""

import dataclasses
import importlib.util
import json
import shutil
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from rich import box
from rich.console import Console
from rich.table import Table

from azjax.benchmark.report import BUSY, Report, check_output, machine_with_load, write_report
from azjax.benchmark.searches import azjax_search, openings
from azjax.games.game import AnyGame
from azjax.games.registry import make
from azjax.networks import make_network
from azjax.runs.memory import MemoryNeed, memory_need, memory_of, show_bytes
from azjax.runs.throughput import median_seconds
from azjax.search import evaluators
from azjax.training import init, preset
from azjax.training.presets import games_with_presets

_PACKAGES = ("azjax", "jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "numpy")
# By name: its packages, and what it is for.
_EXTRAS = {
    "play": (("uvicorn", "starlette"), "the page of azjax play --web"),
    "plot": (("matplotlib", "jinja2"), "learning curves and reports"),
    "sweep": (("optuna", "submitit"), "azjax sweep"),
    "export": (("safetensors", "onnx", "flatbuffers"), "azjax export"),
    "log": (("tensorboardX",), "TensorBoard"),
    "wandb": (("wandb",), "Weights & Biases"),
    "mlflow": (("mlflow",), "MLflow"),
    "interop": (("pgx", "mctx", "pyspiel", "bitbully"), "games of pgx, and rivals and judges of the benchmarks"),
}
_SIDE = 2048  # of the matrices
_PRECISIONS = ("float32", "bfloat16")
_CALLS = 7
# Games, positions at once, and simulations of each.
_SEARCHES = (("tictactoe", 1024, 100), ("brandub", 128, 100))
# The network of the reference, whatever the presets are: machines are compared.
_WIDTH, _DEPTH, _OBSERVATIONS = 768, 4, 512
_SLOW = 0.5  # of the reference
_TIGHT = 0.8  # of the free memory


@dataclasses.dataclass(frozen=True)
class Doctor:
    """Shows versions, devices, memory, speed, the memory of each preset, and advice. Takes about a minute.

    Attributes:
      output: also write the report to this file, as JSON.
    """

    output: Path | None = None

    def run(self, console: Console) -> Report:
        """Measures, prints, writes `output`, and returns what was written."""
        check_output(self.output)
        report: Report = {"command": "azjax doctor"}
        with console.status("measuring this machine") as status:
            report["machine"] = machine_with_load(_PACKAGES)
            report["extras"] = {
                extra: all(map(importlib.util.find_spec, packages)) for extra, (packages, _) in _EXTRAS.items()
            }
            free = memory_of(jax.devices()[0]).free
            report["free_memory"] = free
            needs = {}
            for label, game in games_with_presets().items():
                status.update(f"adding up what the preset of {label} needs")
                needs[label] = preset_need(game)
            report["presets"] = {label: dataclasses.asdict(need) for label, need in needs.items()}
            report["rates"] = measure_rates(status.update)
        reference = read_reference()
        console.print(_machine_table(report))
        console.print(_rate_table(report["rates"], reference))
        console.print(_preset_table(needs, free))
        for line in advise(report, reference):
            console.print(f"- {line}", soft_wrap=True)
        if self.output is not None:
            write_report(report, self.output, console)
        return report


def preset_need(game: AnyGame) -> MemoryNeed:
    """The memory that a game's preset needs, from the shapes of its arrays."""
    config = preset(game)
    return memory_need(game, config, jax.eval_shape(lambda: init(game, config, 0, config.hyper)))


def measure_rates(progress: Callable[[str], Any] = lambda _: None) -> dict[str, float]:
    """Work per second, by name: medians of several calls, without compiling.

    Args:
      progress: called with the name of each measurement.
    """
    rates = {}
    for precision in _PRECISIONS:
        name = f"matrix product, {precision}, GFLOP/s"
        progress(name)
        matrix = jax.random.normal(jax.random.key(0), (_SIDE, _SIDE)).astype(precision)
        multiply = jax.jit(jnp.matmul)
        rates[name] = 2 * _SIDE**3 / 1e9 / median_seconds(lambda: multiply(matrix, matrix), _CALLS)
    for label, batch, num_simulations in _SEARCHES:
        name = f"search of {label}, {batch:,} at once, simulations/s"
        progress(name)
        game = make(label)
        search = azjax_search(game, evaluators.uniform(game), openings(game, batch), num_simulations)
        rates[name] = search.simulations / median_seconds(lambda: search.run(0), _CALLS)
    for precision in _PRECISIONS:
        name = f"network of connect_four, {precision}, evaluations/s"
        progress(name)
        game = make("connect_four")
        network = make_network("mlp", game, width=_WIDTH, depth=_DEPTH, precision=precision)
        variables = network.init(jax.random.key(0), game)
        observations = jnp.zeros((_OBSERVATIONS, *game.observation_shape))
        evaluate = jax.jit(lambda variables, observations: network.apply(variables, observations, train=False)[0])
        rates[name] = _OBSERVATIONS / median_seconds(lambda: evaluate(variables, observations), _CALLS)
    return {name: round(rate, 1) for name, rate in rates.items()}


def read_reference() -> Report:
    """The report of the reference machine."""
    report: Report = json.loads(resources.files("azjax.benchmark").joinpath("reference.json").read_text())
    return report


def advise(report: Report, reference: Report) -> list[str]:
    """Advice, one sentence each; a single sentence that all is well where there is none.

    Args:
      report: the result of `Doctor.run`.
      reference: the same of another machine.
    """
    advice, rates = [], report["rates"]
    on_cpu = report["machine"]["device"].startswith("cpu")
    if on_cpu and shutil.which("nvidia-smi"):
        advice.append("There is an NVIDIA GPU, and JAX does not use it: pip install 'azjax[cuda]'.")
    if (load := report["machine"]["load_average"]) > BUSY:
        advice.append(f"The machine is not idle (load average {load:g}): rates are lower than they could be.")
    slow = [name for name, rate in rates.items() if rate < _SLOW * reference["rates"].get(name, 0.0)]
    if slow:
        advice.append(f"Less than half as fast as the reference machine: {'; '.join(slow)}.")
    games = games_with_presets()
    for label, parts in report["presets"].items():
        need = MemoryNeed(**parts)
        if need.total > _TIGHT * report["free_memory"]:
            fit = "does not fit" if need.total > report["free_memory"] else "fits barely"
            advice.append(f"The preset of {label} {fit}: {need.explain(preset(games[label]))}.")
    missing = [extra for extra, installed in report["extras"].items() if not installed]
    if missing:
        advice.append(
            f"Not installed: pip install 'azjax[{','.join(missing)}]' adds "
            f"{', '.join(_EXTRAS[extra][1] for extra in missing)}."
        )
    return advice or [
        "Nothing to set: this machine is at least half as fast as the reference machine, and all presets fit."
    ]


def _machine_table(report: Report) -> Table:
    table = Table(title="this machine", title_justify="left", show_header=False, box=box.SIMPLE_HEAD, padding=(0, 1))
    on = report["machine"]
    rows = {
        "device": on["device"],
        "CPU": f"{on['cpu']}, {on['cores']} cores",
        "memory free": show_bytes(report["free_memory"]),
        "load average": f"{on['load_average']:g}",
        "Python": on["python"],
        "packages": ", ".join(f"{name} {version}" for name, version in on["versions"].items()),
        "extras": ", ".join(extra for extra, installed in report["extras"].items() if installed) or "none",
    }
    for name, value in rows.items():
        table.add_row(name, value)
    return table


def _rate_table(rates: dict[str, float], reference: Report) -> Table:
    on = reference["machine"]
    table = Table(title="speed", title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1))
    table.caption = f"reference: {on['cpu']}, {on['cores']} cores, {on['device']}, jax {on['versions']['jax']}"
    for column in ("", "here", "reference", "ratio"):
        table.add_column(column, justify="right" if column else "left")
    for name, rate in rates.items():
        other = reference["rates"].get(name)
        there, ratio = ("", "") if other is None else (f"{other:,.0f}", f"{rate / other:.2f}")
        table.add_row(name, f"{rate:,.0f}", there, ratio)
    return table


def _preset_table(needs: dict[str, MemoryNeed], free: int) -> Table:
    table = Table(title="memory of the presets", title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1))
    table.caption = "without the temporary arrays of XLA, which are known once an iteration has compiled"
    for column in ("game", "replay", "weights, optimizer, games", "search trees", "of the free memory"):
        table.add_column(column, justify="left" if column == "game" else "right")
    for label, need in needs.items():
        sizes = map(show_bytes, (need.replay, need.learner, need.trees))
        table.add_row(label, *sizes, f"{need.total / free:.1%}")
    return table
