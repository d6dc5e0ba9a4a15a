import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_run import SMALL

from azjax.games.registry import make
from azjax.networks import NetworkOutput
from azjax.training import Hyper, gate, init, ladder, make_iteration
from azjax.training.gate import make_match, through_gate
from azjax.training.ladder import make_ladder
from azjax.training.learner import Learner, SkippedUpdates


def _learner(weight):
    variables = {"params": jnp.float32(weight)}
    return Learner(variables, variables, (), SkippedUpdates(jnp.int32(0), jnp.zeros(2, jnp.uint32)))


def _run(scores, rounds=10, **hyper):
    """The gate on a network that is a number, to which each round adds 1 and whose score is the round's."""
    config = dataclasses.replace(SMALL, gate_games=2, gate_rounds=rounds)

    def learn(learner, key):
        variables = {"params": learner.variables["params"] + 1}
        return dataclasses.replace(learner, variables=variables), {
            "loss": variables["params"],
            "skipped_updates": jnp.float32(3),
        }

    def match(one, other, key):
        return jnp.asarray(scores, jnp.float32)[(one["params"] - other["params"]).astype(jnp.int32) - 1]

    learner, metrics = through_gate(learn, match, _learner(5), jax.random.key(0), config, Hyper(**hyper))
    return float(learner.variables["params"]), {name: float(value) for name, value in metrics.items()}


@pytest.mark.parametrize(
    ("scores", "rounds", "weight", "tried"),
    [
        ([0.5, 0.55, 0.9], 10, 7.0, 2),  # the second reaches the threshold
        ([0.5, 0.48, 0.46, 0.44, 0.6], 10, 10.0, 5),  # falls of at most 0.03 do not end it
        ([0.5, 0.46, 0.9], 10, 5.0, 2),  # a fall of 0.04 ends it and restores the old weights
        ([0.1, 0.9], 10, 7.0, 2),  # before the first round there is no score to fall from
        ([0.5, 0.51, 0.9], 2, 5.0, 2),  # no more rounds
    ],
)
def test_rounds_end_with_a_win_a_fall_or_the_last_one(scores, rounds, weight, tried):
    kept, metrics = _run(scores, rounds)
    assert kept == weight
    assert metrics["gate_rounds"] == tried
    assert metrics["gate_score"] == pytest.approx(scores[tried - 1])
    assert metrics["gate_accepted"] == (weight > 5)
    assert metrics["loss"] == 5 + tried
    assert metrics["skipped_updates"] == 3 * tried


@pytest.mark.parametrize("score", [0.1, 0.9])
def test_skipped_updates_count_also_where_the_old_network_stays(score):
    config = dataclasses.replace(SMALL, gate_games=2, gate_rounds=1)

    def skip(learner, key):
        skipped = SkippedUpdates(learner.skipped.in_a_row + 4, learner.skipped.key)
        return dataclasses.replace(learner, skipped=skipped), {"skipped_updates": jnp.float32(4)}

    learner = _learner(5)
    for _ in range(3):
        learner, _ = through_gate(skip, lambda *_: jnp.float32(score), learner, jax.random.key(0), config, Hyper())
    assert int(learner.skipped.in_a_row) == 12


class _Leftmost:
    """A network that plays the first legal action, or the last if its sign is negative."""

    def init(self, key, game):
        return {}

    def apply(self, variables, observations, train):
        batch = len(observations)
        logits = jnp.broadcast_to(-100 * variables["sign"] * jnp.arange(9.0), (batch, 9))
        return NetworkOutput(logits, jnp.zeros(batch)), variables


FIRST, LAST = {"sign": jnp.float32(1)}, {"sign": jnp.float32(-1)}


def test_a_match_counts_points_for_both_sides():
    """The lowest square against the highest in tic-tac-toe: whoever begins has a row with the third stone."""
    game = make("tictactoe")
    match = jax.jit(make_match(game, _Leftmost(), dataclasses.replace(SMALL, gate_games=6)))
    assert float(match(FIRST, LAST, jax.random.key(0))) == 0.5
    # Both leftmost: X has the squares 0, 2, 4 and 6 when the fourth of them completes a diagonal.
    assert float(match(FIRST, FIRST, jax.random.key(0))) == 0.5


@pytest.mark.parametrize("module", [gate, ladder])
def test_matches_are_played_to_the_end_where_self_play_is_truncated(module, monkeypatch):
    limits = []
    monkeypatch.setattr(module, "make_device_match", lambda *players, max_plies, **options: limits.append(max_plies))
    game, config = make("tictactoe"), dataclasses.replace(SMALL, truncate_at_ply=2, ladder_opponents=())
    if module is gate:
        make_match(game, config.make_network(game), config)
    else:
        make_ladder(game, config)
    assert limits == [9]


@pytest.mark.slow
def test_an_iteration_that_does_not_pass_the_gate_learns_nothing():
    game = make("connect2")
    config = dataclasses.replace(
        SMALL, gate_games=8, gate_rounds=2, hyper=Hyper(gate_threshold=1.0, gate_tolerance=0.0)
    )
    hyper = jax.tree.map(jnp.float32, config.hyper)
    before = jax.jit(lambda: init(game, config, 0, hyper))()
    after, metrics = jax.jit(make_iteration(game, config))(before, hyper)
    passed = bool(metrics["gate_accepted"])
    same = jax.tree.map(lambda a, b: bool(np.array_equal(a, b)), before.learner, after.learner)
    assert jax.tree.all(same) is not passed
    assert passed is (float(metrics["gate_score"]) >= 1)
