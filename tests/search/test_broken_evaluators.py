"""Searches with evaluators that give what no network should: they end with legal actions and finite numbers."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.games.game import Game
from azjax.games.mnk import Mnk
from azjax.games.registry import make
from azjax.search import AlphaZero, GumbelAlphaZero, Uct, evaluators
from azjax.search.rules import rule_of

GAME = make("tictactoe")
BATCH, SIMULATIONS = 8, 8
NAN, INF = np.nan, np.inf
FAULTS = [  # the value and the logit that are given, and the share of the positions and actions that get them
    (NAN, NAN, 1.0),
    (NAN, NAN, 0.4),
    (INF, INF, 1.0),
    (INF, INF, 0.4),
    (-INF, -INF, 1.0),
    (-INF, -INF, 0.4),
    (5.0, 1e38, 0.4),
    (NAN, INF, 0.2),
]


@dataclasses.dataclass(frozen=True)
class Faulty:
    """Random priors and values, some of them replaced by those of `params`."""

    game: Game

    def __call__(self, params, key, states):
        value, logit, share = params
        logits, values = evaluators.random(self.game)(None, key, states)
        value_key, logit_key = jax.random.split(key)
        faulty = jax.random.uniform(logit_key, logits.shape) < share
        return jnp.where(faulty, logit, logits), jnp.where(
            jax.random.uniform(value_key, values.shape) < share, value, values
        )


def alphazero(rule, **options):
    return AlphaZero(GAME, Faulty(GAME), SIMULATIONS, rule=rule_of(rule), **options)


POLICIES = {
    "puct": alphazero("puct"),
    "gumbel": GumbelAlphaZero(GAME, Faulty(GAME), SIMULATIONS),
    "uct": Uct(GAME, Faulty(GAME), SIMULATIONS),
}
SLOW_POLICIES = {
    "puct, solver, leaves": alphazero("puct", solver=True, leaves_per_step=4),
    "variance_scaled": alphazero("variance_scaled"),
    "regularized_policy": alphazero("regularized_policy"),
    "relative_entropy": alphazero("relative_entropy"),
    "gumbel, solver, leaves": GumbelAlphaZero(GAME, Faulty(GAME), SIMULATIONS, 4, solver=True),
    "uct, solver, leaves": Uct(GAME, Faulty(GAME), SIMULATIONS, 4, solver=True),
}


@pytest.fixture(scope="module")
def states():
    """Positions after 0 to 3 random plies."""
    states = jax.vmap(GAME.init)(jax.random.split(jax.random.key(0), BATCH))
    for ply in range(3):
        bits = jax.random.bits(jax.random.key(ply), (BATCH,))
        following = jax.vmap(GAME.step)(states, jax.vmap(GAME.sample_legal_action)(states, bits))
        plays = jnp.arange(BATCH) % 4 > ply
        states = jax.tree.map(
            lambda new, old: jnp.where(plays.reshape(-1, *[1] * (new.ndim - 1)), new, old), following, states
        )
    return states


@pytest.mark.parametrize("name", [*POLICIES, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW_POLICIES)])
def test_a_search_ends_with_legal_actions_and_finite_numbers(states, name, record_property):
    record_property("tries", len(FAULTS))
    policy, legal = (POLICIES | SLOW_POLICIES)[name], np.asarray(jax.vmap(GAME.legal_action_mask)(states))
    for number, fault in enumerate(FAULTS):
        result = policy(tuple(map(jnp.float32, fault)), jax.random.key(number), states, explore=True)
        assert legal[np.arange(BATCH), np.asarray(result.action)].all(), fault
        assert not np.asarray(result.policy)[~legal].any(), fault
        np.testing.assert_allclose(np.asarray(result.policy).sum(axis=1), 1, atol=1e-4, err_msg=str(fault))
        assert not np.asarray(result.visits)[~legal].any(), fault
        assert (np.abs(np.asarray(result.value)) <= 1 + 1e-5).all(), fault
        if not policy.solver:
            assert (np.asarray(result.visits).sum(axis=1) == SIMULATIONS).all(), fault


class Stuck(Mnk):
    """Games that never go on."""

    def step(self, state, action):
        return dataclasses.replace(super().step(state, action), terminated=jnp.bool_(False), stones=state.stones)


def test_rollouts_of_games_that_never_end_count_as_nothing():
    game = Stuck(3, 3, 3)
    states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), 2))
    _, value = jax.jit(evaluators.rollout(game))(None, jax.random.key(0), states)
    assert value.tolist() == [0, 0]
