"""Games as text, one line of JSON per game. A record that is read is replayed, and refused if it breaks the rules.

    {"azjax": 1, "game": "tictactoe", "options": {}, "players": ["uct:100", "random"], "start": null,
     "moves": ["b2", "a1", "c1", "a2", "a3"], "rewards": [1.0, -1.0], "end": null, "opening_plies": 0}

`players` names player 0 and player 1. `start` is a position in the game's notation, or null for the game's own start;
`moves` are in its notation too. In a game without a notation moves are action numbers, and a position is the moves that
lead there. `rewards` are those of player 0 and 1, null in an unfinished game. `end` says why the game ended where the
rules did not end it (`resignation`, `illegal move`, ...), else null. The first `opening_plies` of the moves were drawn
at random; a file may lack this.
"""

import dataclasses
import functools
import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

from azjax.core import display
from azjax.core.errors import InputError
from azjax.core.files import write_atomically
from azjax.core.json_text import parse_json
from azjax.evaluation.host_games import host_step, position_from_text, replay, rows_of, start_text
from azjax.evaluation.match_result import MatchResult
from azjax.games.game import AnyGame, State
from azjax.games.protocols import action_to_text
from azjax.games.registry import make, options_of

_FORMAT = 1
_KEYS = ("azjax", "game", "options", "players", "start", "moves", "rewards", "end")
_OPENING = "opening_plies"


@dataclasses.dataclass(frozen=True)
class GameRecord:
    """A game that was played. Notebooks show it as `azjax.render.notebook` draws it.

    Attributes:
      game: its rules.
      players: names of player 0 and player 1.
      moves: in the game's notation.
      rewards: of player 0 and 1, summed over the game; None if it is unfinished.
      start: the first position in the game's notation; None for the game's own start.
      end: why the game ended where the rules did not end it.
      opening_plies: how many of the moves, from the first on, were drawn at random.
    """

    game: AnyGame
    players: tuple[str, str]
    moves: tuple[str, ...]
    rewards: tuple[float, float] | None
    start: str | None = None
    end: str | None = None
    opening_plies: int = 0

    _repr_mimebundle_ = display.mimebundle

    def to_json(self) -> str:
        """The record as one line."""
        played = self.start, self.moves, self.rewards, self.end
        values = _FORMAT, self.game.name, options_of(self.game), self.players, *played
        content = {**dict(zip(_KEYS, values, strict=True)), _OPENING: self.opening_plies}
        return json.dumps(content, ensure_ascii=False)

    @classmethod
    def from_json(cls, line: str, game: AnyGame | None = None) -> "GameRecord":
        """The record of one line, checked by `replay`.

        Args:
          line: see `to_json`.
          game: the only game that is read, so that a line cannot make another one; any if None.

        Raises:
          InputError: malformed text, an unknown game or format, an illegal move, a result that is not the game's, or a
            game that is not `game`.
        """
        try:
            content = parse_json(line)
            if not isinstance(content, dict):
                raise InputError("it must be a table of JSON")
            number, name, options, players, start, moves, rewards, end = (content[key] for key in _KEYS)
            opening_plies = content.get(_OPENING, 0)
            if number != _FORMAT:
                raise InputError(f"format {number!r}, not {_FORMAT}")
            if not (isinstance(players, list) and len(players) == 2 and all(isinstance(name, str) for name in players)):
                raise InputError("players must be two names")
            if rewards is not None and not _is_pair_of_numbers(rewards):
                raise InputError(f"rewards must be two finite numbers or null, got {rewards!r}")
            reward_pair = None if rewards is None else (float(rewards[0]), float(rewards[1]))
            if not (isinstance(moves, list) and all(isinstance(move, str) for move in moves)):
                raise InputError("moves must be texts")
            if not (isinstance(name, str) and isinstance(options, dict)):
                raise InputError("game must be a name, and options a table")
            if not all(isinstance(text, str | None) for text in (start, end)):
                raise InputError("start and end must be texts or null")
            if type(opening_plies) is not int or not 0 <= opening_plies <= len(moves):
                raise InputError(f"{_OPENING} must be 0..{len(moves)}, the number of moves, got {opening_plies!r}")
        except KeyError as error:
            raise InputError(f"no game record: {error} is missing") from None
        except (TypeError, ValueError, IndexError, OverflowError) as error:
            raise InputError(f"no game record: {error}") from None
        # Names and options are compared first: making another game may take long.
        if game is not None and not (name == game.name and options.items() <= options_of(game).items()):
            raise InputError(f"that is a game of {name[:100]} by the options {str(options)[:100]}, not of {game}")
        names = players[0], players[1]
        try:
            made = make(name, **options)
        except TypeError as error:
            raise InputError(f"no game record: {name} with the options {str(options)[:100]}: {error}") from None
        record = cls(made, names, tuple(moves), reward_pair, start, end, opening_plies)
        if game is not None and record.game != game:
            raise InputError(f"that is a game of {record.game}, not of {game}")
        record.replay()
        return record

    def replay(self) -> tuple[list[State], list[int]]:
        """Plays the game again.

        Returns:
          Its positions, one more than moves, and its actions.

        Raises:
          InputError: an impossible start, an illegal move, moves after the end, or rewards that are not the game's.
        """
        return _replay(self)


@functools.lru_cache(maxsize=1)  # a record that was read has been replayed, and whoever reads it asks again
def _replay(record: GameRecord) -> tuple[list[State], list[int]]:
    # A game with random starts always records its start.
    game = record.game
    start = game.init(jax.random.key(0)) if record.start is None else position_from_text(game, record.start)
    states, actions = replay(game, start, record.moves)
    rewards = np.sum([np.zeros(2), *(state.rewards for state in states[1:])], axis=0)
    over = bool(states[-1].terminated)
    if over and (record.rewards is None or not np.allclose(rewards, record.rewards)):
        raise InputError(f"rewards must be {rewards.tolist()}, as the game ended, got {record.rewards}")
    if not over and (record.rewards is None) != (record.end is None):
        raise InputError("a game that the rules did not end has both rewards and an end, or neither")
    if not over and record.rewards is not None and record.rewards[0] != -record.rewards[1]:
        raise InputError(f"what one player wins the other loses, got rewards {record.rewards}")
    return states, actions


def _is_pair_of_numbers(value: Any) -> bool:
    numbers = value if isinstance(value, list) else []
    return len(numbers) == 2 and all(type(number) in (int, float) and math.isfinite(number) for number in numbers)


def records_of(game: AnyGame, match: MatchResult, since: int = 0) -> list[GameRecord]:
    """The games of a match from number `since` on. One that nothing ended is unfinished."""
    count = len(match.starts.terminated)
    pairs = np.arange(since, len(match.actions)) // 2 % count
    texts = {pair: start_text(game, rows_of(match.starts, pair)) for pair in set(pairs.tolist())}
    states = rows_of(match.starts, pairs)
    moves: list[list[str]] = [[] for _ in pairs]
    over = np.zeros(len(moves), bool)
    plies = np.array(match.plies[since:])
    for ply in range(max(plies, default=0)):
        actions = np.zeros(len(moves), np.int32)
        for number, own_actions in enumerate(match.actions[since:]):
            if ply < len(own_actions):
                actions[number] = own_actions[ply]
                state = rows_of(states, number)
                moves[number].append(action_to_text(game, state, int(actions[number])))
        states = host_step(game, states, actions)
        over |= states.terminated & (ply == plies - 1)
    records = []
    for row, (played, reward) in enumerate(zip(moves, match.rewards[since:], strict=True)):
        number = since + row
        players, rewards = (match.first, match.second), (reward, 0.0 - reward)
        if number % 2:
            players, rewards = players[::-1], rewards[::-1]
        end = match.ends[number] if match.ends else None
        result = rewards if over[row] or end is not None else None
        opening_plies = min(match.opening_plies, len(played))
        records.append(GameRecord(game, players, tuple(played), result, texts[int(pairs[row])], end, opening_plies))
    return records


def save_games(path: str | Path, records: Iterable[GameRecord]) -> None:
    """Writes a file of games, completely or not at all.

    Raises:
      FileError: it could not be written; an existing file is unchanged.
    """
    with write_atomically(path) as file:
        file.write("".join(record.to_json() + "\n" for record in records).encode())


def load_games(path: str | Path) -> list[GameRecord]:
    """Reads a file of games; empty lines are skipped.

    Raises:
      InputError: see `iterate_games`.
    """
    return list(iterate_games(path))


def iterate_games(path: str | Path, game: AnyGame | None = None) -> Iterator[GameRecord]:
    """Reads a file of games one by one; empty lines are skipped.

    Args:
      path: of the file.
      game: the only game that is read; any if None.

    Raises:
      InputError: an unreadable file, or a line that `GameRecord.from_json` refuses; the message gives its number.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").split("\n")  # names may have other separators of lines
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} could not be read: {getattr(error, 'strerror', None) or error}") from None
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                record = GameRecord.from_json(line, game)
            except ValueError as error:
                raise InputError(f"{path}, line {number}: {error}") from None
            yield record
