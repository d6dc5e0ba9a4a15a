"""`azjax benchmark search`, `games` and `population`."""

import dataclasses
from typing import Any

from azjax.benchmark.games import GamesBenchmark
from azjax.benchmark.population import PopulationBenchmark
from azjax.benchmark.search import SearchBenchmark
from azjax.commands.arguments import first_word, parse
from azjax.commands.console import console
from azjax.core.errors import InputError

_BENCHMARKS: dict[str, Any] = {"games": GamesBenchmark, "population": PopulationBenchmark, "search": SearchBenchmark}


@dataclasses.dataclass(frozen=True)
class BenchmarkOptions:
    """Measures speed; `azjax benchmark search --help` (or games, population) lists the options of each benchmark."""


def benchmark_command(arguments: list[str]) -> None:
    """Runs a benchmark."""
    name, arguments = first_word("benchmark", "|".join(_BENCHMARKS), BenchmarkOptions(), arguments)
    if name not in _BENCHMARKS:
        raise InputError(f"unknown benchmark {name!r}; available: {', '.join(_BENCHMARKS)}")
    parse(f"benchmark {name}", _BENCHMARKS[name](), arguments).run(console)
