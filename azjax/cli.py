"""The command line: `azjax COMMAND ...`. One command a function, no logic; options are typed by tyro."""

import contextlib
import dataclasses
import io
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from azjax.agents import LEVELS, is_trained, load_mind, load_opponent, load_player
from azjax.benchmark.doctor import Doctor
from azjax.benchmark.games import GamesBenchmark
from azjax.benchmark.population import PopulationBenchmark
from azjax.benchmark.search import SearchBenchmark
from azjax.core.errors import InputError
from azjax.errors import silence_threads, told_in_one_line
from azjax.evaluation import (
    Player,
    check_can_save,
    load_solution,
    perft,
    play_round_robin,
    rate,
    records_of,
    save_games,
    save_solution,
    solve,
)
from azjax.evaluation.ratings import pairings_of
from azjax.evaluation.solver import MAX_STATES
from azjax.games.game import Game
from azjax.games.protocols import is_numbered
from azjax.games.registry import available
from azjax.options import (
    EvaluateOptions,
    GtpOptions,
    MatchOptions,
    PlayOptions,
    ReportOptions,
    ShowOptions,
    SolveOptions,
    SweepOptions,
    TrainOptions,
    first_word,
    parse,
    parse_with_game,
    parse_with_players,
)
from azjax.packaged import packaged
from azjax.parallel.peers import joined
from azjax.parallel.sharding import devices_for_members, offer_cpu_devices
from azjax.play.gtp import GtpEngine
from azjax.play.lines import Engine, read_lines, serve
from azjax.play.ongoing_game import OngoingGame
from azjax.play.opentafl import OpenTaflEngine
from azjax.play.terminal import play_in_terminal
from azjax.report import (
    by_ply_table,
    draw_learning_curve,
    draw_ratings,
    gather,
    match_table,
    measure,
    perft_table,
    population_table,
    ratings_table,
    solution_table,
    strength_table,
    write_report,
)
from azjax.runs import train, train_population
from azjax.training import preset

_console = Console(highlight=False, markup=False)

_USAGE = """\
usage: azjax COMMAND ...

  azjax train GAME          train an agent by self-play, then measure it
  azjax evaluate PLAYER     measure a player: exactly where the game can be solved, and in matches
  azjax match A B ...       matches of players with each other; rates three and more
  azjax solve GAME          find every position of a game, and its value
  azjax play PLAYER         play against an agent in the terminal, or with --web on a page
  azjax gtp PLAYER          an engine of the Go Text Protocol, or of OpenTafl's, for other people's programs
  azjax report RUN          a page on a run: curves, strength, games, a search tree
  azjax sweep STUDY.toml    search for the best settings, with as many workers as you like
  azjax sweep show STUDY.toml  the best trials of a sweep, and a page
  azjax benchmark search    simulations per second, beside mctx, OpenSpiel and plain Python
  azjax benchmark games     steps per second of random play, beside pgx, OpenSpiel and plain Python
  azjax benchmark population  iterations per second of agents trained at once, beside one after the other
  azjax doctor              what runs here, how fast, what there is room for, and what to set

azjax train and azjax sweep end with exit code 0 when they are done, 130 or 143 after Ctrl-C or SIGTERM when they have
saved, 2 for bad input and 1 for all else that stops them.

`azjax COMMAND WORD --help` tells the options. GAME is one of {games}.
PLAYER is a run folder, one of the agents that come with azjax ({agents}),
optimal:FILE with a file that `azjax solve` wrote, or with --game GAME one of random, optimal, and searches without a
network such as uct:1000 or uniform:64. In matches it may be a program, gtp:COMMAND, opentafl:COMMAND or
line:COMMAND, or a bot of OpenSpiel, openspiel:mcts:1000 or openspiel:minimax:6.
"""


def train_command(arguments: list[str]) -> None:
    name, arguments = first_word("train", "GAME", arguments)
    options, game = parse_with_game("train", name, lambda game: TrainOptions(config=preset(game)), arguments)
    folder = Path("runs") / name if options.folder is None else options.folder
    if isinstance(options.devices, int):
        offer_cpu_devices(options.devices)
    if options.members is not None:
        _train_population(game, options, folder)
        return
    with contextlib.nullcontext() if options.meeting is None else joined(*options.meeting):
        result = train(
            game,
            options.config,
            folder,
            resume=options.resume,
            accept_changes=options.accept_changes,
            tensorboard=options.tensorboard,
            console=_console if not options.process else None,
            devices=options.devices or 1,
        )
    if options.process:  # the first one tells
        sys.exit(128 + result.stopped_by if result.stopped_by else 0)
    if result.stopped_by is not None:
        _draw(folder)
        _console.print(
            f"stopped at iteration {result.iteration} and saved; the same command with --resume goes on", soft_wrap=True
        )
        sys.exit(128 + result.stopped_by)
    _console.print(f"{folder}: {result.iteration} iterations done", soft_wrap=True)
    if options.meeting is None:
        _measure(str(folder), game, EvaluateOptions(games=options.games))
    else:
        _console.print(f"azjax evaluate {folder} measures it", soft_wrap=True)
    _draw(folder)


def evaluate_command(arguments: list[str]) -> None:
    options, game, (spec,) = parse_with_players("evaluate", 1, EvaluateOptions(), arguments)
    _measure(spec, game, options)


def match_command(arguments: list[str]) -> None:
    options, game, specs = parse_with_players("match", None, MatchOptions(), arguments)
    if options.anchor not in (None, *specs):
        raise InputError(f"unknown anchor {options.anchor!r}; players: {', '.join(specs)}")
    for path in (options.records, options.plot):
        if path is not None and not path.absolute().parent.is_dir():
            raise InputError(f"{path} cannot be written: there is no folder {path.absolute().parent}")
    players = [load_opponent(spec, game, seconds=options.seconds, processes=options.processes) for spec in specs]
    with _progress("games") as progress:
        task = progress.add_task("playing", total=None)
        matches = play_round_robin(
            game,
            players,
            options.games,
            jax.random.key(options.seed),
            opening_plies=options.opening_plies,
            sequential_test=options.sequential_test,
            progress=lambda done, total: progress.update(task, completed=done, total=total),
        )
    _console.print(match_table(game, matches))
    if len(players) > 2:
        ratings = rate(pairings_of(matches), anchor=options.anchor, seed=options.seed)
        _console.print(ratings_table(game, ratings))
        if options.plot is not None:
            draw_ratings(game, ratings, options.plot)
            _console.print(f"drawn to {options.plot}", soft_wrap=True)
    if options.records is not None:
        save_games(options.records, [record for match in matches for record in records_of(game, match)])
        _console.print(f"games kept in {options.records}", soft_wrap=True)


def solve_command(arguments: list[str]) -> None:
    name, arguments = first_word("solve", "GAME", arguments)
    options, game = parse_with_game("solve", name, lambda _: SolveOptions(), arguments)
    if options.perft:
        _console.print(perft_table(game, perft(game, options.perft)))
        return
    if options.output is not None:
        check_can_save(game, options.output)
    limit = None if is_numbered(game) else MAX_STATES
    with _progress("positions") as progress:
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
    options, game, (spec,) = parse_with_players("play", 1, PlayOptions(), arguments)
    if options.level is not None and not is_trained(spec):
        raise InputError(f"level is for trained agents; {spec} has but one")
    if options.web:
        _serve(spec, game, options)
        return
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


def gtp_command(arguments: list[str]) -> None:
    options, game, (spec,) = parse_with_players("gtp", 1, GtpOptions(), arguments)
    player = dataclasses.replace(_load(spec, game, options, LEVELS[-1]), name=spec)
    ongoing = OngoingGame(game, player, seed=options.seed, seconds=options.seconds)
    engines: dict[str, Callable[[OngoingGame], Engine]] = {"gtp": GtpEngine, "opentafl": OpenTaflEngine}
    # What is no text must not end the conversation.
    for stream in (sys.stdin, sys.stdout):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    serve(engines[options.protocol](ongoing), read_lines(sys.stdin), sys.stdout)


def report_command(arguments: list[str]) -> None:
    folder, arguments = first_word("report", "RUN", arguments)
    options = parse(f"report {folder}", ReportOptions(), arguments)
    with _console.status("reading the run") as status:
        report = gather(
            folder,
            num_simulations=options.num_simulations,
            num_games=options.games,
            num_sample_games=options.sample_games,
            seed=options.seed,
            progress=status.update,
        )
    _console.print(f"{write_report(report)}", soft_wrap=True)


def benchmark_command(arguments: list[str]) -> None:
    benchmarks: dict[str, Any] = {
        "games": GamesBenchmark,
        "population": PopulationBenchmark,
        "search": SearchBenchmark,
    }
    what, arguments = first_word("benchmark", " or ".join(benchmarks), arguments)
    if what not in benchmarks:
        raise InputError(f"unknown benchmark {what!r}; available: {', '.join(benchmarks)}")
    parse(f"benchmark {what}", benchmarks[what](), arguments).run(_console)


def doctor_command(arguments: list[str]) -> None:
    parse("doctor", Doctor(), arguments).run(_console)


def sweep_command(arguments: list[str]) -> None:
    try:
        from azjax import sweep
    except ModuleNotFoundError as error:
        raise InputError(f"a sweep needs {error.name}: pip install 'azjax[sweep]'") from error
    shows = arguments[:1] == ["show"]
    command = "sweep show" if shows else "sweep"
    path, arguments = first_word(command, "STUDY.toml", arguments[shows:])
    options = parse(f"{command} {path}", ShowOptions() if shows else SweepOptions(), arguments)
    study = sweep.load_study(path)
    folder = Path("sweeps") / study.name if options.folder is None else options.folder
    storage = str(folder / sweep.JOURNAL) if options.storage is None else options.storage
    if shows:
        trials = sweep.Trials(study, sweep.connect(storage, must_exist=True))
        _tell_sweep(trials, options.best)
        _console.print(f"page: {sweep.write_page(trials, folder)}", soft_wrap=True)
        return
    trials = sweep.Trials(study, sweep.connect(storage), lease=options.lease)
    worker = sweep.worker_command(path, folder, storage, options.lease)
    if options.slurm:
        from azjax.sweep.slurm import submit

        jobs = submit(worker, folder / "slurm", options.workers, study.slurm, name=study.name)
        _console.print(f"submitted: {', '.join(job.job_id for job in jobs)}", soft_wrap=True)
        return
    try:
        sweep.run_sweep(trials, folder, worker, options.workers, _console)
    except sweep.Stopped as stopped:
        _console.print("stopped; what was trained is saved, and the same command goes on")
        sys.exit(128 + stopped.signal)
    _tell_sweep(trials, ShowOptions.best)


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
    """Runs one command. What goes wrong is told in one line; the exit code is 2 for bad input, 1 for the rest."""
    command, *rest = [*(sys.argv[1:] if arguments is None else arguments)] or ["--help"]
    if command in ("-h", "--help") or (command in _COMMANDS and rest[:1] in (["-h"], ["--help"])):
        usage = _USAGE.format(games=", ".join(available()), agents=", ".join(packaged()))
        _console.print(usage, end="", soft_wrap=True)
        return
    if arguments is None:
        silence_threads()
    with told_in_one_line():
        if command not in _COMMANDS:
            raise InputError(f"unknown command {command!r}; available: {', '.join(_COMMANDS)}")
        _COMMANDS[command](rest)


def _progress(what: str) -> Progress:
    """A bar with the number of positions or games done, and the time taken and left."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn(f"{{task.completed:,.0f}} {what}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=_console,
        transient=True,
    )


def _draw(folder: Path) -> None:
    try:
        _console.print(f"learning curve: {draw_learning_curve(folder)}", soft_wrap=True)
    except ValueError as error:  # Matplotlib is an extra
        _console.print(f"no learning curve: {error}", soft_wrap=True)


def _load(spec: str, game: Game, options: EvaluateOptions | GtpOptions | PlayOptions, level: str) -> Player:
    return load_player(
        spec,
        game,
        num_simulations=options.num_simulations,
        level=level,
        solver=options.solver,
        reuse_tree=options.reuse_tree,
    )


def _tell_sweep(trials: Any, best: int) -> None:
    from azjax.sweep import failures, points_table

    points = trials.points()
    _console.print(points_table(trials.study, points, best))
    for failure in failures(points):
        _console.print(failure, soft_wrap=True)


def _serve(spec: str, game: Game, options: PlayOptions) -> None:
    try:
        from azjax.play.server import serve
    except ModuleNotFoundError as error:
        raise InputError(f"the page needs {error.name}: pip install 'azjax[play]'") from error
    names = LEVELS[:-1] if is_trained(spec) else LEVELS[-1:]
    players = {name: _load(spec, game, options, name) for name in names}
    serve(
        game,
        spec,
        load_mind(spec, game),
        players,
        num_simulations=options.num_simulations,
        host=options.host,
        port=options.port,
        console=_console,
    )


def _train_population(game: Game, options: TrainOptions, folder: Path) -> None:
    members = options.members or []
    results = train_population(
        game,
        members,
        [folder / f"member_{number:02}" for number in range(len(members))],
        resume=options.resume,
        accept_changes=options.accept_changes,
        tensorboard=options.tensorboard,
        console=_console,
        devices=options.devices or devices_for_members(len(members)),
    )
    _console.print(population_table(members, [result.folder for result in results]))
    with contextlib.suppress(ValueError):  # Matplotlib is an extra
        for result in results:
            draw_learning_curve(result.folder)
    if results[0].stopped_by is not None:
        _console.print(
            f"stopped at iteration {results[0].iteration} and saved; the same command with --resume goes on",
            soft_wrap=True,
        )
        sys.exit(128 + results[0].stopped_by)
    _console.print(f"each member is a run: azjax evaluate {results[0].folder} measures the first", soft_wrap=True)


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
            epsilons=options.epsilon,
            progress=status.update,
        )
    _console.print(strength_table(game, strengths))
    if options.by_ply:
        _console.print(by_ply_table(game, strengths))
