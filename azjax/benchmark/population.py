"""`azjax benchmark population`: iterations per second of agents trained at once, beside one after the other."""

import dataclasses
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

from azjax.benchmark.report import Report, check_output, machine_with_load, print_load, write_report
from azjax.core.errors import InputError
from azjax.games.registry import make
from azjax.parallel.sharding import WHOLE, devices_for_members, shard
from azjax.runs.compiled_run import CompiledRun, compile_run
from azjax.runs.population import compile_population
from azjax.search.budget import check_seconds
from azjax.training import preset

_WARM_UP = 20  # iterations, so that games end and there is much to learn from


@dataclasses.dataclass(frozen=True)
class PopulationBenchmark:
    """Measures iterations per second of a population beside those of a lone run.

    The iterations of all agents add up. Compiling, evaluation and checkpoints are not timed.

    Attributes:
      games: names of games, trained with their presets.
      members: of the population.
      repeats: timed turns of each side; the median of their ratios is reported.
      seconds: approximate length of a turn.
      output: also write the results to this file, as JSON.
    """

    games: tuple[str, ...] = ("connect2", "tictactoe")
    members: int = 32
    repeats: int = 5
    seconds: float = 3.0
    output: Path | None = None

    def __post_init__(self) -> None:
        for field in ("members", "repeats"):
            if getattr(self, field) < 1:
                raise InputError(f"{field} must be at least 1, got {getattr(self, field)}")
        check_seconds(self.seconds)
        if not self.games:
            raise InputError("games must name one or more, got none")
        for name in self.games:
            make(name)

    def run(self, console: Console) -> Report:
        """Measures, prints a table, writes `output`, and returns what was written."""
        check_output(self.output)
        devices = devices_for_members(self.members)
        on, rows = machine_with_load(("azjax", "jax", "jaxlib")), []
        for name in self.games:
            with console.status(f"{name}: compiling and timing"):
                rows.append({"game": name, **self._measure(name, devices)})
        report = {
            "command": "azjax benchmark population",
            "settings": {"members": self.members, "repeats": self.repeats, "seconds": self.seconds, "devices": devices},
            "machine": on,
            "rows": rows,
        }
        table = Table("game", title=f"iterations per second, {self.members} members, {devices} devices")
        for heading in ("one run", "population, all members", "ratio"):
            table.add_column(heading, justify="right")
        for row in rows:
            rates = row["iterations_per_second"]
            table.add_row(row["game"], f"{rates['one run']:,.1f}", f"{rates['population']:,.1f}", f"{row['ratio']:.2f}")
        console.print(table)
        print_load(report, console)
        if self.output is not None:
            write_report(report, self.output, console)
        return report

    def _measure(self, name: str, devices: int) -> Report:
        game = make(name)
        config, count = preset(game), self.members
        seeds = np.arange(count, dtype=np.uint32)
        hypers = jax.tree.map(lambda scalar: np.full(count, scalar, np.float32), config.hyper)
        first = jax.tree.map(lambda scalars: scalars[0], hypers)
        lone, together = (
            compile_run(game, config.static, 1),
            compile_population(game, config.static, count, devices),
        )
        sides = {
            "one run": (1, _iterations(lone, seeds[0], first)),
            "population": (count, _iterations(together, seeds, hypers)),
        }
        times: dict[str, int] = {}
        rates: dict[str, list[float]] = {side: [] for side in sides}
        for side, (_, iterate) in sides.items():
            iterate(_WARM_UP)
            began = time.perf_counter()
            iterate(2)
            times[side] = max(1, round(2 * self.seconds / (time.perf_counter() - began)))
        for _ in range(self.repeats):
            for side, (members, iterate) in sides.items():
                began = time.perf_counter()
                iterate(times[side])
                rates[side].append(members * times[side] / (time.perf_counter() - began))
        ratios = [many / one for one, many in zip(rates["one run"], rates["population"], strict=True)]
        return {
            "iterations_per_second": {side: statistics.median(rate) for side, rate in rates.items()},
            "ratio": statistics.median(ratios),
            "ratio_range": [min(ratios), max(ratios)],
        }


def _iterations(compiled_run: CompiledRun, seeds: Any, hypers: Any) -> Callable[[int], None]:
    """A function that does `count` iterations and fetches the metrics of each, as a run does."""
    seeds, hypers = (shard(compiled_run.mesh, WHOLE, each) for each in (seeds, hypers))
    state = compiled_run.begin(seeds, hypers)

    def iterate(count: int) -> None:
        nonlocal state
        for _ in range(count):
            state, metrics = compiled_run.compiled(state, hypers)
            jax.device_get(metrics)

    return iterate
