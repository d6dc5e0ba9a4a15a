"""Self-play with the options of its search."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_run import SMALL

from azjax.games.game import make
from azjax.training import init
from azjax.training.self_play import self_play


def _play(game, config):
    """The steps of one iteration of self-play, on the host."""

    @jax.jit
    def play():
        hyper = jax.tree.map(jnp.float32, config.hyper)
        state = init(game, config, 0, hyper)
        network = config.make_network()
        return self_play(game, network, config, state.variables, hyper, jax.random.key(1), state.games)[1]

    return jax.device_get(play())


def test_a_reused_tree_adds_the_visits_below_the_move_and_a_new_game_begins_anew():
    game = make("tictactoe")
    config = dataclasses.replace(SMALL, num_simulations=6, steps_per_iteration=12, replay_size=128, reuse_tree=True)
    steps = _play(game, config)
    boards = np.asarray(jax.vmap(jax.vmap(game.observe))(steps.states)).reshape(12, 4, 9, -1).any(axis=3)
    totals = np.full(4, 6)
    reused = 0
    for ply in range(12):
        visits = steps.policy[ply] * totals[:, None]
        # The policy is made of whole visits, as many as the rule says.
        np.testing.assert_allclose(visits, np.round(visits), atol=1e-4)
        np.testing.assert_allclose(visits.sum(axis=1), totals, rtol=1e-5)
        if ply == 11:
            break
        action = np.argmax(boards[ply + 1] & ~boards[ply], axis=1)
        # One visit of the child was its own evaluation, the others went on below it.
        below = np.round(visits[np.arange(4), action]).astype(int) - 1
        reused += (~steps.ended[ply] & (below > 0)).sum()
        totals = 6 + np.where(steps.ended[ply], 0, np.maximum(below, 0))
    assert steps.ended[:11].sum() >= 4
    assert reused >= 4


@pytest.mark.slow
def test_the_solver_gives_all_of_the_policy_to_the_move_that_it_proved():
    game = make("tictactoe")
    # X has one move that wins, on c3.
    config = dataclasses.replace(SMALL, num_simulations=32, steps_per_iteration=1, start_positions=("XX_OO____",))
    steps = _play(game, dataclasses.replace(config, solver=True))
    np.testing.assert_array_equal(steps.policy, np.broadcast_to(np.arange(9) == 2, (1, 4, 9)))
    np.testing.assert_array_equal(steps.reward, 1)
