"""Solutions of numbered games in files: the arrays of a `NumberedSolution`, and counts. See `azjax.evaluation.archive`."""

import os
from pathlib import Path

from azjax.core.errors import InputError
from azjax.evaluation.archive import game_of_archive, load_archive, save_archive
from azjax.evaluation.numbered import NumberedSolution, make_table
from azjax.evaluation.solution import Solution
from azjax.games.game import Game
from azjax.games.protocols import is_numbered

_KIND = "solution"


def check_can_save(game: Game, path: str | Path) -> None:
    """Holds that a solution of the game could be written there, before hours are spent on it.

    Raises:
      ValueError: the game does not number its positions, or no file can be written at the path.
    """
    path = Path(path)
    if not is_numbered(game):
        raise InputError(f"{game.name} does not number its positions, so that its solution cannot be kept in a file")
    if path.is_dir():
        raise InputError(f"{path} is a folder, and a solution is one file")
    if not (path.parent.is_dir() and os.access(path.parent, os.W_OK)):
        raise InputError(f"{path} cannot be written: {path.parent} is not a folder that one may write to")


def save_solution(solution: Solution, path: str | Path) -> None:
    """Writes a solution to a file, whole or not at all.

    Raises:
      ValueError: see `check_can_save`.
      OSError: it could not be written; what stood there before stays.
    """
    check_can_save(solution.game, path)
    assert isinstance(solution, NumberedSolution)  # as every solution of a game that numbers its positions
    counts = {"position_numbers": solution.game.num_position_numbers, "terminal": solution.terminal}
    arrays = {"reached": solution.table.reached, "scores": solution.table.scores, "plies": solution.plies}
    save_archive(path, _KIND, solution.game, counts, arrays)


def load_solution(path: str | Path, game: Game | None = None) -> NumberedSolution:
    """Reads a solution; all of its bytes are checked, and a sample of its values against the rules.

    Args:
      path: what `save_solution` wrote.
      game: what it must be a solution of; None to take the game of the file.

    Raises:
      ValueError: no such file, a damaged one, or a solution of another game or of other rules.
    """
    own_game, manifest, arrays = load_archive(path, _KIND)
    if game not in (None, own_game):
        raise InputError(f"{path} is a solution of {own_game}, and not of {game}")
    table = make_table(arrays["reached"], arrays["scores"])
    solution = NumberedSolution(own_game, table, arrays["plies"], manifest["terminal"])
    if own_game.num_position_numbers != manifest["position_numbers"] or not solution.is_consistent():
        raise InputError(f"{path} was made with other rules or position numbers of {own_game.name}: solve it again")
    return solution


def game_of_solution(path: str | Path) -> Game:
    """The game that a file holds the solution of.

    Raises:
      ValueError: no such file, or a damaged one.
    """
    return game_of_archive(path, _KIND)
