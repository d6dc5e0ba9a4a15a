"""Exact measures of a player on a solved game: they cover all reachable positions, without sampling games.

Positions are visited in blocks, ply by ply, since tables by slot of all positions could be too large. Axis letters: `R`
rows of the solution, `K` slots of the compact table of legal actions, `B` positions of a block.
"""

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, PRNGKeyArray

from azjax.evaluation.player_tables import (
    PlayerTable,
    epsilon_optimal_table,
    optimal_table,
    random_table,
    tabulate,
)
from azjax.evaluation.players import Player
from azjax.evaluation.positions import HOLE
from azjax.evaluation.solution import Block, Progress, Solution, no_progress


@dataclasses.dataclass(frozen=True)
class Mistakes:
    """The positions in which a player's move loses value. Counts are expectations where the player draws its moves.

    Attributes:
      states: unfinished reachable positions.
      count: mistakes in these.
      states_by_ply: positions at each ply.
      count_by_ply: mistakes at each ply.
      own_states: positions with the player to move that can occur in its own games as player 0 or as player 1.
      own_count: mistakes in these.
    """

    states: int
    count: float
    states_by_ply: tuple[int, ...]
    count_by_ply: tuple[float, ...]
    own_states: int
    own_count: float

    @property
    def share(self) -> float:
        """Mistakes per position, 0..1."""
        return self.count / self.states

    @property
    def own_share(self) -> float:
        """Mistakes per position of the player's own games, 0..1."""
        return self.own_count / self.own_states if self.own_states else math.nan


def mistakes(solution: Solution, table: PlayerTable) -> Mistakes:
    """Counts the mistakes of a player."""
    return _measure(solution, table, no_progress)[0]


@dataclasses.dataclass
class _ValueErrors:
    """Sums over unfinished positions of the errors of a player's values."""

    error: float = 0.0
    decided: int = 0
    right_sign: int = 0

    def add(self, values: Float[np.ndarray, "B"], true: Float[np.ndarray, "B"]) -> None:
        decided = true != 0
        self.error += float(np.abs(values - true).sum(dtype=np.float64))
        self.decided += int(np.count_nonzero(decided))
        self.right_sign += int(np.count_nonzero(decided & (np.sign(values) == np.sign(true))))


def _measure(solution: Solution, table: PlayerTable, progress: Progress) -> tuple[Mistakes, _ValueErrors]:
    """Mistakes and errors of values, in one pass from the start to the end."""
    states_by_ply, count_by_ply = [0] * solution.num_plies, [0.0] * solution.num_plies
    own_states, own_count = 0, 0.0
    errors = _ValueErrors()
    reached = np.zeros((2, solution.num_rows), bool)  # positions of the games in which the player is player 0, 1
    reached[:, solution.unfinished(0)] = True
    for ply, block in _blocks(solution, progress, "mistakes"):
        probabilities, values = table(block)
        errors.add(values, block.values)
        mistaken = np.where(block.legal & ~block.best, probabilities, 0).sum(axis=1, dtype=np.float64)
        states_by_ply[ply] += len(mistaken)
        count_by_ply[ply] += float(mistaken.sum())
        for seat in (0, 1):
            own = reached[seat, block.rows] & (block.current_player == seat)
            own_states += int(np.count_nonzero(own))
            own_count += float(mistaken[own].sum())
            _reach(reached[seat], block, probabilities, seat)
    counts = Mistakes(
        states=sum(states_by_ply),
        count=sum(count_by_ply),
        states_by_ply=tuple(states_by_ply),
        count_by_ply=tuple(count_by_ply),
        own_states=own_states,
        own_count=own_count,
    )
    return counts, errors


def _reach(reached: Bool[np.ndarray, "R"], block: Block, probabilities: Float[np.ndarray, "B K"], seat: int) -> None:
    """Adds the positions that follow those of a block when `seat` plays moves of positive probability."""
    played = (probabilities > 0) | (block.current_player != seat)[:, None]
    reached[block.children[block.goes_on & played & reached[block.rows, None]]] = True


def _blocks(
    solution: Solution, progress: Progress, task: str, *, backward: bool = False
) -> Iterator[tuple[int, Block]]:
    """The blocks of a solution; calls `progress` after each."""
    done = 0
    for ply, block in solution.blocks(backward=backward):
        yield ply, block
        done += len(block.rows)
        progress(task, done, solution.num_unfinished)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """Probabilities of the results of a game for one player."""

    win: float
    draw: float
    loss: float

    @property
    def score(self) -> float:
        """Expected points: 1 for a win, 1/2 for a draw."""
        return self.win + self.draw / 2

    def mean(self, other: "Outcome") -> "Outcome":
        """The outcome of a game that is one of the two with equal probability."""
        return Outcome((self.win + other.win) / 2, (self.draw + other.draw) / 2, (self.loss + other.loss) / 2)


def expected_outcome(solution: Solution, first: PlayerTable, second: PlayerTable) -> Outcome:
    """The exact outcome for player 0 when it moves by the first table and player 1 by the second.

    The result of a game is the sign of the reward of its last move.
    """
    return _expected_outcomes(solution, [(first, second)], no_progress)[0]


def _expected_outcomes(
    solution: Solution, pairs: Sequence[tuple[PlayerTable, PlayerTable]], progress: Progress
) -> list[Outcome]:
    """`expected_outcome` of each pair of tables, in one pass from the end to the start."""
    solution.check_results()
    tables = {id(table): table for pair in pairs for table in pair}
    outcomes = np.zeros((solution.num_rows, len(pairs), 2))  # probabilities of a win and of a loss of player 0
    for _, block in _blocks(solution, progress, "expected scores", backward=True):
        # Arrays by legal action, grouped by position: with many slots, most of them are holes.
        parents, slots = np.nonzero(block.legal)
        first_moves = block.current_player[parents] == 0
        children, rewards = block.children[parents, slots], block.rewards[parents, slots]
        for_first = np.where(first_moves, rewards, -rewards)
        ends = np.stack([for_first > 0, for_first < 0], axis=1)
        then = np.where((children != HOLE)[:, None, None], outcomes[children], ends[:, None])
        probabilities = {name: _normalized(table(block)[0])[parents, slots] for name, table in tables.items()}
        weights = [np.where(first_moves, probabilities[id(a)], probabilities[id(b)]) for a, b in pairs]
        position_starts = np.flatnonzero(np.diff(parents, prepend=-1))
        outcomes[block.rows] = np.add.reduceat(np.stack(weights, axis=1)[..., None] * then, position_starts)
    # The start.
    return [Outcome(win, max(0.0, 1 - win - loss), loss) for win, loss in outcomes[solution.unfinished(0)[0]].tolist()]


def _normalized(probabilities: Float[np.ndarray, "B K"]) -> Float[np.ndarray, "B K"]:
    """In float64: the rounding of a float32 table would add up along a game."""
    normalized: np.ndarray = probabilities / probabilities.sum(axis=1, keepdims=True, dtype=np.float64)
    return normalized


@dataclasses.dataclass(frozen=True)
class Versus:
    """A player's results against one opponent, moving first (as player 0) and second."""

    moving_first: Outcome
    moving_second: Outcome

    @property
    def alternating(self) -> Outcome:
        """The mean of both seats."""
        return self.moving_first.mean(self.moving_second)


def versus(solution: Solution, table: PlayerTable, opponent: PlayerTable) -> Versus:
    """Exact results of a player against an opponent."""
    return _versus_all(solution, table, [opponent], no_progress)[0]


def _versus_all(
    solution: Solution, table: PlayerTable, opponents: Sequence[PlayerTable], progress: Progress
) -> list[Versus]:
    pairs = [pair for opponent in opponents for pair in ((table, opponent), (opponent, table))]
    outcomes = _expected_outcomes(solution, pairs, progress)
    return [
        Versus(first, Outcome(second.loss, second.draw, second.win))
        for first, second in zip(outcomes[::2], outcomes[1::2], strict=True)
    ]


@dataclasses.dataclass(frozen=True)
class ExactReport:
    """The exact measures of a player.

    Attributes:
      player: its name.
      game: its game.
      mistakes: moves that lose value.
      against_random: results against uniformly random moves.
      against_optimal: results against uniformly random best moves.
      against_epsilon_optimal: by epsilon, results against best play with that share of random moves.
      value_sign_accuracy: the share of the unfinished won and lost positions where the player's value has the right
        sign; NaN for a player without values.
      value_error: mean absolute error of the player's values over unfinished positions; NaN for a player without
        values.
    """

    player: str
    game: str
    mistakes: Mistakes
    against_random: Versus
    against_optimal: Versus
    against_epsilon_optimal: dict[float, Versus]
    value_sign_accuracy: float
    value_error: float

    def rows(self) -> list[tuple[str, str]]:
        """The label and the text of each row of a table."""
        counts = self.mistakes
        lines = [
            ("player", self.player),
            ("game", self.game),
            ("positions", f"{counts.states:,}"),
            ("mistakes", f"{_count(counts.count)} ({counts.share:.2%})"),
            ("positions of its own games", f"{counts.own_states:,}"),
            ("mistakes in its own games", f"{_count(counts.own_count)} ({counts.own_share:.2%})"),
        ]
        opponents = {"random": self.against_random, "optimal": self.against_optimal}
        opponents |= {f"{epsilon:g}-optimal": results for epsilon, results in self.against_epsilon_optimal.items()}
        for opponent, results in opponents.items():
            for seat in ("moving_first", "moving_second", "alternating"):
                outcome = getattr(results, seat)
                label = f"score against {opponent}, {seat.removeprefix('moving_')}"
                lines.append((label, f"{outcome.score:.4f}, loses {outcome.loss:.1%}"))
        if not math.isnan(self.value_error):
            lines.append(("sign of the value right", f"{self.value_sign_accuracy:.2%}"))
            lines.append(("mean error of the value", f"{self.value_error:.4f}"))
        return lines


def _count(number: float) -> str:
    return f"{number:,.0f}" if number == round(number) else f"{number:,.2f}"


def exact_report(
    player: Player,
    solution: Solution,
    key: PRNGKeyArray,
    *,
    epsilons: Sequence[float] = (),
    progress: Progress = no_progress,
    **options: Any,
) -> ExactReport:
    """Measures a player on all positions of a solved game.

    Args:
      player: the player.
      solution: of its game.
      key: consumed by the player.
      epsilons: of opponents, see `epsilon_optimal_table`.
      progress: see `Progress`.
      **options: of `tabulate`.

    Raises:
      InputError: an epsilon outside 0..1, or what `tabulate` refuses.
    """
    opponents = [random_table, optimal_table, *map(epsilon_optimal_table, epsilons)]
    table = tabulate(player, solution, key, **options)
    counts, errors = _measure(solution, table, progress)
    against_random, against_optimal, *against_others = _versus_all(solution, table, opponents, progress)
    known = not math.isnan(errors.error) and errors.decided
    return ExactReport(
        player=player.name,
        game=solution.game.name,
        mistakes=counts,
        against_random=against_random,
        against_optimal=against_optimal,
        against_epsilon_optimal=dict(zip(epsilons, against_others, strict=True)),
        value_sign_accuracy=errors.right_sign / errors.decided if known else math.nan,
        value_error=errors.error / counts.states,
    )
