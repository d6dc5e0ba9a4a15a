"""Games as text: a line of JSON a game, which any program can read. A game is played again before it is believed.

    {"azjax": 1, "game": "tictactoe", "options": {}, "players": ["uct:100", "random"], "start": null,
     "moves": ["b2", "a1", "c1", "a2", "a3"], "rewards": [1.0, -1.0], "end": null}

The first of the players is player 0, which moves first from the game's own start. `start` is a position in the game's
notation, or null for its own start; `moves` are in its notation too. `rewards` are of player 0 and 1, null in a game
that goes on. `end` tells why a game ended that the rules did not end (`resignation`, `illegal move` ...), else null.
"""

import dataclasses
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jax
import numpy as np

from azjax.core.errors import FileError, InputError
from azjax.evaluation.host_step import step_all, step_one
from azjax.evaluation.matches import MatchResult
from azjax.evaluation.openings import start_text
from azjax.games.game import Game
from azjax.games.protocols import action_from_text, action_to_text, player_names
from azjax.games.registry import make, options_of
from azjax.render.slides import slideshow

_FORMAT = 1
_KEYS = ("azjax", "game", "options", "players", "start", "moves", "rewards", "end")


@dataclasses.dataclass(frozen=True)
class GameRecord:
    """A game that was played.

    Attributes:
      game: whose rules it follows.
      players: names of player 0 and player 1.
      moves: in the game's notation.
      rewards: of player 0 and 1, summed over the game; None while it goes on.
      start: the position that it begins at, in the game's notation; None for the game's own start.
      end: why it ended, where the rules did not end it.
    """

    game: Game
    players: tuple[str, str]
    moves: tuple[str, ...]
    rewards: tuple[float, float] | None
    start: str | None = None
    end: str | None = None

    def to_json(self) -> str:
        """One line."""
        game, played = self.game, (self.start, self.moves, self.rewards, self.end)
        told = (_FORMAT, game.name, options_of(game), self.players, *played)
        return json.dumps(dict(zip(_KEYS, told, strict=True)), ensure_ascii=False)

    @classmethod
    def from_json(cls, line: str) -> "GameRecord":
        """The game of one line, which `replay` has found possible.

        Raises:
          ValueError: no such line, an unknown game or format, an illegal move, or a result that is not the game's.
        """
        try:
            told = json.loads(line)
            number, name, options, players, start, moves, rewards, end = (told[key] for key in _KEYS)
            if number != _FORMAT:
                raise InputError(f"format {number!r}, not {_FORMAT}")
            first, second = players
            reward_pair = None if rewards is None else (float(rewards[0]), float(rewards[1]))
            if not (isinstance(moves, list) and all(isinstance(move, str) for move in moves)):
                raise InputError("moves must be texts")
            if not (isinstance(name, str) and isinstance(options, dict)):
                raise InputError("game must be a name, and options a table")
            if not all(isinstance(text, str | None) for text in (start, end)):
                raise InputError("start and end must be texts or null")
        except KeyError as error:
            raise InputError(f"no game record: {error} is missing") from None
        except (TypeError, ValueError, IndexError) as error:
            raise InputError(f"no game record: {error}") from None
        record = cls(make(name, **options), (str(first), str(second)), tuple(moves), reward_pair, start, end)
        record.replay()
        return record

    def replay(self) -> tuple[list[Any], list[int]]:
        """Plays the game again.

        Returns:
          its positions, one more than moves, and its actions.

        Raises:
          ValueError: a start or a move that the rules do not allow, moves after the end, or rewards that are not those
            of the game.
        """
        # A game that draws its start tells it.
        state = self.game.init(jax.random.key(0)) if self.start is None else self.game.from_text(self.start)
        states, actions, rewards = [jax.tree.map(np.asarray, state)], [], np.zeros(2)
        for ply, move in enumerate(self.moves):
            if states[-1].terminated:
                raise InputError(f"the game ended after {ply} moves, and has {len(self.moves)}")
            try:
                actions.append(action_from_text(self.game, states[-1], move))
            except ValueError as error:
                raise InputError(f"move {ply + 1}: {error}") from None
            states.append(step_one(self.game, states[-1], actions[-1]))
            rewards += states[-1].rewards
        over = bool(states[-1].terminated)
        if over and (self.rewards is None or not np.allclose(rewards, self.rewards)):
            raise InputError(f"rewards must be {rewards.tolist()}, as the game ended, got {self.rewards}")
        if not over and (self.rewards is None) != (self.end is None):
            raise InputError("a game that the rules did not end has both rewards and an end, or neither")
        return states, actions

    def _repr_html_(self) -> str:
        states, actions = self.replay()
        sides = (f"{player} ({side})" for player, side in zip(self.players, player_names(self.game), strict=True))
        title = (
            f"{' against '.join(sides)}: {_told_end(self)}, {len(actions)} {'ply' if len(actions) == 1 else 'plies'}"
        )
        return slideshow(self.game, states, actions, title=title)


def _told_end(record: GameRecord) -> str:
    """How a game ended, for people."""
    if record.rewards is None:
        return "it goes on"
    first, second = record.rewards
    ended = "drawn" if first == second else f"{player_names(record.game)[int(second > first)]} won"
    return ended if record.end is None else f"{ended} ({record.end})"


def records_of(game: Game, match: MatchResult) -> list[GameRecord]:
    """The games of a match."""
    count = len(match.starts.terminated)
    texts = [start_text(game, jax.tree.map(lambda leaf, at=at: leaf[at], match.starts)) for at in range(count)]
    pairs = np.arange(len(match.actions)) // 2 % count
    states = jax.tree.map(lambda leaf: leaf[pairs], match.starts)
    moves: list[list[str]] = [[] for _ in match.actions]
    for ply in range(max(match.plies, default=0)):
        running = [number for number, plies in enumerate(match.plies) if ply < plies]
        actions = np.zeros(len(moves), np.int32)
        for number in running:
            actions[number] = match.actions[number][ply]
            state = jax.tree.map(lambda leaf, at=number: leaf[at], states)
            moves[number].append(action_to_text(game, state, int(actions[number])))
        states = step_all(game, states, actions)
    records = []
    for number, (played, reward) in enumerate(zip(moves, match.rewards, strict=True)):
        players, rewards = (match.first, match.second), (reward, 0.0 - reward)
        if number % 2:
            players, rewards = players[::-1], rewards[::-1]
        end = match.forfeits[number] if match.forfeits else None
        records.append(GameRecord(game, players, tuple(played), rewards, texts[pairs[number]], end))
    return records


def save_games(path: str | Path, records: Iterable[GameRecord]) -> None:
    """Writes a file of games, whole or not at all.

    Raises:
      OSError: it could not be written; what stood there before stays.
    """
    path = Path(path)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        part.write_text("".join(record.to_json() + "\n" for record in records), encoding="utf-8")
        os.replace(part, path)
    except OSError as error:
        raise FileError(f"{path} could not be written: {error.strerror or error}") from error
    finally:
        part.unlink(missing_ok=True)


def load_games(path: str | Path) -> list[GameRecord]:
    """Reads a file of games; empty lines are passed over.

    Raises:
      ValueError: no such file, or a line that `GameRecord.from_json` refuses; the message tells which.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} could not be read: {getattr(error, 'strerror', None) or error}") from None
    records = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                records.append(GameRecord.from_json(line))
            except ValueError as error:
                raise InputError(f"{path}, line {number}: {error}") from None
    return records
