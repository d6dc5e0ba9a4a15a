"""What all policies have in common: what they refuse, gradients, and other settings of JAX."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest

import azjax
from azjax.core.errors import InputError
from azjax.search import AlphaZero, GumbelAlphaZero, SearchHyper, evaluators

GAME = azjax.make("tictactoe")
UNIFORM = evaluators.uniform(GAME)
STATES = jax.vmap(GAME.init)(jax.random.split(jax.random.key(0), 2))
POLICY = AlphaZero(GAME, UNIFORM, 4)


@pytest.mark.parametrize("key", [jax.random.split(jax.random.key(0), 3), jax.random.split(jax.random.PRNGKey(0), 3)])
def test_keys_of_another_batch_are_refused(key):
    with pytest.raises(InputError, match=r"key must be one key, or one for each of 2 states, got the shape \[3\]"):
        POLICY(None, key, STATES)


def test_numbers_of_another_batch_are_refused():
    with pytest.raises(
        InputError, match=r"c_puct must be one number, or one for each of 2 states, got the shape \[3\]"
    ):
        POLICY(None, jax.random.key(0), STATES, hyper=SearchHyper(c_puct=jnp.ones(3)))


def test_a_tree_in_which_no_step_fits_is_refused():
    with pytest.raises(InputError, match="max_nodes must be above leaves_per_step = 16, got 16"):
        AlphaZero(GAME, UNIFORM, 64, leaves_per_step=16, max_nodes=16)


@pytest.mark.parametrize("number", [0, 8.0])
def test_a_number_of_considered_actions_is_whole(number):
    with pytest.raises(InputError, match=f"max_num_considered_actions must be a whole number .*, got {number}"):
        GumbelAlphaZero(GAME, UNIFORM, 4, max_num_considered_actions=number)


def test_no_gradient_flows_through_a_search():
    def evaluator(params, key, states):
        batch = len(states.terminated)
        return params * jnp.ones((batch, 9)), jnp.tanh(params) * jnp.ones(batch)

    def loss(params):
        result = AlphaZero(GAME, evaluator, 4)(params, jax.random.key(0), STATES)
        return jnp.sum(result.policy * result.q_values) + 3 * params

    assert jax.grad(loss)(jnp.float32(0.5)) == 3


@pytest.mark.slow
def test_numbers_of_64_bits_change_nothing():
    """A program that enables them for its own work may search; evaluators may give them."""
    script = """
import jax, jax.numpy as jnp
import azjax
from azjax.games import random_legal_action
from azjax.search import AlphaZero, GumbelAlphaZero, Uct, evaluators

game = azjax.make("tictactoe")
states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), 2))


def wide(params, key, states):
    batch = len(states.terminated)
    return jnp.zeros((batch, 9), float), jnp.zeros(batch, float)


for draw in range(4):
    print(random_legal_action(game, jax.random.key(draw), game.init(jax.random.key(0))))
print(evaluators.random(game)(None, jax.random.key(1), states))
for policy in (
    AlphaZero(game, wide, 8, leaves_per_step=4, solver=True),
    AlphaZero(game, evaluators.random(game), 8),
    GumbelAlphaZero(game, evaluators.rollout(game), 8, solver=True),
    Uct(game, evaluators.rollout(game), 8),
):
    result = policy(None, jax.random.key(0), states, explore=True)
    types = {leaf.dtype.name for leaf in (result.policy, result.value, result.q_values, result.bounds)}
    print(types, result.action, result.visits, result.value, result.policy)
"""
    told = []
    for wide in ("0", "1"):
        environment = os.environ | {"JAX_ENABLE_X64": wide}
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=False
        )
        assert not done.stderr
        told.append(done.stdout)
    assert told[0] == told[1]
    assert told[0].count("{'float32'}") == 4
