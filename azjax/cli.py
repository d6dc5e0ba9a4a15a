"""The command line: `azjax COMMAND ...`. One command a function, no logic; options are typed by tyro."""

import contextlib
import dataclasses
import inspect
import io
import logging
import re
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NoReturn

import jax
import tyro
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from azjax.agents import LEVELS, NUM_SIMULATIONS, game_of, is_trained, load_player
from azjax.benchmark.games import GamesBenchmark
from azjax.benchmark.search import SearchBenchmark
from azjax.evaluation import Player, check_can_save, load_solution, perft, save_solution, solve
from azjax.evaluation.solver import MAX_STATES
from azjax.games.game import Game, available, factory, make
from azjax.packaged import packaged
from azjax.play.terminal import play_in_terminal
from azjax.report import draw_learning_curve, measure, perft_table, solution_table, strength_table
from azjax.training import Config, preset, train

_console = Console(highlight=False, markup=False)

_USAGE = """\
usage: azjax COMMAND ...

  azjax train GAME          train an agent by self-play, then measure it
  azjax evaluate PLAYER     measure a player: exactly where the game can be solved, and in matches
  azjax solve GAME          find every position of a game, and its value
  azjax play PLAYER         play against an agent in the terminal
  azjax benchmark search    simulations per second, beside mctx, OpenSpiel and plain Python
  azjax benchmark games     steps per second of random play, beside pgx, OpenSpiel and plain Python

azjax train ends with exit code 0 when it is done, 130 or 143 after Ctrl-C or SIGTERM when it has saved, 2 for bad input
and 1 for all else that stops it.

`azjax COMMAND WORD --help` tells the options. GAME is one of {games}.
PLAYER is a run folder, one of the agents that come with azjax ({agents}),
optimal:FILE with a file that `azjax solve` wrote, or with --game GAME one of random, optimal, and searches without a
network such as uct:1000 or uniform:64.
"""


@dataclasses.dataclass(frozen=True)
class TrainOptions:
    """Trains an agent by self-play, then measures it.

    Attributes:
      folder: the run folder; runs/GAME by default.
      resume: go on with the run in the folder, to the same bit; begin it where there is none.
      accept_changes: go on although settings, rules of the game, platform or packages are not those of the run.
      tensorboard: log to FOLDER/tensorboard too (needs the extra `log`).
      games: of each match at the end, even.
      config: the settings of the run; the defaults are the game's preset.
    """

    folder: Path | None = None
    resume: bool = False
    accept_changes: bool = False
    tensorboard: bool = False
    games: int = 10_000
    config: Config = dataclasses.field(default_factory=Config)

    def __post_init__(self) -> None:
        _check_games(self.games)


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
    """

    games: int = 10_000
    num_simulations: int = NUM_SIMULATIONS
    solver: bool = False
    reuse_tree: bool = False
    seed: int = 0
    solution: Path | None = None

    def __post_init__(self) -> None:
        _check_games(self.games)
        _check_seed(self.seed)


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
    """Plays against an agent in the terminal.

    Attributes:
      level: easy draws from the network's policy, medium takes its best move, hard searches; asked if not given.
      start: who moves first; asked if not given.
      num_simulations: of the search at level hard.
      solver: the search proves wins, losses and draws.
      reuse_tree: the search goes on in the tree below the moves that were played.
      seed: of the agent's draws.
    """

    level: Literal["easy", "medium", "hard"] | None = None
    start: Literal["me", "agent"] | None = None
    num_simulations: int = NUM_SIMULATIONS
    solver: bool = False
    reuse_tree: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        _check_seed(self.seed)


def _check_games(games: int) -> None:
    if games < 2 or games % 2:
        raise ValueError(f"games must be even and at least 2, so that both move first equally; got {games}")


def _check_seed(seed: int) -> None:
    if not 0 <= seed < 2**32:
        raise ValueError(f"seed must be 0..2^32 - 1, got {seed}")


def train_command(arguments: list[str]) -> None:
    name, arguments = _first("train", "GAME", arguments)
    options, game = _parse_with_game("train", name, lambda game: TrainOptions(config=preset(game)), arguments)
    folder = Path("runs") / name if options.folder is None else options.folder
    result = train(
        game,
        options.config,
        folder,
        resume=options.resume,
        accept_changes=options.accept_changes,
        tensorboard=options.tensorboard,
        console=_console,
    )
    if result.stopped_by is not None:
        _draw(folder)
        _console.print(
            f"stopped at iteration {result.iteration} and saved; the same command with --resume goes on", soft_wrap=True
        )
        sys.exit(128 + result.stopped_by)
    _console.print(f"{folder}: {result.iteration} iterations done", soft_wrap=True)
    _measure(str(folder), game, EvaluateOptions(games=options.games))
    _draw(folder)


def evaluate_command(arguments: list[str]) -> None:
    options, game, spec = _parse_with_player("evaluate", EvaluateOptions(), arguments)
    _measure(spec, game, options)


def solve_command(arguments: list[str]) -> None:
    name, arguments = _first("solve", "GAME", arguments)
    options, game = _parse_with_game("solve", name, lambda _: SolveOptions(), arguments)
    if options.perft:
        _console.print(perft_table(game, perft(game, options.perft)))
        return
    if options.output is not None:
        check_can_save(game, options.output)
    limit = None if game.num_position_numbers else MAX_STATES
    with _progress() as progress:
        task = progress.add_task("solving", total=None)
        solution = solve(
            game,
            max_states=limit if options.max_states is None else options.max_states,
            progress=lambda what, done, total: progress.update(task, description=what, completed=done, total=total),
        )
    _console.print(solution_table(solution))
    if options.output is not None:
        save_solution(solution, options.output)
        _console.print(f"kept in {options.output}", soft_wrap=True)


def play_command(arguments: list[str]) -> None:
    options, game, spec = _parse_with_player("play", PlayOptions(), arguments)
    if options.level is not None and not is_trained(spec):
        raise ValueError(f"level is for trained agents; {spec} has but one")
    names = LEVELS if is_trained(spec) else LEVELS[-1:]
    levels = {name: _load(spec, game, options, name) for name in names}
    play_in_terminal(
        game,
        levels,
        console=_console,
        level=options.level,
        human_seat=None if options.start is None else ("me", "agent").index(options.start),
        seed=options.seed,
    )


def benchmark_command(arguments: list[str]) -> None:
    benchmarks = {"games": GamesBenchmark, "search": SearchBenchmark}
    what, arguments = _first("benchmark", " or ".join(benchmarks), arguments)
    if what not in benchmarks:
        raise ValueError(f"unknown benchmark {what!r}; available: {', '.join(benchmarks)}")
    _parse(f"benchmark {what}", benchmarks[what](), arguments).run(_console)


_COMMANDS: dict[str, Callable[[list[str]], None]] = {
    "train": train_command,
    "evaluate": evaluate_command,
    "solve": solve_command,
    "play": play_command,
    "benchmark": benchmark_command,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs one command. What goes wrong is told in one line; the exit code is 2 for bad input, 1 for the rest."""
    command, *rest = [*(sys.argv[1:] if arguments is None else arguments)] or ["--help"]
    if command in ("-h", "--help"):
        usage = _USAGE.format(games=", ".join(available()), agents=", ".join(packaged()))
        _console.print(usage, end="", soft_wrap=True)
        return
    if arguments is None:
        _silence_threads()
    try:
        if command not in _COMMANDS:
            raise ValueError(f"unknown command {command!r}; available: {', '.join(_COMMANDS)}")
        with warnings.catch_warnings():
            # Those meant for users are told as errors are, without the place in the code.
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = _tell  # type: ignore[assignment]
            _COMMANDS[command](rest)
    except ValueError as error:
        _fail(str(error), 2)
    except (RuntimeError, OSError) as error:
        _fail(str(error), 1)
    except KeyboardInterrupt:
        _fail("interrupted", 130)
    except Exception as error:  # a bug, or memory that ran out
        number, path = tempfile.mkstemp(prefix="azjax-", suffix=".txt", text=True)
        with open(number, "w") as file:
            file.write(traceback.format_exc())
        _fail(f"{type(error).__name__}: {error} ({path} tells where)", 1)


def _silence_threads() -> None:
    """Those of Orbax show or log the tracebacks of errors that it raises too, and of what follows from them."""

    def show(kind: type[BaseException], error: BaseException, place: TracebackType | None) -> None:
        if threading.current_thread() is threading.main_thread():
            sys.__excepthook__(kind, error, place)

    for name in ("absl", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    sys.excepthook = show


def _fail(message: str, code: int) -> NoReturn:
    _tell(message)
    sys.exit(code)


def _tell(message: Warning | str, *_: Any) -> None:
    print(f"azjax: {' '.join(str(message).split())}", file=sys.stderr)


def _progress() -> Progress:
    """A bar with the number of positions done and the time taken."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} positions"),
        TimeElapsedColumn(),
        console=_console,
        transient=True,
    )


def _draw(folder: Path) -> None:
    try:
        _console.print(f"learning curve: {draw_learning_curve(folder)}", soft_wrap=True)
    except ValueError as error:  # Matplotlib is an extra
        _console.print(f"no learning curve: {error}", soft_wrap=True)


def _load(spec: str, game: Game, options: EvaluateOptions | PlayOptions, level: str) -> Player:
    return load_player(
        spec,
        game,
        num_simulations=options.num_simulations,
        level=level,
        solver=options.solver,
        reuse_tree=options.reuse_tree,
    )


def _measure(spec: str, game: Game, options: EvaluateOptions) -> None:
    solution = None if options.solution is None else load_solution(options.solution, game)
    levels = ("medium", "hard") if is_trained(spec) else ("hard",)
    players = [_load(spec, game, options, level) for level in levels]
    with _console.status("measuring") as status:
        strengths = measure(
            game,
            players,
            num_games=options.games,
            key=jax.random.key(options.seed),
            solution=solution,
            progress=status.update,
        )
    _console.print(strength_table(game, strengths))


def _first(command: str, what: str, arguments: list[str]) -> tuple[str, list[str]]:
    """The word after the command, and what follows it."""
    if not arguments or arguments[0].startswith("-"):
        asked_for_help = bool(arguments) and arguments[0] in ("-h", "--help")
        if not asked_for_help:
            raise ValueError(f"azjax {command} needs a {what}; `azjax --help` tells more")
        main(["--help"])
        sys.exit(0)
    return arguments[0], arguments[1:]


def _parse_with_game(
    command: str, name: str, defaults: Callable[[Game], Any], arguments: list[str]
) -> tuple[Any, Game]:
    """Options of the command and of the game, as flags side by side; the game may decide the command's defaults."""
    parameters = inspect.signature(factory(name)).parameters.values()
    fields = [(p.name, p.annotation, dataclasses.field(default=p.default)) for p in parameters]
    game_options = dataclasses.make_dataclass(f"{name}_options", fields, frozen=True)
    game_options.__doc__ = f"Options of {name}."
    asked = [argument for argument in arguments if argument not in ("-h", "--help")]
    of_game, _ = _parse(f"{command} {name}", game_options(), asked, return_unknown_args=True)
    default = defaults(make(name, **dataclasses.asdict(of_game)))
    kind = dataclasses.make_dataclass(
        "Command", [("command", type(default), default), ("game", game_options, game_options())], frozen=True
    )
    kind.__doc__ = (inspect.getdoc(type(default)) or "").partition("\n")[0]
    parsed = _parse(f"{command} {name}", kind(), arguments)
    return parsed.command, make(name, **dataclasses.asdict(parsed.game))


def _parse_with_player(command: str, defaults: Any, arguments: list[str]) -> tuple[Any, Game, str]:
    """Options of the command, the game that the player plays, and the player."""
    spec, arguments = _first(command, "PLAYER", arguments)
    game = game_of(spec)
    if game is not None:
        return _parse(f"{command} {spec}", defaults, arguments), game, spec
    if "--help" in arguments or "-h" in arguments:
        _parse(f"{command} {spec} --game GAME", defaults, ["--help"])
    # Both forms that tyro takes of every option.
    arguments = [part for word in arguments for part in (word.split("=", 1) if word.startswith("--game=") else [word])]
    if "--game" not in arguments[:-1]:
        load_player(spec, None)  # says what a player is
    place = arguments.index("--game")
    name, rest = arguments[place + 1], arguments[:place] + arguments[place + 2 :]
    options, game = _parse_with_game(f"{command} {spec} --game", name, lambda _: defaults, rest)
    return options, game, spec


def _parse(prog: str, defaults: Any, arguments: list[str], **how: Any) -> Any:
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
        raise ValueError(f"{reason} (`azjax {prog} --help` lists the options)") from None
