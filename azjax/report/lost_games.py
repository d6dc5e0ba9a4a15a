"""The games that a player lost, judged by a search: where its value turned, and which moves the search would not play.

Axis letters: `T` moves of a game, `P` its T + 1 positions, `B` positions judged at once, `N` all of them, `A` actions.
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
from azjax.evaluation.match_result import forfeit_of
from azjax.evaluation.players import choose
from azjax.games.game import AnyGame, State
from azjax.games.protocols import TextGame, player_names

LEAST_COST = 0.1
"""A mistake costs more than this in value."""
_BATCH = 128

Turn: TypeAlias = Literal["opening", "mistake", "own move", "opponent"]
"""What led to the first position from which on all values are below zero: random plies or the start; a move of the
player in place of which the judge prefers another; one that the judge would play too; a move of the opponent."""


class LostGame(NamedTuple):
    """A game that the player lost.

    Attributes:
      number: of the game in its file, from 1.
      seat: of the player, 0 or 1.
      opening_plies: of the actions, the first ones, which were drawn at random.
      states: P positions.
      actions: T actions.
      values: P values by the judge, for the player; that of the last position is its result.
      preferred: T actions that the judge prefers.
      is_fine: T times, whether the judge might have played the action too.
    """

    number: int
    seat: int
    opening_plies: int
    states: list[State]
    actions: list[int]
    values: Float[np.ndarray, "P"]
    preferred: list[int]
    is_fine: list[bool]

    @property
    def turn(self) -> int:
        """The number of the first position from which on all values are below zero."""
        even = np.flatnonzero(self.values >= 0)
        return int(even[-1]) + 1 if len(even) else 0

    @property
    def turned_by(self) -> Turn:
        """What led to that position."""
        if self.turn <= self.opening_plies:
            return "opening"
        if self.turn - 1 not in self.own_plies:
            return "opponent"
        return "own move" if self.is_fine[self.turn - 1] else "mistake"

    @property
    def own_plies(self) -> list[int]:
        """The plies, from 0, at which the player chose a move."""
        plies = range(self.opening_plies, len(self.actions))
        return [ply for ply in plies if self.states[ply].current_player == self.seat]

    def mistakes(self) -> list["Mistake"]:
        """The player's moves that the judge would not have played and after which the value is lower."""
        costs = ((ply, float(self.values[ply] - self.values[ply + 1])) for ply in self.own_plies)
        return [Mistake(self, ply, cost) for ply, cost in costs if cost > LEAST_COST and not self.is_fine[ply]]


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
      results: of the games that were played out or resigned, with player 0's seat and with player 1's.
      forfeits: games that ended otherwise, or not at all.
      endings: how often the lost games ended in which way: (the player's side, how).
      judged: the lost games that were judged.
    """

    game: AnyGame
    player: str
    judge: str
    results: tuple[Record, Record]
    forfeits: int
    endings: Counter[tuple[str, str]]
    judged: list[LostGame]

    def worst_mistakes(self, count: int) -> list[Mistake]:
        """The mistakes that lost most, one of each game at most."""
        worst = [max(found, key=lambda each: each.cost) for lost in self.judged if (found := lost.mistakes())]
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
      num_games: this many of the lost games are judged at most, evenly spread over all.
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
    # A player that played itself has both seats of a game.
    over = [
        (number, record, seat, rewards[seat])
        for number, record in own
        if (rewards := record.rewards) is not None and forfeit_of(record.end) is None
        for seat in (0, 1)
        if record.players[seat] == player
    ]
    lost = [(number, record, seat) for number, record, seat, reward in over if reward < 0 and record.moves]
    if not lost:
        raise InputError(f"{player} lost none of its {len(over)} games")
    game, sides = records[0].game, player_names(records[0].game)
    replayed = [(number, record, seat, *record.replay()) for number, record, seat in lost]
    count = min(num_games, len(lost))
    to_judge = [replayed[index * len(lost) // count] for index in range(count)]
    values, probabilities = _judge(
        judge, [state for *_, played, _ in to_judge for state in played[:-1]], seed, progress
    )
    if np.isnan(values).any():
        raise InputError(f"{judge.name} gives no values, so it cannot judge")
    judged, begin = [], 0
    for number, record, seat, played, actions in to_judge:
        rows = slice(begin, begin + len(actions))
        sign = np.array([1 if state.current_player == seat else -1 for state in played[:-1]])
        gained = np.cumsum([float(state.rewards[seat]) for state in played])
        assert record.rewards is not None
        to_come = np.append(sign * values[rows], record.rewards[seat] - gained[-1])
        judged.append(
            LostGame(
                number=number,
                seat=seat,
                opening_plies=record.opening_plies,
                states=played,
                actions=actions,
                values=gained + to_come,
                preferred=probabilities[rows].argmax(axis=1).tolist(),
                is_fine=(probabilities[rows][np.arange(len(actions)), actions] > 0).tolist(),
            )
        )
        begin += len(actions)
    return LossReport(
        game=game,
        player=player,
        judge=judge.name,
        results=(_results(over, 0), _results(over, 1)),
        forfeits=len(own) - len({number for number, *_ in over}),
        endings=Counter((sides[seat], _ending(record, played[-1])) for _, record, seat, played, _ in replayed),
        judged=judged,
    )


def _judge(
    judge: Player, states: Sequence[State], seed: int, progress: Callable[[int, int], None]
) -> tuple[Float[np.ndarray, "N"], Float[np.ndarray, "N A"]]:
    """The values for the side to move in N positions, and the probabilities of the judge's moves."""
    values, probabilities = [], []
    batch_size = min(_BATCH, len(states))
    for begin in range(0, len(states), batch_size):
        rows = [row % len(states) for row in range(begin, begin + batch_size)]  # full batches: one compilation
        batch = jax.tree.map(lambda *leaves: np.stack(leaves), *[states[row] for row in rows])
        choice = jax.device_get(choose(judge, jax.random.fold_in(jax.random.key(seed), begin), batch))
        values.append(choice.value)
        probabilities.append(choice.probabilities)
        progress(min(begin + batch_size, len(states)), len(states))
    return np.concatenate(values)[: len(states)], np.concatenate(probabilities)[: len(states)]


def _results(over: Sequence[tuple[int, GameRecord, int, float]], seat: int) -> Record:
    return Record.of(reward for _, _, own_seat, reward in over if own_seat == seat)


def _ending(record: GameRecord, state: State) -> str:
    if record.end is not None:
        return record.end
    return record.game.ending(state) if isinstance(record.game, TextGame) else "the game is lost"
