"""What is typed after `azjax COMMAND`: options typed by tyro, players and games."""

import contextlib
import dataclasses
import inspect
import io
import itertools
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import tyro

from azjax.agents import NUM_SIMULATIONS, every_checkpoint, game_of, load_player
from azjax.core.errors import InputError
from azjax.evaluation import SequentialTest
from azjax.games.game import Game
from azjax.games.registry import factory, make
from azjax.runs import members_of
from azjax.training import Config

_PLAYERS = {1: "a PLAYER", None: "two PLAYERs or more"}


@dataclasses.dataclass(frozen=True)
class TrainOptions:
    """Trains an agent by self-play, then measures it.

    Attributes:
      folder: the run folder; runs/GAME by default.
      resume: go on with the run in the folder, to the same bit; begin it where there is none.
      accept_changes: go on although settings, rules of the game, platform or packages are not those of the run.
      tensorboard: log to FOLDER/tensorboard too (needs the extra `log`).
      games: of each match at the end, even.
      devices: how many of each process the games, their replay and the batch are split over, or the members of a
        population; `all` that it has. 1 by default; for a population as many as divide it, on CPU one for each core.
      coordinator: HOST:PORT where the processes of a run on several machines meet, process 0's; with `process` and
        `processes`.
      process: which of them this is, from 0 on.
      processes: how many there are.
      population: how many agents to train at once, which differ in their seeds, or in what varies.
      vary: values that differ between them, such as learning_rate=1e-3,3e-3 seed=0,1,2: every combination is trained.
      config: the settings of the run; the defaults are the game's preset.
    """

    folder: Path | None = None
    resume: bool = False
    accept_changes: bool = False
    tensorboard: bool = False
    games: int = 10_000
    devices: int | Literal["all"] | None = None
    coordinator: str | None = None
    process: int | None = None
    processes: int | None = None
    population: int | None = None
    vary: tuple[str, ...] = ()
    config: Config = dataclasses.field(default_factory=Config)

    def __post_init__(self) -> None:
        _check_games(self.games)
        if isinstance(self.devices, int) and self.devices < 1:
            raise InputError(f"devices must be at least 1, or all; got {self.devices}")
        _ = self.meeting
        if self.members is not None and self.meeting is not None:
            raise InputError("a population is trained by one process")

    @property
    def members(self) -> list[Config] | None:
        """The configurations of a population; None where one agent is trained."""
        if self.population is None and not self.vary:
            return None
        varying = list(map(_values, self.vary))
        if len(names := [name for name, _ in varying]) > len(set(names)):
            raise InputError(f"vary: each field once, got {', '.join(names)}")
        return members_of(self.config, dict(varying), self.population)

    @property
    def meeting(self) -> tuple[str, int, int] | None:
        """Coordinator, process and processes; None where this one is alone."""
        if self.coordinator is None and self.process is None and self.processes is None:
            return None
        if self.coordinator is None or self.process is None or self.processes is None:
            raise InputError("coordinator, process and processes go together")
        found = re.fullmatch(r"[^:\[\]]+:(\d{1,5})", self.coordinator)
        if found is None or not 0 < int(found[1]) < 2**16:
            raise InputError(f"coordinator must be HOST:PORT with a port of 1..65535, got {self.coordinator!r}")
        if self.processes < 1:
            raise InputError(f"processes must be at least 1, got {self.processes}")
        if not 0 <= self.process < self.processes:
            raise InputError(f"process must be 0..{self.processes - 1}, got {self.process}")
        return self.coordinator, self.process, self.processes


@dataclasses.dataclass(frozen=True)
class EvaluateOptions:
    """Measures a player: on all positions where the game can be solved, and in matches.

    Attributes:
      games: of each match, even.
      num_simulations: of a trained agent's search.
      solver: the search proves wins, losses and draws.
      reuse_tree: in matches the search goes on in the tree below the moves that were played.
      seed: of everything random.
      solution: a file of `azjax solve GAME --output FILE`, for a game that takes long to solve.
      epsilon: also tell exact scores against best play that makes so many random moves, such as 0.1 0.5.
      by_ply: also tell mistakes by ply.
    """

    games: int = 10_000
    num_simulations: int = NUM_SIMULATIONS
    solver: bool = False
    reuse_tree: bool = False
    seed: int = 0
    solution: Path | None = None
    epsilon: tuple[float, ...] = ()
    by_ply: bool = False

    def __post_init__(self) -> None:
        _check_games(self.games)
        _check_seed(self.seed)
        for epsilon in self.epsilon:
            if not 0 <= epsilon <= 1:
                raise InputError(f"epsilon must be 0..1, got {epsilon}")


@dataclasses.dataclass(frozen=True)
class SolveOptions:
    """Finds every position of a game, and its value.

    Attributes:
      perft: count the sequences of 1 to this many legal moves instead.
      max_states: positions to give up at; 10 million if not given, and any number of a game that numbers them.
      output: keep the solution in this file (.npz), for `optimal:FILE` and `azjax evaluate --solution FILE`.
    """

    perft: int = 0
    max_states: int | None = None
    output: Path | None = None


@dataclasses.dataclass(frozen=True)
class PlayOptions:
    """Plays against an agent, in the terminal or on a page.

    Attributes:
      web: serve a page for the browser, on which all else is chosen (needs the extra `play`).
      host: address that the page is served at; others than this machine can come only if it is not 127.0.0.1.
      port: of the page; 0 for any that is free.
      level: easy draws from the network's policy, medium takes its best move, hard searches; asked if not given.
      start: who moves first; asked if not given.
      num_simulations: of the search at level hard; what the page begins with.
      solver: the search proves wins, losses and draws; that of the page always does.
      reuse_tree: the search goes on in the tree below the moves that were played.
      seed: of the agent's draws.
    """

    web: bool = False
    host: str = "127.0.0.1"
    port: int = 8000
    level: Literal["easy", "medium", "hard"] | None = None
    start: Literal["me", "agent"] | None = None
    num_simulations: int = NUM_SIMULATIONS
    solver: bool = False
    reuse_tree: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        _check_seed(self.seed)
        if not 0 <= self.port < 2**16:
            raise InputError(f"port must be 0..65535, got {self.port}")
        if self.web and (self.level or self.start or self.reuse_tree):
            raise InputError(
                "level and start are chosen on the page, whose searches begin anew; leave out --level, --start and "
                "--reuse-tree with --web"
            )


@dataclasses.dataclass(frozen=True)
class GtpOptions:
    """An agent as an engine of the Go Text Protocol or of OpenTafl's, on standard input and output.

    Attributes:
      protocol: gtp, or for brandub opentafl.
      seconds: search so long for each move, where no clock runs, in place of the simulations.
      num_simulations: of a trained agent's search.
      solver: the search proves wins, losses and draws.
      reuse_tree: the search goes on in the tree below the moves that were played.
      seed: of the agent's draws.
    """

    protocol: Literal["gtp", "opentafl"] = "gtp"
    seconds: float | None = None
    num_simulations: int = NUM_SIMULATIONS
    solver: bool = False
    reuse_tree: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        _check_seed(self.seed)


@dataclasses.dataclass(frozen=True)
class MatchOptions:
    """Plays matches of players with each other, each moving first in half of the games; three and more are rated.

    Attributes:
      games: of each two players, even.
      opening_plies: of random moves that games begin with; both games of a pair begin with the same ones.
      sprt: two differences in Elo, such as 0 50; a match stops when one of them is sure enough (see
        `azjax.evaluation.SequentialTest`).
      anchor: the player whose rating is 0; the mean of all by default.
      seconds: for each answer of a program such as gtp:COMMAND.
      processes: of a program, for games side by side.
      seed: of everything random.
      records: keep the games in this file (.jsonl).
      plot: draw the ratings to this file.
    """

    games: int = 1000
    opening_plies: int = 0
    sprt: tuple[float, float] | None = None
    anchor: str | None = None
    seconds: float = 10.0
    processes: int = 1
    seed: int = 0
    records: Path | None = None
    plot: Path | None = None

    def __post_init__(self) -> None:
        _check_games(self.games)
        _check_seed(self.seed)
        _ = self.sequential_test

    @property
    def sequential_test(self) -> SequentialTest | None:
        return None if self.sprt is None else SequentialTest(*self.sprt)


@dataclasses.dataclass(frozen=True)
class ReportOptions:
    """Tells of a run on a page, and lets its newest checkpoint play for it.

    Attributes:
      num_simulations: of the searches.
      games: of each match, even.
      sample_games: that are shown.
      seed: of everything random.
    """

    num_simulations: int = 100
    games: int = 1000
    sample_games: int = 6
    seed: int = 0

    def __post_init__(self) -> None:
        _check_games(self.games)
        _check_seed(self.seed)


@dataclasses.dataclass(frozen=True)
class ShowOptions:
    """Tells what a sweep found so far: its best trials, and a page.

    Attributes:
      folder: of the study; sweeps/STUDY by default.
      storage: path of a journal file, or address of a database; FOLDER/journal.log by default.
      best: rows of the table.
    """

    folder: Path | None = None
    storage: str | None = None
    best: int = 10

    def __post_init__(self) -> None:
        if self.best < 1:
            raise InputError(f"best must be at least 1, got {self.best}")


@dataclasses.dataclass(frozen=True)
class SweepOptions:
    """Searches for the best settings; the same command again goes on, and on another machine joins in.

    Attributes:
      folder: of the study and its runs; sweeps/STUDY by default.
      storage: path of a journal file that all workers reach, or address of a database, such as
        postgresql+psycopg://USER@HOST/NAME; FOLDER/journal.log by default.
      workers: processes on this machine, or jobs of the array.
      slurm: submit the workers to SLURM instead.
      lease: seconds without a sign after which a worker counts as dead; the same for all of them.
    """

    folder: Path | None = None
    storage: str | None = None
    workers: int = 1
    slurm: bool = False
    lease: float = 60.0

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise InputError(f"workers must be at least 1, got {self.workers}")
        if not 0 < self.lease < math.inf:
            raise InputError(f"lease must be a number above 0, got {self.lease}")


def _values(text: str) -> tuple[str, list[float | int]]:
    """The field and the values of `FIELD=VALUE,VALUE`."""
    name, _, values = text.partition("=")
    try:
        return name, [int(value) if name == "seed" else float(value) for value in values.split(",")]
    except ValueError:
        raise InputError(f"vary: FIELD=NUMBER,NUMBER... is what is asked for, got {text!r}") from None


def _check_games(games: int) -> None:
    if games < 2 or games % 2:
        raise InputError(f"games must be even and at least 2, so that both move first equally; got {games}")


def _check_seed(seed: int) -> None:
    if not 0 <= seed < 2**32:
        raise InputError(f"seed must be 0..2^32 - 1, got {seed}")


def first_word(command: str, what: str, arguments: list[str]) -> tuple[str, list[str]]:
    """The word after the command, and what follows it."""
    if not arguments or arguments[0].startswith("-"):
        raise InputError(f"azjax {command} needs a {what}; `azjax --help` tells more")
    return arguments[0], arguments[1:]


def parse_with_game(command: str, name: str, defaults: Callable[[Game], Any], arguments: list[str]) -> tuple[Any, Game]:
    """Options of the command and of the game, as flags side by side; the game may decide the command's defaults."""
    parameters = inspect.signature(factory(name)).parameters.values()
    fields = [(p.name, p.annotation, dataclasses.field(default=p.default)) for p in parameters]
    game_options = dataclasses.make_dataclass(f"{name}_options", fields, frozen=True)
    game_options.__doc__ = f"Options of {name}."
    asked = [argument for argument in arguments if argument not in ("-h", "--help")]
    of_game, _ = parse(f"{command} {name}", game_options(), asked, return_unknown_args=True)
    default = defaults(make(name, **dataclasses.asdict(of_game)))
    kind = dataclasses.make_dataclass(
        "Command", [("command", type(default), default), ("game", game_options, game_options())], frozen=True
    )
    kind.__doc__ = (inspect.getdoc(type(default)) or "").partition("\n")[0]
    parsed = parse(f"{command} {name}", kind(), arguments)
    return parsed.command, make(name, **dataclasses.asdict(parsed.game))


def parse_with_players(
    command: str, count: int | None, defaults: Any, arguments: list[str]
) -> tuple[Any, Game, list[str]]:
    """Options of the command, the game that the players play, and the players; `count` of them, or any from 2 on."""
    words = list(itertools.takewhile(lambda word: not word.startswith("-"), arguments))
    options = arguments[len(words) :]
    if count is None:
        words = [spec for word in words for spec in every_checkpoint(word)]
    if len(words) < (count or 2):
        raise InputError(f"azjax {command} needs {_PLAYERS[count]}; `azjax --help` tells more")
    specs = words[:count]
    arguments = words[len(specs) :] + options  # a word too many is refused as an option
    typed = " ".join([command, *specs])
    for game in map(game_of, specs):
        if game is not None:
            return parse(typed, defaults, arguments), game, specs
    if "--help" in arguments or "-h" in arguments:
        parse(f"{typed} --game GAME", defaults, ["--help"])
    # Both forms that tyro takes of every option.
    arguments = [part for word in arguments for part in (word.split("=", 1) if word.startswith("--game=") else [word])]
    if "--game" not in arguments[:-1]:
        load_player(specs[0], None)  # says what a player is
    place = arguments.index("--game")
    name, rest = arguments[place + 1], arguments[:place] + arguments[place + 2 :]
    parsed, game = parse_with_game(f"{typed} --game", name, lambda _: defaults, rest)
    return parsed, game, specs


def parse(prog: str, defaults: Any, arguments: list[str], **how: Any) -> Any:
    """Options as tyro reads them; its boxed message becomes the one line of a ValueError."""
    message = io.StringIO()
    try:
        with contextlib.redirect_stderr(message):
            return tyro.cli(
                type(defaults),
                default=defaults,
                args=arguments,
                prog=f"azjax {prog}",
                config=(tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes),
                **how,
            )
    except SystemExit as stop:
        if not stop.code:
            raise
        # A heading, then the message between two rules; the lines are drawn with dashes where there is no Unicode.
        lines = [line.strip(" │─-╭╮╰╯") for line in message.getvalue().splitlines()[1:]]
        lines = lines[1:] if lines[0] == "" else lines
        # What our own checks raise is told without the part of the options that it came from.
        reason = re.sub(r"^Error parsing [^-:][^:]*: ", "", " ".join(lines[: lines.index("")]))
        raise InputError(f"{reason} (`azjax {prog} --help` lists the options)") from None
