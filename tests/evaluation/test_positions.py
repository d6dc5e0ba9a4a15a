import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import azjax.games
from azjax.evaluation import positions
from azjax.evaluation.solver import solve

TICTACTOE = azjax.games.make("tictactoe")


def test_a_packed_state_is_unpacked_leaf_by_leaf(solution_of):
    solution = solution_of("tictactoe")
    words = np.asarray(positions.pack(solution.states))
    back = positions.unpack(TICTACTOE, words)
    for leaf, again in zip(jax.tree.leaves(solution.states), jax.tree.leaves(back), strict=True):
        assert leaf.dtype == again.dtype
        np.testing.assert_array_equal(leaf, again)


def test_the_key_depends_on_every_leaf_but_the_rewards():
    state = jax.tree.map(lambda leaf: leaf[None], TICTACTOE.init(jax.random.key(0)))
    empty, stone = state.stones[0], jnp.array([1], jnp.uint32)

    def key(**changes):
        return int(positions.join(*positions.keys(positions.pack(dataclasses.replace(state, **changes))))[0])

    assert key() == key(rewards=jnp.array([[1.0, -1.0]]))
    others = [
        key(),
        key(stones=((stone,), empty)),
        key(stones=(empty, (stone,))),
        key(current_player=jnp.array([1])),
        key(terminated=jnp.array([True])),
    ]
    assert len(set(others)) == len(others)


def test_keys_of_words_that_differ_in_one_bit_differ_in_about_half_of_their_bits():
    words = np.zeros((129, 6), np.uint32)
    for bit in range(128):
        words[bit + 1, bit // 32] = 1 << (bit % 32)
    keys = positions.join(*positions.keys(jnp.asarray(words)))
    assert len(np.unique(keys)) == 129
    distances = np.bitwise_count(keys[1:] ^ keys[0])
    assert distances.min() >= 16
    assert 30 <= distances.mean() <= 34


def test_different_positions_under_one_key_are_refused():
    keys = np.array([7, 7], np.uint64)
    with pytest.raises(RuntimeError, match="tictactoe: two different positions have the same 64-bit key"):
        positions._distinct(TICTACTOE, keys, np.array([[1, 0, 0], [2, 0, 0]], np.uint32))
    same = positions._distinct(TICTACTOE, keys, np.array([[1, 0, 0], [1, 5, 5]], np.uint32))
    assert same.size == 1


def test_batches_have_one_size_and_the_last_state_is_the_padding():
    states = TICTACTOE.init(jax.random.key(0))
    states = jax.tree.map(lambda leaf: jnp.stack([leaf] * 5), states)
    states = dataclasses.replace(states, current_player=jnp.arange(5))
    pieces = [(size, piece.current_player.tolist()) for size, piece in positions.batches(states, 2)]
    assert pieces == [(2, [0, 1]), (2, [2, 3]), (1, [4, 4])]


def test_small_batches_merged_often_find_the_same_graph(monkeypatch, solution_of):
    game = azjax.games.make("mnk", columns=3, rows=2, in_a_row=3)
    whole = solution_of(game)
    monkeypatch.setattr(positions, "_CHILDREN_PER_CALL", 42)
    monkeypatch.setattr(positions, "_MERGE_AT", 1)
    pieces = solve(game)
    for name in ("actions", "children", "rewards", "layer_starts", "values"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(pieces, name))
