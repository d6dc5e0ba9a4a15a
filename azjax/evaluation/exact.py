"""Exact measures of a player on a solved game: no games are sampled, all reachable positions are looked at.

Axis letters: `S` reachable positions, `K` slots of the compact table of legal actions, `A` actions, `L` plies.
A player's table of probabilities is float [S, K] by slot of the solution; see `tabulate`.
"""

import dataclasses
import math
from typing import Any

import chex
import jax
import numpy as np

from azjax.evaluation.players import Player, judge
from azjax.evaluation.positions import batches
from azjax.evaluation.solver import Solution

_TOLERANCE = 1e-3  # of a player's probabilities, which are float32


def tabulate(
    player: Player, solution: Solution, key: chex.PRNGKey, *, batch_size: int = 1024
) -> tuple[np.ndarray, np.ndarray]:
    """Asks a player about every position that is not the end.

    Args:
      player: the player; one that draws, such as a search with rollouts, is asked once.
      solution: of its game.
      key: consumed by the player.
      batch_size: positions asked at a time.

    Returns:
      probabilities: float32 [S, K]; 0 in holes and after the end.
      value: float32 [S]; for the side to move; 0 after the end.

    Raises:
      ValueError: probabilities that do not sum to one over the legal actions.
    """
    probabilities = np.zeros(solution.actions.shape, np.float32)
    values = np.zeros(solution.num_states, np.float32)
    asked = np.flatnonzero(~solution.terminated)
    states = jax.tree.map(lambda leaf: leaf[asked], solution.states)
    for number, (size, batch) in enumerate(batches(states, batch_size)):
        rows = asked[number * batch_size : number * batch_size + size]
        judgement = judge(player, jax.random.fold_in(key, number), batch)
        by_action, value = (np.asarray(x)[:size] for x in (judgement.probabilities, judgement.value))
        actions = solution.actions[rows]
        probabilities[rows] = np.where(actions >= 0, np.take_along_axis(by_action, actions.clip(0), axis=1), 0)
        values[rows] = value
    mass = probabilities[asked].sum(axis=1)
    wrong = ~((np.abs(mass - 1) < _TOLERANCE) & (probabilities[asked] >= 0).all(axis=1))
    if wrong.any():
        row = int(asked[np.argmax(wrong)])
        raise ValueError(
            f"{player.name} gives probability {mass[np.argmax(wrong)]} to the legal actions of position {row} of "
            f"{solution.game.name}, and it must be 1; {int(wrong.sum())} positions in all are wrong"
        )
    return probabilities, values


def random_table(solution: Solution) -> np.ndarray:
    """float64 [S, K]: uniform over the legal actions."""
    return _uniform(solution.children >= 0)


def optimal_table(solution: Solution) -> np.ndarray:
    """float64 [S, K]: uniform over the best actions."""
    return _uniform(solution.optimal_mask)


def _uniform(mask: np.ndarray) -> np.ndarray:
    return mask / np.maximum(mask.sum(axis=1, keepdims=True), 1)


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


def mistakes(solution: Solution, probabilities: np.ndarray) -> Mistakes:
    """Counts the mistakes of a player with these probabilities [S, K]."""
    running = ~solution.terminated
    worse = (solution.children >= 0) & ~solution.optimal_mask
    mass = np.where(worse, probabilities, 0).sum(axis=1, dtype=np.float64)
    own = np.zeros(solution.num_states, bool)
    for seat in (0, 1):
        own |= reachable_by(solution, probabilities, seat) & (solution.current_player == seat) & running
    return Mistakes(
        states=int(running.sum()),
        count=float(mass.sum()),
        states_by_ply=tuple(int(running[layer].sum()) for layer in solution.layers),
        count_by_ply=tuple(float(mass[layer].sum()) for layer in solution.layers),
        own_states=int(own.sum()),
        own_count=float(mass[own].sum()),
    )


def reachable_by(solution: Solution, probabilities: np.ndarray, seat: int) -> np.ndarray:
    """bool [S]: positions that occur when `seat` (0 or 1) plays moves of positive probability, the other any."""
    played = (solution.children >= 0) & ((probabilities > 0) | (solution.current_player != seat)[:, None])
    reached = np.zeros(solution.num_states, bool)
    reached[0] = True
    for layer in solution.layers:
        reached[solution.children[layer][played[layer] & reached[layer, None]]] = True
    return reached


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


def expected_outcome(solution: Solution, first_probabilities: np.ndarray, second_probabilities: np.ndarray) -> Outcome:
    """What player 0 gets, exactly, when it moves by one table [S, K] and player 1 by the other.

    The result of a game is the sign of the reward of its last move.
    """
    solution.check_results()
    first_moves = solution.current_player == 0
    weights = np.where(first_moves[:, None], first_probabilities, second_probabilities).astype(np.float64)
    # A float32 table sums to one but for rounding, which would add up along a game.
    weights /= np.maximum(weights.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    for_first = np.where(first_moves[:, None], solution.rewards, -solution.rewards)
    outcome = np.zeros((solution.num_states, 2))  # probabilities of a win and of a loss of player 0
    for layer in reversed(solution.layers):
        children = solution.children[layer]
        ends = solution.terminated[children]
        for column, result in enumerate((for_first[layer] > 0, for_first[layer] < 0)):
            then = np.where(ends, result, outcome[children, column])
            outcome[layer, column] = np.where(children >= 0, weights[layer] * then, 0).sum(axis=1)
    win, loss = (float(x) for x in outcome[0])
    return Outcome(win, max(0.0, 1 - win - loss), loss)


@dataclasses.dataclass(frozen=True)
class Versus:
    """A player's results against one opponent, moving first (as player 0) and second."""

    moving_first: Outcome
    moving_second: Outcome

    @property
    def alternating(self) -> Outcome:
        """Each half of the time."""
        return self.moving_first.mean(self.moving_second)


def versus(solution: Solution, probabilities: np.ndarray, opponent: np.ndarray) -> Versus:
    """Exact results of a player against an opponent, both given as tables [S, K]."""
    first = expected_outcome(solution, probabilities, opponent)
    second = expected_outcome(solution, opponent, probabilities)
    return Versus(first, Outcome(second.loss, second.draw, second.win))


@dataclasses.dataclass(frozen=True)
class ExactReport:
    """All that a solution tells about a player.

    Attributes:
      player: its name.
      game: its game.
      mistakes: moves that give value away.
      against_random: results against uniformly random moves.
      against_optimal: results against uniformly random best moves.
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
        for opponent, results in (("random", self.against_random), ("optimal", self.against_optimal)):
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


def exact_report(player: Player, solution: Solution, key: chex.PRNGKey, **options: Any) -> ExactReport:
    """Measures a player on all positions of a solved game.

    Args:
      player: the player.
      solution: of its game.
      key: consumed by the player.
      **options: of `tabulate`.
    """
    probabilities, values = tabulate(player, solution, key, **options)
    running = ~solution.terminated
    decided = running & (solution.values != 0)
    right = np.sign(values[decided]) == np.sign(solution.values[decided])
    error = np.abs(values[running] - solution.values[running]).mean(dtype=np.float64)
    return ExactReport(
        player=player.name,
        game=solution.game.name,
        mistakes=mistakes(solution, probabilities),
        against_random=versus(solution, probabilities, random_table(solution)),
        against_optimal=versus(solution, probabilities, optimal_table(solution)),
        value_sign_accuracy=math.nan if np.isnan(error) or not decided.any() else float(right.mean()),
        value_error=float(error),
    )
