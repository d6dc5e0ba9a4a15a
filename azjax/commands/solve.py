"""`azjax solve GAME`."""

import dataclasses
from pathlib import Path

from azjax.commands.arguments import first_word, parse_with_game
from azjax.commands.console import console, progress_bar, say
from azjax.evaluation import check_can_save, perft, save_solution, solve
from azjax.evaluation.solver import MAX_STATES
from azjax.games.protocols import is_numbered
from azjax.report import perft_table, solution_table


@dataclasses.dataclass(frozen=True)
class SolveOptions:
    """Finds every position of a game and its value.

    Attributes:
      perft: count the sequences of 1 to this many legal moves instead.
      max_states: give up at so many positions. Default: 10 million; no limit for a game that numbers its positions.
      output: save the solution to this file (.npz), for `optimal:FILE` and `azjax evaluate --solution FILE`.
    """

    perft: int = 0
    max_states: int | None = None
    output: Path | None = None


def solve_command(arguments: list[str]) -> None:
    """Solves a game, or counts its sequences of moves."""
    name, arguments = first_word("solve", "GAME", SolveOptions(), arguments)
    options, game = parse_with_game("solve", name, lambda _: SolveOptions(), arguments)
    if options.perft:
        console.print(perft_table(game, perft(game, options.perft)))
        return
    if options.output is not None:
        check_can_save(game, options.output)
    limit = None if is_numbered(game) else MAX_STATES
    with progress_bar("positions") as progress:
        task = progress.add_task("solving", total=None)
        solution = solve(
            game,
            max_states=limit if options.max_states is None else options.max_states,
            progress=lambda step, done, total: progress.update(task, description=step, completed=done, total=total),
        )
    console.print(solution_table(solution))
    if options.output is not None:
        save_solution(solution, options.output)
        say(f"saved to {options.output}")
