"""The games that a player lost, judged by a search: where its value turned, and which moves the search would not play.

Axis letters: `T` moves of a game, `P` its T + 1 positions, `B` positions judged at once, `A` actions.
"""

import dataclasses
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, TypeAlias

import jax
import numpy as np
from jaxtyping import Float

from azjax.core.errors import InputError
from azjax.evaluation import GameRecord, Player, Record
from azjax.evaluation.players import choose
from azjax.games.game import AnyGame, State
from azjax.games.protocols import TextGame, player_names

_BATCH = 128
_SMALL = 0.1  # change of a value that is no mistake

Turn: TypeAlias = Literal["opening", "own move", "reply"]


class LostGame(NamedTuple):
    """A game that the player lost.

    Attributes:
      number: of the game in its file, from 1.
      seat: of the player, 0 or 1.
      states: P positions.
      actions: T actions.
      values: P values in -1..1 by the judge, for the player; that of the last position is its result.
      preferred: T actions that the judge prefers.
    """

    number: int
    seat: int
    states: list[State]
    actions: list[int]
    values: Float[np.ndarray, "P"]
    preferred: list[int]

    @property
    def turn(self) -> int:
        """The number of the first position from which on all values are below zero."""
        even = np.flatnonzero(self.values >= 0)
        return int(even[-1]) + 1 if len(even) else 0

    @property
    def turned_at(self) -> Turn:
        """What led to that position: nothing, a move of the player, or a reply whose effect the judge did not see."""
        if self.turn == 0:
            return "opening"
        return "own move" if self._moves(self.turn - 1) else "reply"

    def mistakes(self) -> list["Mistake"]:
        """The player's moves that lose value and that the judge would not have played."""
        plies = [ply for ply, action in enumerate(self.actions) if self._moves(ply) and action != self.preferred[ply]]
        costs = ((ply, float(self.values[ply] - self.values[ply + 1])) for ply in plies)
        return [Mistake(self, ply, cost) for ply, cost in costs if cost > _SMALL]

    def _moves(self, ply: int) -> bool:
        return bool(self.states[ply].current_player == self.seat)

    @property
    def own_plies(self) -> list[int]:
        """The plies at which the player moved."""
        return [ply for ply in range(len(self.actions)) if self._moves(ply)]


class Mistake(NamedTuple):
    """A move of a lost game: its ply, from 0, and the value that it lost by the judge."""

    game: LostGame
    ply: int
    cost: float


@dataclasses.dataclass(frozen=True)
class LossReport:
    """The contents of a report on the games of a player.

    Attributes:
      game: the game of all records.
      player: whose games these are.
      judge: the name of the player that judged them.
      results: of the games that the rules ended, with player 0's seat and with player 1's.
      forfeits: games that ended otherwise, or not at all.
      lost: the lost games that were judged.
      num_lost: how many were lost in all.
    """

    game: AnyGame
    player: str
    judge: str
    results: tuple[Record, Record]
    forfeits: int
    lost: list[LostGame]
    num_lost: int

    @property
    def endings(self) -> Counter[tuple[str, str]]:
        """How often the judged games ended in which way: (the player's side, how)."""
        names = player_names(self.game)
        return Counter((names[lost.seat], _ending(self.game, lost.states[-1])) for lost in self.lost)

    @property
    def turns(self) -> Counter[Turn]:
        """How often the value turned at what."""
        return Counter(lost.turned_at for lost in self.lost)

    def worst_mistakes(self, count: int) -> list[Mistake]:
        """The mistakes that lost most, one of each game at most."""
        worst = [max(found, key=lambda each: each.cost) for lost in self.lost if (found := lost.mistakes())]
        return sorted(worst, key=lambda each: -each.cost)[:count]


def judge_lost_games(
    records: Sequence[GameRecord],
    player: str,
    judge: Player,
    *,
    num_games: int,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> LossReport:
    """Looks at the games that a player lost, position by position.

    Args:
      records: games of one game by the same rules.
      player: the name of a player of them.
      judge: searches every position of the lost games.
      num_games: so many lost games are judged at most, the first ones.
      seed: of the judge.
      progress: called with the positions done and in all.

    Raises:
      InputError: there are no games, or games of several kinds; nobody is called `player`, or it lost no game.
    """
    if num_games < 1:
        raise InputError(f"games must be at least 1, got {num_games}")
    if len(games := {record.game for record in records}) != 1:
        raise InputError(f"the games must be of one kind, got {', '.join(map(str, games)) or 'none'}")
    own = [(number, record) for number, record in enumerate(records, 1) if player in record.players]
    if not own:
        names = dict.fromkeys(name for record in records for name in record.players)
        raise InputError(f"unknown player {player!r}; players of these games: {', '.join(names)}")
    over = [
        (number, record, rewards[record.players.index(player)])
        for number, record in own
        if (rewards := record.rewards) is not None and record.end is None
    ]
    lost = [(number, record) for number, record, reward in over if reward < 0]
    if not lost:
        raise InputError(f"{player} lost none of its {len(over)} games")
    replayed = [(number, record.players.index(player), *record.replay()) for number, record in lost[:num_games]]
    states = [state for _, _, played, _ in replayed for state in played[:-1]]
    values, preferred = _judge(judge, states, seed, progress)
    if np.isnan(values).any():
        raise InputError(f"{judge.name} gives no values, so it cannot judge")
    judged, begin = [], 0
    for number, seat, played, actions in replayed:
        rows = slice(begin, begin + len(actions))
        movers = np.array([int(state.current_player) for state in played[:-1]])
        of_player = np.where(movers == seat, values[rows], -values[rows])
        last = float(played[-1].rewards[seat])
        judged.append(LostGame(number, seat, played, actions, np.append(of_player, last), preferred[rows].tolist()))
        begin += len(actions)
    return LossReport(
        game=records[0].game,
        player=player,
        judge=judge.name,
        results=(_results(over, player, 0), _results(over, player, 1)),
        forfeits=len(own) - len(over),
        lost=judged,
        num_lost=len(lost),
    )


def _judge(
    judge: Player, states: Sequence[State], seed: int, progress: Callable[[int, int], None]
) -> tuple[Float[np.ndarray, "N"], np.ndarray]:
    """The value for the side to move and the preferred action in each of N positions."""
    values, preferred = [], []
    for begin in range(0, len(states), _BATCH):
        rows = [row % len(states) for row in range(begin, begin + _BATCH)]  # full batches: one compilation
        batch = jax.tree.map(lambda *leaves: np.stack(leaves), *[states[row] for row in rows])
        choice = jax.device_get(choose(judge, jax.random.fold_in(jax.random.key(seed), begin), batch))
        values.append(choice.value)
        preferred.append(choice.probabilities.argmax(axis=1))
        progress(min(begin + _BATCH, len(states)), len(states))
    return np.concatenate(values)[: len(states)], np.concatenate(preferred)[: len(states)]


def _results(over: Sequence[tuple[int, GameRecord, float]], player: str, seat: int) -> Record:
    signs = [np.sign(reward) for _, record, reward in over if record.players[seat] == player]
    return Record(signs.count(1), signs.count(0), signs.count(-1))


def _ending(game: AnyGame, state: State) -> str:
    return game.ending(state) if isinstance(game, TextGame) else "the game is lost"
