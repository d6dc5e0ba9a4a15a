"""The games of a run's ladder, `ladder_games/ITERATION.jsonl`: those of one network against the strongest before it."""

import dataclasses
from pathlib import Path

import jax
import numpy as np

from azjax.core.errors import FileError
from azjax.evaluation import DeviceMatch, records_of, save_games
from azjax.evaluation.host_games import position_from_text, rows_of
from azjax.games.game import AnyGame
from azjax.games.protocols import TextGame

LADDER_GAMES = "ladder_games"


def save_ladder_games(folder: Path, game: AnyGame, iteration: int, match: DeviceMatch) -> None:
    """Writes the games of the network after `iteration`, if the game has a notation.

    Raises:
      FileError: they could not be written.
    """
    if not isinstance(game, TextGame):
        return
    result = match.result(f"iteration {iteration}", "the strongest before")
    # As a reader of the text plays them: from positions without a history.
    count = len(result.starts.terminated)
    starts = [rows_of(result.starts, row) for row in range(count)]
    told = [position_from_text(game, game.to_text(start)) for start in starts]
    result = dataclasses.replace(result, starts=jax.tree.map(lambda *leaves: np.stack(leaves), *told))
    path = folder / LADDER_GAMES / f"{iteration}.jsonl"
    try:
        path.parent.mkdir(exist_ok=True)
    except OSError as error:
        raise FileError(f"{path.parent} could not be made: {error.strerror}") from error
    save_games(path, records_of(game, result))


def ladder_games(folder: str | Path) -> list[Path]:
    """The files of games of a run folder, by iteration."""
    files = (Path(folder) / LADDER_GAMES).glob("*.jsonl")
    return sorted((file for file in files if file.stem.isdecimal()), key=lambda file: int(file.stem))
