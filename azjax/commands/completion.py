"""`azjax completion bash|zsh|fish` prints a script that completes commands, names and options.

The script is static: it knows what there was when it was printed, and pressing TAB starts no Python.
"""

import dataclasses
import typing
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from azjax.benchmark.doctor import Doctor
from azjax.benchmark.games import GamesBenchmark
from azjax.benchmark.population import PopulationBenchmark
from azjax.benchmark.search import SearchBenchmark
from azjax.commands.agents import FetchOptions
from azjax.commands.arguments import first_word
from azjax.commands.check import CheckOptions
from azjax.commands.evaluate import EvaluateOptions
from azjax.commands.export import ExportOptions
from azjax.commands.gtp import GtpOptions
from azjax.commands.match import MatchOptions
from azjax.commands.play import PlayOptions
from azjax.commands.report import LossesOptions, ReportOptions
from azjax.commands.solve import SolveOptions
from azjax.commands.sweep import ShowOptions, SweepOptions
from azjax.commands.train import TrainOptions
from azjax.core.errors import InputError
from azjax.games.registry import available, typed_options
from azjax.packaged import packaged

_OF_ALL = ["--import", "--no-compilation-cache"]
# The options of each command, by what follows it.
_WITH_GAME: dict[str, Any] = {"train": TrainOptions, "solve": SolveOptions, "check": CheckOptions}
_WITH_PLAYERS: dict[str, Any] = {
    "evaluate": EvaluateOptions,
    "match": MatchOptions,
    "play": PlayOptions,
    "gtp": GtpOptions,
}
_WITH_FILE: dict[str, Any] = {
    "export": ExportOptions,
    "report *.jsonl": LossesOptions,
    "report": ReportOptions,
    "sweep show": ShowOptions,
    "sweep": SweepOptions,
}
_ALONE: dict[str, Any] = {
    "benchmark games": GamesBenchmark,
    "benchmark population": PopulationBenchmark,
    "benchmark search": SearchBenchmark,
    "agents fetch": FetchOptions,
    "doctor": Doctor,
}


class Case(NamedTuple):
    """What may be typed next.

    Attributes:
      line: what was typed after `azjax`, each word with a blank behind it; `*` stands for any text.
      words: the words that fit; where none begins as the typed one does, files are offered.
      files: whether files are offered beside the words.
    """

    line: str
    words: list[str]
    files: bool = False


@dataclasses.dataclass(frozen=True)
class CompletionOptions:
    """Prints a script that completes commands, names and options; docs/getting_started.md says how to load it."""


def completion_command(arguments: list[str]) -> None:
    """Prints the script of a shell."""
    shell, arguments = first_word("completion", "bash|zsh|fish", CompletionOptions(), arguments)
    if shell not in _SCRIPTS:
        raise InputError(f"unknown shell {shell!r}; available: {', '.join(_SCRIPTS)}")
    if arguments:
        raise InputError(f"azjax completion takes one shell, got also {' '.join(arguments)}")
    print(_SCRIPTS[shell]())


def cases() -> list[Case]:
    """All cases. The first whose line fits is the one that counts."""
    return [*_cases()]


def _cases() -> Iterator[Case]:
    games, agents = available(), packaged()
    commands = [*_WITH_GAME, *_WITH_PLAYERS, "report", "sweep", "export", "agents", "benchmark", "doctor", "completion"]
    yield Case("", [*commands, "--help"])
    for command, options in _WITH_GAME.items():
        yield Case(f"{command} ", games)
        for game in games:
            yield Case(f"{command} {game} *", _flags(options) + _flags_of_game(game) + _OF_ALL)
        yield Case(f"{command} *", _flags(options) + _OF_ALL)
    for command, options in _WITH_PLAYERS.items():
        yield Case(f"{command} ", agents, files=True)
        yield Case(f"{command} * --game ", games)
        for game in games:
            yield Case(f"{command} * --game {game} *", _flags(options) + _flags_of_game(game) + _OF_ALL)
        names = agents if command == "match" else []
        yield Case(f"{command} *", [*names, "--game", *_flags(options), *_OF_ALL], files=command == "match")
    yield Case("sweep ", ["show"], files=True)
    yield Case("sweep show ", [], files=True)
    yield Case("report ", [], files=True)
    yield Case("export ", agents, files=True)
    yield Case("agents ", ["fetch"])
    yield Case("agents fetch ", [], files=True)
    yield Case("benchmark ", [name.split()[1] for name in _ALONE if name.startswith("benchmark ")])
    yield Case("completion ", list(_SCRIPTS))
    for command, options in (_WITH_FILE | _ALONE).items():
        yield Case(f"{command} *", _flags(options) + _OF_ALL)


def _flags(options: Any) -> list[str]:
    """The flags of a dataclass of options, in which those of others may be nested."""
    flags: list[str] = []
    kinds = typing.get_type_hints(options)
    for field in dataclasses.fields(options):
        kind = kinds[field.name]
        flags += _flags(kind) if dataclasses.is_dataclass(kind) else _flag(field.name, kind)
    return flags


def _flags_of_game(name: str) -> list[str]:
    return [flag for parameter in typed_options(name) for flag in _flag(parameter.name, parameter.annotation)]


def _flag(name: str, kind: Any) -> list[str]:
    name = name.replace("_", "-")
    return [f"--{name}", f"--no-{name}"] if kind is bool else [f"--{name}"]


def _bash() -> str:
    return _BASH % _switch("    {line}) words='{words}' files={files} ;;", _escaped)


def _zsh() -> str:
    return _ZSH % _switch("    {line}) candidates=({words}) files={files} ;;", _escaped)


def _fish() -> str:
    return _FISH % _switch("        case {line}\n            set words {words}\n            set files {files}", repr)


def _switch(form: str, pattern: Callable[[str], str]) -> str:
    """The cases in the syntax of a shell. No word needs quotes: all are letters, digits, dashes and underscores."""
    return "\n".join(
        form.format(line=pattern(case.line), words=" ".join(case.words), files=str(case.files).lower())
        for case in cases()
    )


def _escaped(line: str) -> str:
    return line.replace(" ", r"\ ") or "''"


_BASH = r"""# To load it: source this file.
_azjax() {
  local line='' words='' files=false current="${COMP_WORDS[COMP_CWORD]}" IFS=$' \n'
  ((COMP_CWORD > 1)) && printf -v line '%%s ' "${COMP_WORDS[@]:1:COMP_CWORD-1}"
  case "$line" in
%s
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  if $files || ((${#COMPREPLY[@]} == 0)); then
    compopt -o filenames 2>/dev/null
    IFS=$'\n'
    COMPREPLY+=($(compgen -f -- "$current"))
  fi
}
complete -F _azjax azjax"""

_ZSH = r"""# To load it: source this file, after compinit.
_azjax() {
  local line='' files=false
  local -a words_before=("${(@)words[2,CURRENT-1]}") candidates
  ((CURRENT > 2)) && printf -v line '%%s ' "${words_before[@]}"
  case "$line" in
%s
  esac
  compadd -a candidates && ! $files || _files
}
compdef _azjax azjax"""

_FISH = r"""# To load it: source this file.
function __azjax_complete
    set -l words
    set -l files false
    set -l current (commandline -ct)
    switch (string join '' -- (commandline -opc)[2..-1]' ')
%s
    end
    test -n "$words"
    and string match -- $current'*' $words
    or set files true
    test $files = true
    and __fish_complete_path $current
end
complete -c azjax -f -a '(__azjax_complete)'"""

_SCRIPTS: dict[str, Callable[[], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
