"""`azjax solve GAME`."""

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path

from azjax.commands.arguments import first_word, parse_with_game
from azjax.commands.console import console, progress_bar, say
from azjax.core.errors import InputError
from azjax.evaluation import (
    check_can_save,
    load_table,
    perft,
    prove,
    save_endings,
    save_solution,
    solve,
    solve_endings,
)
from azjax.evaluation.host_games import only_start, position_from_text
from azjax.evaluation.solution import Progress
from azjax.evaluation.solver import MAX_STATES
from azjax.evaluation.tables import check_can_replace
from azjax.games.game import AnyGame
from azjax.games.protocols import is_numbered
from azjax.report import endings_table, perft_table, proof_table, solution_table


@dataclasses.dataclass(frozen=True)
class SolveOptions:
    """Finds every position of a game and its value.

    Attributes:
      perft: count the sequences of 1 to this many legal moves instead.
      endings: solve only the positions of few pieces, also those that moves bring back. In tafl: with up to this many
        beside the king, at most one of them a defender.
      prove: find the value of one position alone, given in the game's notation or as `start`, by proof-number search.
      tables: exact values that the proof may use: a file of `azjax solve GAME --output FILE`.
      max_states: stop with an error after this many positions. Default: 10 million; without `--prove` no limit for a
        game that numbers its positions.
      output: save the solution to this file (.npz), for `optimal:FILE` and `--tables FILE`, and without `--endings` for
        `azjax evaluate --solution FILE`.
    """

    perft: int | None = None
    endings: int | None = None
    prove: str | None = None
    tables: Path | None = None
    max_states: int | None = None
    output: Path | None = None

    def __post_init__(self) -> None:
        for name in ("perft", "endings", "max_states"):
            number = getattr(self, name)
            if number is not None and number < 1:
                raise InputError(f"{_flag(name)} must be at least 1, got {number}")


def solve_command(arguments: list[str]) -> None:
    """Solves a game, or counts its sequences of moves."""
    name, arguments = first_word("solve", "GAME", SolveOptions(), arguments)
    options, game = parse_with_game("solve", name, lambda _: SolveOptions(), arguments)
    given = [name for name in ("perft", "endings", "prove") if getattr(options, name) is not None]
    if len(given) > 1:
        raise InputError(f"{' and '.join(map(_flag, given))} are different uses of solve: give one of them")
    if options.tables is not None and options.prove is None:
        raise InputError("--tables is for --prove POSITION")
    if options.perft is not None and (options.output is not None or options.max_states is not None):
        raise InputError("--perft counts moves alone: --output and --max-states are for solutions")
    if options.perft is not None:
        if options.perft > game.max_plies:
            raise InputError(
                f"--perft must be at most {game.max_plies:,}, the plies of the longest game, got {options.perft:,}"
            )
        console.print(perft_table(game, perft(game, options.perft)))
        return
    if options.prove is not None:
        _prove(game, options.prove, options)
        return
    if options.endings is not None:
        _solve_endings(game, options.endings, options)
        return
    if options.output is not None:
        check_can_save(game, options.output)
        check_can_replace(options.output)
    limit = None if is_numbered(game) else MAX_STATES
    with _shown("solving") as progress:
        max_states = limit if options.max_states is None else options.max_states
        solution = solve(game, max_states=max_states, progress=progress)
    if options.output is not None:  # first: the reader of the table may have ended
        save_solution(solution, options.output)
    console.print(solution_table(solution))
    if options.output is not None:
        say(f"saved to {options.output}")


def _flag(name: str) -> str:
    """The flag of an option."""
    return f"--{name.replace('_', '-')}"


def _solve_endings(game: AnyGame, pieces: int, options: SolveOptions) -> None:
    if options.max_states is not None:
        raise InputError("--max-states is not for --endings, whose number is known")
    if options.output is not None:
        check_can_replace(options.output)
    with _shown("solving") as progress:
        solution = solve_endings(game, pieces, progress)
    if options.output is not None:
        save_endings(solution, options.output)
    console.print(endings_table(solution))
    if options.output is not None:
        say(f"saved to {options.output}")


def _prove(game: AnyGame, text: str, options: SolveOptions) -> None:
    if options.output is not None:
        raise InputError("--output is for whole solutions; a proof is one value")
    state = only_start(game) if text == "start" else position_from_text(game, text)
    table = None if options.tables is None else load_table(options.tables, game).best_moves()
    with _shown("proving") as progress:
        max_positions = MAX_STATES if options.max_states is None else options.max_states
        proof = prove(game, state, max_positions=max_positions, table=table, progress=progress)
    console.print(proof_table(game, state, proof))


@contextlib.contextmanager
def _shown(task: str) -> Iterator[Progress]:
    """Shows the progress that is reported to it; with another total something else begins, which has its own times."""
    with progress_bar("positions") as bar:
        row = bar.add_task(task, total=None)

        def show(step: str, done: int, total: int | None) -> None:
            if bar.tasks[0].total != total:
                bar.reset(row, total=total)
            bar.update(row, description=step, completed=done)

        yield show
