"""Positions of the replay that are searched again."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_run import SMALL

from azjax.games.registry import make
from azjax.training.reanalysis import _draw_row, reanalyze
from azjax.training.replay import new_replay

GAME = make("tictactoe")
CONFIG = dataclasses.replace(SMALL, num_games=2, num_simulations=32, solver=True, reanalyzed_steps=3, replay_size=64)
WON = "XX_OO____"  # for X, who wins on c3


def replay_of(texts, ready):
    """A replay of two columns with these positions in both."""
    replay = new_replay(GAME, jax.vmap(GAME.init)(jax.random.split(jax.random.key(0), 2)), len(texts))
    states = jax.tree.map(lambda *leaves: jnp.stack(leaves), *map(GAME.from_text, texts))
    states = jax.tree.map(lambda leaf: jnp.repeat(leaf[:, None], 2, axis=1), states)
    steps = dataclasses.replace(replay.steps, states=states, policy=jnp.full((len(texts), 2, 9), 1 / 9))
    return dataclasses.replace(replay, steps=steps, ready=jnp.asarray(ready))


def reanalyzed(config, replay):
    network, hyper = config.make_network(GAME), jax.tree.map(jnp.float32, config.hyper)
    variables = network.init(jax.random.key(0), GAME)
    run = jax.jit(lambda replay: reanalyze(GAME, network, config, variables, hyper, jax.random.key(1), replay))
    return jax.device_get(run(replay))


def test_a_ready_position_gets_the_policy_and_the_value_of_a_new_search():
    replay = replay_of([WON, "X________", "XO_______"], [[True, False], [False, False], [False, False]])
    after = reanalyzed(CONFIG, replay)
    np.testing.assert_array_equal(after.steps.policy[0, 0], np.arange(9) == 2)
    assert after.steps.value[0, 0] == 1
    assert after.steps.proven[0, 0]
    # The others are as they were, also in the column without a ready position.
    changed = np.zeros((3, 2), bool)
    changed[0, 0] = True
    for name in ("policy", "value", "proven"):
        before, now = np.asarray(getattr(replay.steps, name)), getattr(after.steps, name)
        np.testing.assert_array_equal(now[~changed], before[~changed])
    np.testing.assert_array_equal(after.outcome, replay.outcome)


def test_a_proof_stays_that_the_new_search_does_not_find():
    replay = replay_of(["X________"], [[True, True]])
    steps = dataclasses.replace(
        replay.steps,
        proven=jnp.array([[True, False]]),
        value=jnp.array([[-1.0, -1.0]]),
        trace=jnp.full((1, 2), 0.9),
        surprise=jnp.zeros((1, 2)),
    )
    after = reanalyzed(CONFIG, dataclasses.replace(replay, steps=steps)).steps
    assert after.proven.tolist() == [[True, False]]
    assert after.value[0, 0] == -1
    assert after.value[0, 1] > -1
    np.testing.assert_allclose(after.policy[0, 0], 1 / 9)
    assert after.surprise[0, 0] == 0
    assert after.surprise[0, 1] > 0


@pytest.mark.slow
def test_where_values_count_a_new_proof_cuts_what_comes_after_it():
    replay = replay_of([WON], [[True, True]])
    replay = dataclasses.replace(replay, steps=dataclasses.replace(replay.steps, trace=jnp.full((1, 2), 0.9)))
    for td_lambda, trace in ((0.9, 0.0), (1.0, 0.9)):
        config = CONFIG.replace(td_lambda=td_lambda)
        np.testing.assert_allclose(reanalyzed(config, replay).steps.trace, trace, rtol=1e-6)


def test_every_ready_position_of_a_column_is_drawn():
    texts = [WON, "OO_XX____", "XX_OO____", "X________"]
    replay = replay_of(texts, [[True, True], [True, True], [True, True], [False, False]])
    after = reanalyzed(dataclasses.replace(CONFIG, reanalyzed_steps=24), replay)
    assert after.steps.proven[:3].all()
    assert not after.steps.proven[3].any()


def test_without_steps_the_replay_is_the_same():
    replay = replay_of([WON], [[True, True]])
    config = dataclasses.replace(CONFIG, reanalyzed_steps=0)
    assert reanalyze(GAME, config.make_network(GAME), config, {}, config.hyper, jax.random.key(0), replay) is replay


def test_the_ready_rows_of_a_column_are_drawn_evenly():
    """3,000 draws from 3 rows: each has 1,000, with the standard deviation sqrt(3000 * 1/3 * 2/3) = 25.8."""
    ready_so_far = jnp.cumsum(jnp.array([False, True, False, True, True]), dtype=jnp.int32)
    keys = jax.random.split(jax.random.key(0), 3000)
    rows = jax.jit(jax.vmap(_draw_row, in_axes=(0, None)))(keys, ready_so_far)
    counts = np.bincount(rows, minlength=5)
    assert counts[[0, 2]].tolist() == [0, 0]
    np.testing.assert_allclose(counts[[1, 3, 4]], 1000, rtol=0, atol=5 * 25.8)
