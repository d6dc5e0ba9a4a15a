"""What a search finds in positions whose truth is known."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import azjax
from azjax.search import alphazero_policy, evaluators

SANTORINI = azjax.make("santorini", size=2)
# One of its four moves loses and the others win.
THREE_OF_FOUR_WIN = "23220010"
LOSING = "a2-b1^a2"


def visits_by_move(text, num_simulations, **options):
    state = SANTORINI.from_text(text)
    result = alphazero_policy(
        None,
        jax.random.key(0),
        jax.tree.map(lambda leaf: leaf[None], state),
        game=SANTORINI,
        evaluator=evaluators.uniform(SANTORINI),
        num_simulations=num_simulations,
        **options,
    )
    moves = np.flatnonzero(SANTORINI.legal_action_mask(state))
    return {SANTORINI.action_to_text(state, int(move)): int(result.visits[0, move]) for move in moves}, result


step, legal = jax.jit(SANTORINI.step), jax.jit(SANTORINI.legal_action_mask)


class ReferenceNode:
    """The search of the notebook that Santorini comes from: Q + c P sqrt(sum N / (1 + N)), all moves alike at first."""

    def __init__(self, state):
        self.state = state
        self.over = bool(state.terminated)
        self.moves = np.flatnonzero(legal(state)).tolist()
        self.visits, self.values = [0] * len(self.moves), [0.0] * len(self.moves)
        self.is_leaf = True

    @functools.cached_property
    def children(self):
        return [ReferenceNode(step(self.state, jnp.int32(move))) for move in self.moves]

    def value(self):
        """Of one simulation, seen by the player who moved here; each one adds a level below at the most."""
        if self.over:
            return float(self.state.rewards[1 - int(self.state.current_player)])
        if self.is_leaf:
            self.is_leaf = False
            return 0.0
        total, share = sum(self.visits), 1 / len(self.moves)
        scores = [q + share * math.sqrt(total / (n + 1)) for q, n in zip(self.values, self.visits, strict=True)]
        best = int(np.argmax(scores))
        value = self.children[best].value()
        self.visits[best] += 1
        self.values[best] += (value - self.values[best]) / self.visits[best]
        return -value


def test_the_notebooks_own_formula_gives_its_printed_shares():
    root = ReferenceNode(SANTORINI.from_text(THREE_OF_FOUR_WIN))
    for _ in range(1000):
        root.value()
    shares = sorted((round(100 * visits / sum(root.visits), 1) for visits in root.visits), reverse=True)
    assert shares == pytest.approx([33.3, 33.2, 32.3, 1.1], abs=0.31)


def test_a_losing_move_gets_less_than_a_hundredth_of_the_visits():
    visits, result = visits_by_move(THREE_OF_FOUR_WIN, 1000)
    assert sum(visits.values()) == 1000
    assert 0 < visits[LOSING] < 10
    assert result.value[0] > 0.98


def test_the_solver_proves_a_win_and_stops():
    visits, result = visits_by_move(THREE_OF_FOUR_WIN, 1000, solver=True)
    assert result.bounds[0].tolist() == [1, 1]
    assert result.value[0] == 1
    assert sum(visits.values()) < 10
    assert visits[LOSING] == 0
