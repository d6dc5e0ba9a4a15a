"""A rule that hands up other values than the mean's, in trees with one line of play, by hand."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from azjax.core.pytree import pytree_dataclass
from azjax.games.registry import make
from azjax.search import AlphaZero
from azjax.search.rules.puct import Puct

LINE = make("connect_four", columns=1, rows=12, in_a_row=4)  # one move each, and a draw at the end
VALUE = 0.8


@pytree_dataclass
class Halved(Puct):
    def backward(self, value, node, fold):
        return value / 2


@pytree_dataclass
class Constant(Puct):
    def backward(self, value, node, fold):
        return jnp.full_like(value, 0.25)


@dataclasses.dataclass(frozen=True)
class Steady:
    def __call__(self, params, key, states):
        return jnp.zeros((len(states.terminated), 1)), jnp.full(len(states.terminated), VALUE)


def halved(hyper, game):
    return Halved(jnp.float32(1.25), jnp.float32(0))


def constant(hyper, game):
    return Constant(jnp.float32(1.25), jnp.float32(0))


def after(plies):
    return LINE.from_text("1" * plies) if plies else LINE.init(jax.random.key(0))


def searched(rule, *states, num_simulations, **options):
    policy = AlphaZero(LINE, Steady(), num_simulations, rule=rule, **options)
    batch = jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)
    return policy(None, jax.random.key(0), batch)


def test_each_node_above_the_new_one_halves_once():
    result = searched(halved, after(0), num_simulations=2)
    # Of the root, of the first simulation, and of the second, which passes one more node.
    np.testing.assert_allclose(result.value, [(VALUE - VALUE / 2 + VALUE / 4) / 3], rtol=1e-6)


def test_a_longer_line_of_another_game_changes_nothing():
    states = after(0), after(11), after(9)
    together = searched(halved, *states, num_simulations=6)
    for row, state in enumerate(states):
        alone = searched(halved, state, num_simulations=6)
        np.testing.assert_array_equal(together.value[row], alone.value[0])
        np.testing.assert_array_equal(together.q_values[row], alone.q_values[0])


def test_a_node_hands_up_its_own_value_in_a_full_tree():
    result = searched(constant, after(0), num_simulations=6, max_nodes=3)
    below = np.asarray(result.tree.nodes.q)[2, 0]  # one visit as a new node, then those of simulations without a node
    visits = np.asarray(result.tree.visits)[2, 0]
    assert visits == 5
    np.testing.assert_allclose(below, (-VALUE - 0.25 * (visits - 1)) / visits, rtol=1e-6)
