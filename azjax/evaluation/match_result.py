"""What came out of a match: its games, counted for one of the two players."""

import collections
import dataclasses
import math
from collections.abc import Iterable

import numpy as np

from azjax.evaluation.seats import RESIGNATION
from azjax.games.game import State

_NORMAL_95 = 1.959964  # quantile of the normal distribution for two-sided 95%


@dataclasses.dataclass(frozen=True)
class Record:
    """Numbers of results of games, for one player."""

    wins: int
    draws: int
    losses: int

    @classmethod
    def of(cls, rewards: Iterable[float]) -> "Record":
        """Counts games by the sign of their reward."""
        signs = collections.Counter(np.sign(reward) for reward in rewards)
        return cls(signs[1], signs[0], signs[-1])

    @property
    def games(self) -> int:
        return self.wins + self.draws + self.losses

    @property
    def score(self) -> float:
        """Points per game: 1 for a win, 1/2 for a draw; NaN without games."""
        return (self.wins + self.draws / 2) / self.games if self.games else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95% interval of the score (Wilson 1927), narrowed by the smaller variance of draws.

        It assumes independent games: two deterministic players repeat the same game.
        """
        if not self.games:
            return 0.0, 1.0
        # The share of the variance that draws take away, s (1 - s) - draws / 4; a little less of it in few games.
        no_draws = self.score * (1 - self.score) + _NORMAL_95**2 / (16 * self.games)
        spread = _NORMAL_95**2 / self.games * (1 - self.draws / (4 * self.games * no_draws))
        centre = (self.score + spread / 2) / (1 + spread)
        half = math.sqrt(spread * self.score * (1 - self.score) + spread**2 / 4) / (1 + spread)
        return max(0.0, centre - half), min(1.0, centre + half)

    def __add__(self, other: "Record") -> "Record":
        return Record(self.wins + other.wins, self.draws + other.draws, self.losses + other.losses)


@dataclasses.dataclass(frozen=True)
class MatchResult:
    """The games of a match, and its results for the first player.

    Attributes:
      first: name of the first player, who is player 0 in games of even number.
      second: name of the second player.
      rewards: of the first player, by game; above 0 is a win.
      actions: by game, from its start, its opening included.
      starts: NumPy leaves [n, ...]; games 2i and 2i + 1 begin at start i modulo n.
      accepted: the Elo difference that a sequential test accepted; None without a test, or if it stayed undecided.
      ends: by game, `resignation` where its loser gave it up, or why an external player forfeited it; None where the
        rules ended it.
      move_seconds: of the first and of the second player, those of each move; empty for players without a clock.
      opening_plies: of the actions of each game, the first ones, which were drawn at random.
    """

    first: str
    second: str
    rewards: tuple[float, ...]
    actions: tuple[tuple[int, ...], ...]
    starts: State = dataclasses.field(compare=False, repr=False)
    accepted: float | None = None
    ends: tuple[str | None, ...] = ()
    move_seconds: tuple[tuple[float, ...], tuple[float, ...]] = dataclasses.field(default=((), ()), compare=False)
    opening_plies: int = 0

    @property
    def plies(self) -> tuple[int, ...]:
        """The length of each game."""
        return tuple(len(actions) for actions in self.actions)

    @property
    def mean_length(self) -> float:
        """Plies per game."""
        return sum(self.plies) / len(self.plies)

    @property
    def num_different(self) -> int:
        """Games that differ in their moves or in who moved first; deterministic players repeat games."""
        return len({(actions, number % 2) for number, actions in enumerate(self.actions)})

    @property
    def moving_first(self) -> Record:
        """Games in which the first player was player 0."""
        return Record.of(self.rewards[::2])

    @property
    def moving_second(self) -> Record:
        """Games in which the first player was player 1."""
        return Record.of(self.rewards[1::2])

    @property
    def total(self) -> Record:
        """All games."""
        return self.moving_first + self.moving_second

    @property
    def forfeits(self) -> tuple[str | None, ...]:
        """By game, why an external player forfeited it; None where it was played out or resigned."""
        return tuple(map(forfeit_of, self.ends or [None] * len(self.rewards)))

    @property
    def num_forfeits(self) -> int:
        """Games that an external player forfeited."""
        return sum(forfeit is not None for forfeit in self.forfeits)

    @property
    def played_out(self) -> Record:
        """The games without a forfeit."""
        first, second = self.played_out_by_seat
        return first + second

    @property
    def played_out_by_seat(self) -> tuple[Record, Record]:
        """The games without a forfeit, with the first player moving first, and moving second."""
        games = list(zip(self.rewards, self.forfeits, strict=True))
        first, second = (Record.of(reward for reward, forfeit in games[seat::2] if forfeit is None) for seat in (0, 1))
        return first, second

    @property
    def games(self) -> int:
        return self.total.games

    @property
    def wins(self) -> int:
        return self.total.wins

    @property
    def draws(self) -> int:
        return self.total.draws

    @property
    def losses(self) -> int:
        return self.total.losses

    @property
    def score(self) -> float:
        """Points per game, 0..1."""
        return self.total.score

    @property
    def interval(self) -> tuple[float, float]:
        """95% interval of the score."""
        return self.total.interval


def forfeit_of(end: str | None) -> str | None:
    """Why an external player forfeited a game that ended so; None where it was played out or resigned."""
    return None if end == RESIGNATION else end
