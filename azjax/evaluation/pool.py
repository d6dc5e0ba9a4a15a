"""A pool: the games of many players in one file, which later matches continue, for ratings on one scale.

The file is one of game records (`azjax.evaluation.game_record`), so the games of any match can begin a pool. A name
stands for one player: a player that changes needs a new name.
"""

from pathlib import Path

from azjax.core.errors import InputError
from azjax.core.files import only_writer, write_atomically
from azjax.evaluation.game_record import GameRecord, load_games, records_of
from azjax.evaluation.match_result import MatchResult, Record
from azjax.evaluation.seats import RESIGNATION
from azjax.games.game import AnyGame


class Pool:
    """The games of a pool. `azjax.evaluation.play_round_robin` plays those that it lacks.

    Args:
      path: the file, which may not exist yet.
      game: the game of all records.

    Raises:
      InputError: as `load_games`, or a game by other rules.
    """

    def __init__(self, path: str | Path, game: AnyGame) -> None:
        self._path, self._game = Path(path), game
        self._records = load_games(path) if self._path.exists() else []
        for number, record in enumerate(self._records, 1):
            if record.game != game:
                raise InputError(f"{path}: game {number} is of {record.game}, and the match of {game}")

    @property
    def players(self) -> list[str]:
        """The names of all players."""
        return list(dict.fromkeys(name for record in self._records for name in record.players))

    @property
    def records(self) -> list[GameRecord]:
        """All games."""
        return list(self._records)

    def games_between(self, first: str, second: str) -> int:
        """The number of games of two players, forfeits included."""
        return sum(set(record.players) == {first, second} for record in self._records)

    def add(self, match: MatchResult, since: int = 0) -> None:
        """Adds the games of a match, from number `since` on, to what the file has.

        Another match may have added games meanwhile; they stay.

        Raises:
          FileError: it could not be written; the earlier file is unchanged.
        """
        records = records_of(self._game, match, since)
        with only_writer(self._path), write_atomically(self._path) as file:
            earlier = self._path.read_bytes() if self._path.exists() else b""
            ended = not earlier or earlier.endswith(b"\n")
            lines = "".join(record.to_json() + "\n" for record in records)
            file.write(earlier + b"\n" * (not ended) + lines.encode())
        self._records += records

    def pairings(self) -> list[tuple[str, str, Record]]:
        """The results of the games that the rules ended or a player resigned, in the form that `rate` takes.

        A forfeit is not a win, and a game against oneself tells nothing.
        """
        pairings = []
        for record in self._records:
            if record.rewards is not None and record.end in (None, RESIGNATION) and len({*record.players}) == 2:
                pairings.append((*record.players, Record.of([record.rewards[0]])))
        return pairings
