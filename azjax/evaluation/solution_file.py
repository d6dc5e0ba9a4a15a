"""Solutions of numbered games in files: archives of the arrays and counts of a `NumberedSolution`."""

from pathlib import Path

import jax
import numpy as np

from azjax.core.errors import InputError
from azjax.core.files import check_can_write
from azjax.evaluation.archive import Manifest, load_archive, save_archive
from azjax.evaluation.numbered import NumberedSolution, Scores, numbering
from azjax.evaluation.solution import Solution
from azjax.games.game import AnyGame
from azjax.games.protocols import is_numbered

KIND = "solution"
_MARGIN = 1 << 16  # bytes of headers


def check_can_save(game: AnyGame, path: str | Path) -> None:
    """Checks that a solution of the game can be written to the path, before hours are spent on solving it.

    Raises:
      InputError: the game does not number its positions, or no file can be written at the path.
    """
    try:
        numbering(game)
    except InputError as error:
        raise InputError(f"{error}; its solution cannot be saved, and `optimal` solves the game again") from None
    check_can_write(path)


def save_solution(solution: Solution, path: str | Path) -> None:
    """Writes a solution to a file, completely or not at all.

    Raises:
      InputError: see `check_can_save`.
      FileError: it could not be written; an existing file is unchanged.
    """
    check_can_save(solution.game, path)
    assert isinstance(solution, NumberedSolution)  # the type of all solutions of games that number their positions
    counts = {"position_numbers": numbering(solution.game).num_position_numbers, "terminal": solution.terminal}
    table = jax.tree.map(np.asarray, solution.table)
    arrays = {"reached": table.reached, "scores": table.scores, "plies": solution.plies}
    save_archive(path, KIND, solution.game, counts, arrays)


def load_solution(path: str | Path, game: AnyGame | None = None) -> NumberedSolution:
    """Reads a solution, and checks all of its bytes, and a sample of its values against the rules.

    Args:
      path: written by `save_solution`.
      game: the game that it must belong to; None to take the game of the file.

    Raises:
      InputError: the file is missing or damaged, or belongs to another game or to other rules.
    """
    own_game, manifest, arrays = load_archive(path, KIND, _most_bytes)
    if game not in (None, own_game):
        raise InputError(f"{path} is a solution of {own_game}, and not of {game}")
    table = Scores.of(arrays["reached"], arrays["scores"])
    solution = NumberedSolution(own_game, table, arrays["plies"], manifest["terminal"])
    same_numbers = numbering(own_game).num_position_numbers == manifest["position_numbers"]
    if not (same_numbers and solution.is_consistent()):
        raise InputError(f"{path} was made with other rules or position numbers of {own_game.name}: solve it again")
    return solution


def _most_bytes(game: AnyGame, manifest: Manifest) -> int:
    """A bit for each number, and two bytes for each position."""
    del manifest
    numbers = numbering(game).num_position_numbers if is_numbered(game) else 0
    return 3 * numbers + _MARGIN
