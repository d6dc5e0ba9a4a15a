"""Exact measures of a player on a solved game: no games are sampled, all reachable positions are looked at.

Positions are walked over in blocks, ply by ply, so that a game may have many more of them than tables by slot could
hold. Axis letters: `R` rows of the solution, `K` slots of the compact table of legal actions, `n` positions of a
block, `A` actions, `G` pairs of players, `E` legal actions of a block.
"""

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

import chex
import jax
import numpy as np

from azjax.core.errors import InputError
from azjax.evaluation.players import Player, judge
from azjax.evaluation.positions import HOLE, batches
from azjax.evaluation.solution import Block, Progress, Solution, no_progress

_TOLERANCE = 1e-3  # of a player's probabilities, which are float32
_KEPT = 1 << 24  # probabilities that are kept rather than asked for again, at most


@runtime_checkable
class Table(Protocol):
    """What a player does in the positions of a solved game, and thinks of them."""

    def __call__(self, block: Block) -> tuple[np.ndarray, np.ndarray]:
        """Of unfinished positions: probabilities, float [n, K] by slot and 0 in holes, and values, float [n]."""


def tabulate(player: Player, solution: Solution, key: chex.PRNGKey, *, batch_size: int = 1024) -> Table:
    """Asks a player about positions of a solved game.

    Where the table of all its probabilities is small they are asked for at once and kept, else whenever they are
    needed, with the same answer each time.

    Args:
      player: the player; the draws of one that draws, such as a search with rollouts, are fixed by `key`.
      solution: of its game.
      key: consumed by the player.
      batch_size: positions asked at a time.

    Raises:
      ValueError: probabilities that do not sum to one over the legal actions; at once or when they are asked for.
    """
    table = _Asked(player, solution.game.name, key, batch_size)
    if solution.num_rows * solution.game.max_legal_actions > _KEPT:
        return table
    return _Kept(table, solution)


@dataclasses.dataclass(frozen=True)
class _Asked:
    player: Player
    game: str
    key: chex.PRNGKey
    batch_size: int

    def __call__(self, block: Block) -> tuple[np.ndarray, np.ndarray]:
        key = jax.random.fold_in(self.key, int(block.rows[0]))
        parts = []
        for number, (size, states) in enumerate(batches(block.states, self.batch_size)):
            judgement = judge(self.player, jax.random.fold_in(key, number), states)
            parts.append([np.asarray(x)[:size] for x in (judgement.probabilities, judgement.value)])
        by_action, values = (np.concatenate(part) for part in zip(*parts, strict=True))
        probabilities = np.where(block.legal, np.take_along_axis(by_action, block.actions.clip(0), axis=1), 0)
        mass = probabilities.sum(axis=1)
        wrong = ~((np.abs(mass - 1) < _TOLERANCE) & (probabilities >= 0).all(axis=1))
        if wrong.any():
            first = int(np.argmax(wrong))
            raise InputError(
                f"{self.player.name} gives probability {mass[first]} to the legal actions of position "
                f"{block.rows[first]} of {self.game}, and it must be 1; {int(wrong.sum())} of {len(wrong)} positions "
                "are wrong"
            )
        return probabilities, values


class _Kept:
    """Answers about all positions: float32 [R, K] and [R]."""

    def __init__(self, table: Table, solution: Solution):
        blocks = [block for _, block in solution.blocks()]
        everything = jax.tree.map(lambda *leaves: np.concatenate(leaves), *blocks)
        self._probabilities = np.zeros((solution.num_rows, solution.game.max_legal_actions), np.float32)
        self._values = np.zeros(solution.num_rows, np.float32)
        self._probabilities[everything.rows], self._values[everything.rows] = table(everything)

    def __call__(self, block: Block) -> tuple[np.ndarray, np.ndarray]:
        return self._probabilities[block.rows], self._values[block.rows]


def random_table(block: Block) -> tuple[np.ndarray, np.ndarray]:
    """The `Table` of uniform play over the legal actions; it has no values."""
    return _uniform(block.legal), np.full(len(block.rows), np.nan)


def optimal_table(block: Block) -> tuple[np.ndarray, np.ndarray]:
    """The `Table` of uniform play over the best actions."""
    return _uniform(block.best), block.values


def epsilon_optimal_table(epsilon: float) -> Table:
    """The `Table` of best play that makes a random legal move instead with probability `epsilon`.

    Raises:
      ValueError: epsilon outside 0..1.
    """
    if not 0 <= epsilon <= 1:
        raise InputError(f"epsilon must be 0..1, got {epsilon}")

    def table(block: Block) -> tuple[np.ndarray, np.ndarray]:
        return (1 - epsilon) * _uniform(block.best) + epsilon * _uniform(block.legal), block.values

    return table


def _uniform(mask: np.ndarray) -> np.ndarray:
    return mask / mask.sum(axis=1, keepdims=True)


@dataclasses.dataclass(frozen=True)
class Mistakes:
    """How often a player moves to a worse value than the position has. Numbers are expected ones where it draws.

    Attributes:
      states: reachable positions that are not the end.
      count: of them, those where it makes a mistake.
      states_by_ply: int, one a ply.
      count_by_ply: float, one a ply.
      own_states: those at which the player is to move that occur in its own games, whatever the opponent plays, as
        player 0 or as player 1.
      own_count: of them, those where it makes a mistake.
    """

    states: int
    count: float
    states_by_ply: tuple[int, ...]
    count_by_ply: tuple[float, ...]
    own_states: int
    own_count: float

    @property
    def share(self) -> float:
        """Mistakes a position, 0..1."""
        return self.count / self.states

    @property
    def own_share(self) -> float:
        """Mistakes a position of the player's own games, 0..1."""
        return self.own_count / self.own_states if self.own_states else math.nan


def mistakes(solution: Solution, table: Table) -> Mistakes:
    """Counts the mistakes of a player."""
    return _look_at_all(solution, table, no_progress)[0]


@dataclasses.dataclass
class _Values:
    """Sums over unfinished positions: how far a player's values are from the true ones."""

    error: float = 0.0
    decided: int = 0
    right_sign: int = 0

    def add(self, values: np.ndarray, true: np.ndarray) -> None:
        decided = true != 0
        self.error += float(np.abs(values - true).sum(dtype=np.float64))
        self.decided += int(np.count_nonzero(decided))
        self.right_sign += int(np.count_nonzero(decided & (np.sign(values) == true)))


def _look_at_all(solution: Solution, table: Table, progress: Progress) -> tuple[Mistakes, _Values]:
    """One walk from the start to the end."""
    states_by_ply, count_by_ply = [0] * solution.num_plies, [0.0] * solution.num_plies
    own_states, own_count = 0, 0.0
    sums = _Values()
    reached = _starts(solution, 2)
    for ply, block in _told(solution, progress, "mistakes"):
        probabilities, values = table(block)
        sums.add(values, block.values)
        mass = np.where(block.legal & ~block.best, probabilities, 0).sum(axis=1, dtype=np.float64)
        states_by_ply[ply] += len(mass)
        count_by_ply[ply] += float(mass.sum())
        for seat in (0, 1):
            own = reached[seat, block.rows] & (block.current_player == seat)
            own_states += int(np.count_nonzero(own))
            own_count += float(mass[own].sum())
            _reach(reached[seat], block, probabilities, seat)
    counts = Mistakes(
        states=sum(states_by_ply),
        count=sum(count_by_ply),
        states_by_ply=tuple(states_by_ply),
        count_by_ply=tuple(count_by_ply),
        own_states=own_states,
        own_count=own_count,
    )
    return counts, sums


def reachable_by(solution: Solution, table: Table, seat: int) -> np.ndarray:
    """bool [R]: unfinished positions that occur when `seat` (0 or 1) plays by the table, the other any moves."""
    (reached,) = _starts(solution, 1)
    for _, block in solution.blocks():
        _reach(reached, block, table(block)[0], seat)
    return reached


def _starts(solution: Solution, number: int) -> np.ndarray:
    """bool [number, R]: the start of the game alone."""
    reached = np.zeros((number, solution.num_rows), bool)
    reached[:, solution.unfinished(0)] = True
    return reached


def _reach(reached: np.ndarray, block: Block, probabilities: np.ndarray, seat: int) -> None:
    """Adds to bool [R] what follows the positions of a block when `seat` plays moves of positive probability."""
    played = (probabilities > 0) | (block.current_player != seat)[:, None]
    reached[block.children[block.goes_on & played & reached[block.rows, None]]] = True


def _told(solution: Solution, progress: Progress, what: str, *, backward: bool = False) -> Iterator[tuple[int, Block]]:
    """The blocks of a solution; `progress` is told after each."""
    done = 0
    for ply, block in solution.blocks(backward=backward):
        yield ply, block
        done += len(block.rows)
        progress(what, done, solution.num_unfinished)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """Probabilities of the results of a game, as one player sees them; the score is a draw's half and a win's whole."""

    win: float
    draw: float
    loss: float

    @property
    def score(self) -> float:
        """Expected points: 1 for a win, 1/2 for a draw."""
        return self.win + self.draw / 2

    def mean(self, other: "Outcome") -> "Outcome":
        """One game of each."""
        return Outcome((self.win + other.win) / 2, (self.draw + other.draw) / 2, (self.loss + other.loss) / 2)


def expected_outcome(solution: Solution, first: Table, second: Table) -> Outcome:
    """What player 0 gets, exactly, when it moves by one table and player 1 by the other.

    The result of a game is the sign of the reward of its last move.
    """
    return _expected_outcomes(solution, [(first, second)], no_progress)[0]


def _expected_outcomes(solution: Solution, pairs: Sequence[tuple[Table, Table]], progress: Progress) -> list[Outcome]:
    """`expected_outcome` of each pair of tables, in one walk from the end to the start."""
    solution.check_results()
    tables = {id(table): table for pair in pairs for table in pair}
    outcomes = np.zeros((solution.num_rows, len(pairs), 2))  # probabilities of a win and of a loss of player 0
    for _, block in _told(solution, progress, "expected scores", backward=True):
        # By legal action, [E], those of one position in a row: of many slots most are holes.
        parents, slots = np.nonzero(block.legal)
        first_moves = block.current_player[parents] == 0
        children, rewards = block.children[parents, slots], block.rewards[parents, slots]
        for_first = np.where(first_moves, rewards, -rewards)
        ends = np.stack([for_first > 0, for_first < 0], axis=1)
        then = np.where((children != HOLE)[:, None, None], outcomes[children], ends[:, None])
        probabilities = {name: _normalised(table(block)[0])[parents, slots] for name, table in tables.items()}
        weights = [np.where(first_moves, probabilities[id(a)], probabilities[id(b)]) for a, b in pairs]
        position_starts = np.flatnonzero(np.diff(parents, prepend=-1))
        outcomes[block.rows] = np.add.reduceat(np.stack(weights, axis=1)[..., None] * then, position_starts)
    # The start.
    return [Outcome(win, max(0.0, 1 - win - loss), loss) for win, loss in outcomes[solution.unfinished(0)[0]].tolist()]


def _normalised(probabilities: np.ndarray) -> np.ndarray:
    """float64: a float32 table sums to one but for rounding, which would add up along a game."""
    return probabilities / probabilities.sum(axis=1, keepdims=True, dtype=np.float64)


@dataclasses.dataclass(frozen=True)
class Versus:
    """A player's results against one opponent, moving first (as player 0) and second."""

    moving_first: Outcome
    moving_second: Outcome

    @property
    def alternating(self) -> Outcome:
        """Each half of the time."""
        return self.moving_first.mean(self.moving_second)


def versus(solution: Solution, table: Table, opponent: Table) -> Versus:
    """Exact results of a player against an opponent."""
    return _versus_all(solution, table, [opponent], no_progress)[0]


def _versus_all(solution: Solution, table: Table, opponents: Sequence[Table], progress: Progress) -> list[Versus]:
    pairs = [pair for opponent in opponents for pair in ((table, opponent), (opponent, table))]
    found = _expected_outcomes(solution, pairs, progress)
    return [
        Versus(first, Outcome(second.loss, second.draw, second.win))
        for first, second in zip(found[::2], found[1::2], strict=True)
    ]


@dataclasses.dataclass(frozen=True)
class ExactReport:
    """All that a solution tells about a player.

    Attributes:
      player: its name.
      game: its game.
      mistakes: moves that give value away.
      against_random: results against uniformly random moves.
      against_optimal: results against uniformly random best moves.
      against_epsilon_optimal: by epsilon, results against best play that makes so many random moves.
      value_sign_accuracy: of the unfinished positions that are won or lost, the share where the player's value has
        the right sign; NaN for a player without values.
      value_error: mean absolute difference of the player's values from the true ones over unfinished positions; NaN
        for a player without values.
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
        """Label and text of each line of a table."""
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
    key: chex.PRNGKey,
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
      epsilons: of opponents who play best but for so many random moves, see `epsilon_optimal_table`.
      progress: told how far it is.
      **options: of `tabulate`.

    Raises:
      ValueError: an epsilon outside 0..1.
    """
    opponents = [random_table, optimal_table, *map(epsilon_optimal_table, epsilons)]
    table = tabulate(player, solution, key, **options)
    counts, values = _look_at_all(solution, table, progress)
    against_random, against_optimal, *against_others = _versus_all(solution, table, opponents, progress)
    known = not math.isnan(values.error) and values.decided
    return ExactReport(
        player=player.name,
        game=solution.game.name,
        mistakes=counts,
        against_random=against_random,
        against_optimal=against_optimal,
        against_epsilon_optimal=dict(zip(epsilons, against_others, strict=True)),
        value_sign_accuracy=values.right_sign / values.decided if known else math.nan,
        value_error=values.error / counts.states,
    )
