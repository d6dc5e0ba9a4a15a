"""Games that begin at positions of the replay."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_run import SMALL

from azjax.games.protocols import earlier_positions, without_history
from azjax.games.registry import make
from azjax.training import init, make_iteration
from azjax.training.replay import new_replay
from azjax.training.restarts import begin_games, draw_restarts

GAME = make("tictactoe")
CONFIG = dataclasses.replace(SMALL, num_games=4, steps_per_iteration=8, restart_candidates=1, replay_size=256)


def hyper_of(config, **changes):
    return jax.tree.map(jnp.float32, config.replace(**changes).hyper)


def replay_of(texts, outcomes, values):
    """A replay whose ready positions are these, in the first rows of the first column."""
    replay = new_replay(GAME, jax.vmap(GAME.init)(jax.random.split(jax.random.key(0), 4)), 32)
    states = jax.tree.map(lambda *leaves: jnp.stack(leaves), *map(GAME.from_text, texts))
    rows = slice(0, len(texts))
    steps = dataclasses.replace(
        replay.steps,
        states=jax.tree.map(lambda ring, leaf: ring.at[rows, 0].set(leaf), replay.steps.states, states),
        value=replay.steps.value.at[rows, 0].set(jnp.array(values)),
    )
    outcome = replay.outcome.at[rows, 0].set(jnp.array(outcomes))
    return dataclasses.replace(replay, steps=steps, outcome=outcome, ready=replay.ready.at[rows, 0].set(True))


def texts_of(restarts):
    states = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), restarts.states)
    return [GAME.to_text(jax.tree.map(lambda leaf, i=i: leaf[i], states)) for i in range(len(states.terminated))]


TEXTS = ["X________", "XO_______", "XOX______"]
REPLAY = {"texts": TEXTS, "outcomes": [1.0, -1.0, 1.0], "values": [0.9, 0.8, 0.2]}  # the second is the most wrong


def test_without_candidates_no_game_begins_in_the_replay():
    config = dataclasses.replace(CONFIG, restart_candidates=0)
    assert draw_restarts(config, hyper_of(config), jax.random.key(0), replay_of(**REPLAY)) is None


def test_one_candidate_is_any_ready_position():
    config = dataclasses.replace(CONFIG, num_games=64)
    found = texts_of(draw_restarts(config, hyper_of(config), jax.random.key(0), replay_of(**REPLAY)))
    counts = [found.count(text) / len(found) for text in TEXTS]
    np.testing.assert_allclose(counts, 1 / 3, atol=0.08)


def test_of_several_candidates_the_one_is_taken_whose_value_was_most_wrong():
    """Of 3 that are drawn, the position of regret 1.8 is taken unless it is missing: 1 - (2/3)^3; of 0.1, (1/3)^3."""
    config = dataclasses.replace(CONFIG, num_games=64, restart_candidates=3)
    found = texts_of(draw_restarts(config, hyper_of(config), jax.random.key(0), replay_of(**REPLAY)))
    counts = [found.count(text) / len(found) for text in TEXTS]
    np.testing.assert_allclose(counts, [1 / 27, 19 / 27, 7 / 27], atol=0.06)


@pytest.mark.slow_except("0.25")
@pytest.mark.parametrize("fraction", [0.0, 0.25, 1.0])
def test_the_fraction_of_the_games_is_chosen(fraction):
    config = dataclasses.replace(CONFIG, num_games=512)
    hyper = hyper_of(config, restart_fraction=fraction)
    chosen = draw_restarts(config, hyper, jax.random.key(0), replay_of(**REPLAY)).chosen
    assert chosen.shape == (8, 512)
    assert float(chosen.mean()) == pytest.approx(fraction, abs=0.03)


def test_an_empty_replay_chooses_none():
    replay = new_replay(GAME, jax.vmap(GAME.init)(jax.random.split(jax.random.key(0), 4)), 32)
    restarts = draw_restarts(CONFIG, hyper_of(CONFIG, restart_fraction=1.0), jax.random.key(0), replay)
    assert not np.asarray(restarts.chosen).any()


def test_a_game_begins_with_an_empty_history_and_without_a_reward():
    game = make("brandub")
    start = game.init(jax.random.key(0))
    state = jax.jit(game.step)(start, int(np.flatnonzero(game.legal_action_mask(start))[0]))
    alone = dataclasses.replace(without_history(game, state), rewards=jnp.array([1.0, -1.0]))
    begun = jax.tree.map(lambda leaf: leaf[0], begin_games(game, jax.tree.map(lambda leaf: leaf[None], alone)))
    assert begun.rewards.tolist() == [0, 0]
    past = earlier_positions(game, begun)
    assert past.contains(game.position_key(state))
    assert not past.contains(game.position_key(start))
    assert jax.tree.structure(begun) == jax.tree.structure(state)


@pytest.mark.slow
def test_games_of_a_run_begin_in_the_replay_once_there_is_one():
    """A new game has an empty board; one that begins in the replay may have stones on it."""
    config = dataclasses.replace(CONFIG, restart_candidates=4)

    def first_boards(fraction):
        hyper = hyper_of(config, restart_fraction=fraction)
        state = jax.jit(lambda: init(GAME, config, 0, hyper))()
        iterate = jax.jit(make_iteration(GAME, config))
        for _ in range(4):
            state, _ = iterate(state, hyper)
        steps = jax.device_get(state.replay.steps)
        stones = np.asarray(jax.vmap(jax.vmap(GAME.observe))(steps.states)).sum(axis=(2, 3, 4))
        after_an_end = np.zeros_like(steps.ended[:32])
        after_an_end[1:] = steps.ended[:31]
        return stones[:32][after_an_end]

    assert (first_boards(0.0) == 0).all()
    assert (first_boards(1.0)[8:] > 0).any()
