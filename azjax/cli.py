"""The command line: `azjax COMMAND ...`. Each command is a file of `azjax.commands`.

This file imports no JAX, so that help and a misspelt command answer at once.
"""

import gc
import importlib
import io
import os
import sys
from collections.abc import Iterable, Sequence

from azjax.core.allocator import keep_freed_memory
from azjax.core.cuda_graphs import record_loops
from azjax.core.errors import InputError
from azjax.core.proposals import did_you_mean
from azjax.core.source import import_code
from azjax.core.text import whole_number
from azjax.core.version import __version__
from azjax.errors import errors_in_one_line, silence_threads

_USAGE = """\
usage: azjax COMMAND ...

  azjax train GAME             train an agent by self-play, then measure it
  azjax evaluate PLAYER        measure a player: exactly if the game can be solved, and in matches
  azjax match A B ...          play matches between players, and rate three or more
  azjax solve GAME             find every position of a game and its value
  azjax play PLAYER            play against an agent in the terminal, or with --web on a page
  azjax gtp PLAYER             run an agent as an engine (Go Text Protocol, OpenTafl's protocol, analysis in JSON)
  azjax report RUN             write a page about a run: curves, strength, games, a search tree
  azjax report GAMES.jsonl     write a page about the games of a match that a player lost
  azjax sweep STUDY.toml       search for the best settings, with any number of workers
  azjax sweep show STUDY.toml  show the best trials of a sweep, and write a page
  azjax export PLAYER          write a trained network as safetensors, ONNX or StableHLO, for other programs
  azjax agents                 list the trained agents at hand, or fetch one: azjax agents fetch SOURCE
  azjax benchmark search       simulations per second, compared with mctx, OpenSpiel and plain Python
  azjax benchmark games        steps per second of random play, compared with pgx, OpenSpiel and plain Python
  azjax benchmark population   iterations per second of agents trained at once, compared with one after the other
  azjax check GAME             test every law of a game, and say what the page will lack
  azjax completion SHELL       print a script by which bash, zsh or fish complete azjax
  azjax doctor                 what runs on this machine, how fast, what fits in memory, and what to set

`azjax COMMAND --help` lists the options of a command, `azjax --version` tells the version. Every command takes
  --import FILE_OR_MODULE      import your own games, networks and rules of selection first; may be repeated
  --no-compilation-cache       compile everything again (see docs/getting_started.md)

GAME is a game such as tictactoe, connect_four, brandub or santorini, or one of pgx, such as pgx:hex; `azjax train`
alone lists all. PLAYER is a run folder, a packaged agent (`azjax agents` lists them), optimal:FILE with a file
that `azjax solve` wrote, or with --game GAME one of random, optimal, or a search without a network such as uct:1000 or
uniform:64. RUN@best or RUN@100 is a certain checkpoint, AGENT:400 searches with 400 simulations, and AGENT:medium,
AGENT:easy and AGENT:beginner play without a search. In matches AGENT:0.5s searches for half a second a move, and a
player may be a program (gtp:COMMAND, opentafl:COMMAND, santorini:COMMAND or line:COMMAND) or a bot of OpenSpiel
(openspiel:mcts:1000 or openspiel:minimax:6).

Exit codes: 0 done, 1 error, 2 bad input; 130, 143 or 129 stopped by Ctrl-C, SIGTERM or SIGHUP (a closed terminal);
141: the program that reads the output has ended. A training run that is stopped saves first.
"""

_COMMANDS = {
    "train": "azjax.commands.train",
    "evaluate": "azjax.commands.evaluate",
    "match": "azjax.commands.match",
    "solve": "azjax.commands.solve",
    "play": "azjax.commands.play",
    "gtp": "azjax.commands.gtp",
    "report": "azjax.commands.report",
    "sweep": "azjax.commands.sweep",
    "export": "azjax.commands.export",
    "agents": "azjax.commands.agents",
    "benchmark": "azjax.commands.benchmark",
    "check": "azjax.commands.check",
    "completion": "azjax.commands.completion",
    "doctor": "azjax.commands.doctor",
}
"""The modules of the commands; command `name` is the function `name_command` there."""

_IMPORT, _NO_CACHE = "--import", "--no-compilation-cache"
_LEAST_COLUMNS = 20


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs one command; `azjax.errors` says how it ends after an error."""
    is_process = arguments is None
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # it was closed
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115
    with errors_in_one_line():
        command, *rest = [*(sys.argv[1:] if arguments is None else arguments)] or ["--help"]
        if command in ("-h", "--help", "help"):
            print(_USAGE, end="")
            return
        if command == "--version":
            print(f"azjax {__version__}")
            return
        if command not in _COMMANDS:
            raise InputError(
                f"unknown command {command!r}{did_you_mean(command, _COMMANDS)}; available: {', '.join(_COMMANDS)}"
            )
        imports, words = _imports(word for word in rest if word != _NO_CACHE)
        if is_process:
            # A terminal may not have a character, such as one of a spinner.
            if isinstance(sys.stdout, io.TextIOWrapper):
                sys.stdout.reconfigure(errors="replace")
            columns = whole_number(os.environ.get("COLUMNS", ""))
            if columns is not None and columns < _LEAST_COLUMNS:  # Rich and tyro can lay out nothing there
                os.environ["COLUMNS"] = str(_LEAST_COLUMNS)
            silence_threads()
            record_loops()
            gc.disable()  # while modules are imported nothing can be freed
            if command == "benchmark" and words[:1] in (["games"], ["search"]):  # training may lose by it
                keep_freed_memory()
            if _NO_CACHE in rest:
                os.environ["AZJAX_COMPILATION_CACHE"] = "off"  # for the workers of a sweep too
            else:
                importlib.import_module("azjax.core.compilation_cache").use_compilation_cache()
        for name in imports:
            import_code(name)
        run = getattr(importlib.import_module(_COMMANDS[command]), f"{command}_command")
        if is_process:
            gc.freeze()
            gc.enable()
        run(words)


def _imports(words: Iterable[str]) -> tuple[list[str], list[str]]:
    """The values of `--import`, and the other words."""
    imports, others, remaining = [], [], iter(words)
    for word in remaining:
        option, equals, value = word.partition("=")
        if option != _IMPORT:
            others.append(word)
            continue
        value = value if equals else next(remaining, "")
        if not value or value.startswith("-"):
            raise InputError("--import needs a file of Python or the name of a module")
        imports.append(value)
    return imports, others
