"""The command line: `azjax COMMAND ...`. Each command is a file of `azjax.commands`."""

import sys
from collections.abc import Callable, Sequence
from typing import Any

from azjax.benchmark.doctor import Doctor
from azjax.benchmark.games import GamesBenchmark
from azjax.benchmark.population import PopulationBenchmark
from azjax.benchmark.search import SearchBenchmark
from azjax.commands.arguments import first_word, parse
from azjax.commands.console import console
from azjax.commands.evaluate import evaluate_command
from azjax.commands.match import match_command
from azjax.commands.play import gtp_command, play_command
from azjax.commands.report import report_command
from azjax.commands.solve import solve_command
from azjax.commands.sweep import sweep_command
from azjax.commands.train import train_command
from azjax.core.errors import InputError
from azjax.errors import errors_in_one_line, silence_threads
from azjax.games.registry import available
from azjax.packaged import packaged

_USAGE = """\
usage: azjax COMMAND ...

  azjax train GAME             train an agent by self-play, then measure it
  azjax evaluate PLAYER        measure a player: exactly if the game can be solved, and in matches
  azjax match A B ...          play matches between players, and rate three or more
  azjax solve GAME             find every position of a game and its value
  azjax play PLAYER            play against an agent in the terminal, or with --web on a page
  azjax gtp PLAYER             run an agent as an engine of the Go Text Protocol or of OpenTafl's
  azjax report RUN             write a page about a run: curves, strength, games, a search tree
  azjax sweep STUDY.toml       search for the best settings, with any number of workers
  azjax sweep show STUDY.toml  show the best trials of a sweep, and write a page
  azjax benchmark search       simulations per second, compared with mctx, OpenSpiel and plain Python
  azjax benchmark games        steps per second of random play, compared with pgx, OpenSpiel and plain Python
  azjax benchmark population   iterations per second of agents trained at once, compared with one after the other
  azjax doctor                 what runs on this machine, how fast, what fits in memory, and what to set

Exit codes: 0 done, 1 error, 2 bad input, 130 or 143 stopped by Ctrl-C or SIGTERM. A training run that is stopped saves
first.

`azjax COMMAND WORD --help` lists the options. GAME is one of {games}.
PLAYER is a run folder, a packaged agent ({agents}),
optimal:FILE with a file that `azjax solve` wrote, or with --game GAME one of random, optimal, or a search without a
network such as uct:1000 or uniform:64. In matches it may be a program (gtp:COMMAND, opentafl:COMMAND or
line:COMMAND) or a bot of OpenSpiel (openspiel:mcts:1000 or openspiel:minimax:6).
"""

_BENCHMARKS: dict[str, Any] = {"games": GamesBenchmark, "population": PopulationBenchmark, "search": SearchBenchmark}


def benchmark_command(arguments: list[str]) -> None:
    """Runs a benchmark."""
    name, arguments = first_word("benchmark", " or ".join(_BENCHMARKS), arguments)
    if name not in _BENCHMARKS:
        raise InputError(f"unknown benchmark {name!r}; available: {', '.join(_BENCHMARKS)}")
    parse(f"benchmark {name}", _BENCHMARKS[name](), arguments).run(console)


def doctor_command(arguments: list[str]) -> None:
    """Checks this machine."""
    parse("doctor", Doctor(), arguments).run(console)


_COMMANDS: dict[str, Callable[[list[str]], None]] = {
    "train": train_command,
    "evaluate": evaluate_command,
    "match": match_command,
    "solve": solve_command,
    "play": play_command,
    "gtp": gtp_command,
    "report": report_command,
    "sweep": sweep_command,
    "benchmark": benchmark_command,
    "doctor": doctor_command,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs one command; `azjax.errors` says how it ends after an error."""
    command, *rest = [*(sys.argv[1:] if arguments is None else arguments)] or ["--help"]
    if command in ("-h", "--help") or (command in _COMMANDS and rest[:1] in (["-h"], ["--help"])):
        usage = _USAGE.format(games=", ".join(available()), agents=", ".join(packaged()))
        console.print(usage, end="", soft_wrap=True)
        return
    if arguments is None:
        silence_threads()
    with errors_in_one_line():
        if command not in _COMMANDS:
            raise InputError(f"unknown command {command!r}; available: {', '.join(_COMMANDS)}")
        _COMMANDS[command](rest)
