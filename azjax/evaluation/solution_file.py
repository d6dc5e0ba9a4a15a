"""Solutions of numbered games in files, which are checked before they are believed.

A file is a NumPy archive (`.npz`): the arrays of a `NumberedSolution`, and a manifest in JSON with the game, its
options, counts and the SHA-256 of the arrays.
"""

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from azjax.evaluation.numbered import NumberedSolution, make_table
from azjax.evaluation.solution import Solution
from azjax.games.game import Game, make

_FORMAT = 1
_ARRAYS = ("reached", "scores", "plies")  # of `NumberedSolution` and its table


def check_can_save(game: Game, path: str | Path) -> None:
    """Holds that a solution of the game could be written there, before hours are spent on it.

    Raises:
      ValueError: the game does not number its positions, or no file can be written at the path.
    """
    path = Path(path)
    if not game.num_position_numbers:
        raise ValueError(f"{game.name} does not number its positions, so that its solution cannot be kept in a file")
    if path.is_dir():
        raise ValueError(f"{path} is a folder, and a solution is one file")
    if not (path.parent.is_dir() and os.access(path.parent, os.W_OK)):
        raise ValueError(f"{path} cannot be written: {path.parent} is not a folder that one may write to")


def save_solution(solution: Solution, path: str | Path) -> None:
    """Writes a solution to a file, whole or not at all.

    Raises:
      ValueError: see `check_can_save`.
      OSError: it could not be written; what stood there before stays.
    """
    path = Path(path)
    check_can_save(solution.game, path)
    assert isinstance(solution, NumberedSolution)  # as every solution of a game that numbers its positions
    arrays = {"reached": solution.table.reached, "scores": solution.table.scores, "plies": solution.plies}
    manifest = {
        "format": _FORMAT,
        "game": solution.game.name,
        "options": solution.game.options,
        "position_numbers": solution.game.num_position_numbers,
        "terminal": solution.terminal,
        "sha256": _digest(arrays),
    }
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with open(part, "wb") as file:
            np.savez_compressed(file, manifest=np.array(json.dumps(manifest)), **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except OSError as error:
        raise OSError(f"{path} could not be written: {error.strerror or error}") from error
    finally:
        part.unlink(missing_ok=True)


def load_solution(path: str | Path, game: Game | None = None) -> NumberedSolution:
    """Reads a solution; all of its bytes are checked, and a sample of its values against the rules.

    Args:
      path: what `save_solution` wrote.
      game: what it must be a solution of; None to take the game of the file.

    Raises:
      ValueError: no such file, a damaged one, or a solution of another game or of other rules.
    """
    own_game, manifest, arrays = _read(path, _ARRAYS)
    if game not in (None, own_game):
        raise ValueError(f"{path} is a solution of {own_game}, and not of {game}")
    if _digest(arrays) != manifest.get("sha256"):
        raise ValueError(f"{path} is damaged: its values are not those that were written")
    table = make_table(arrays["reached"], arrays["scores"])
    solution = NumberedSolution(own_game, table, arrays["plies"], manifest["terminal"])
    if own_game.num_position_numbers != manifest["position_numbers"] or not solution.is_consistent():
        raise ValueError(f"{path} was made with other rules or position numbers of {own_game.name}: solve it again")
    return solution


def game_of_solution(path: str | Path) -> Game:
    """The game that a file holds the solution of.

    Raises:
      ValueError: no such file, or a damaged one.
    """
    return _read(path, ())[0]


def _read(path: str | Path, names: Iterable[str]) -> tuple[Game, dict[str, Any], dict[str, np.ndarray]]:
    """The game, the manifest and these arrays; all that can be wrong with the file becomes a ValueError."""
    try:
        # Opened here: NumPy does not close what it cannot read.
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            manifest = json.loads(str(archive["manifest"]))
            if manifest["format"] != _FORMAT:
                raise ValueError(f"its format is {manifest['format']}, and {_FORMAT} is known")
            arrays = {name: archive[name] for name in names}
        return make(manifest["game"], **manifest["options"]), manifest, arrays
    except FileNotFoundError:
        raise ValueError(f"there is no solution file {path}") from None
    except Exception as error:  # a damaged archive can raise any
        raise ValueError(f"{path} is no solution file, or is damaged: {error}") from error


def _digest(arrays: dict[str, np.ndarray]) -> str:
    """SHA-256 of the arrays' names, types and bytes."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype.str} {arrays[name].shape}".encode())
        digest.update(np.ascontiguousarray(arrays[name]).data)
    return digest.hexdigest()
