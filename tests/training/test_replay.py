import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.games.registry import make
from azjax.training import replay as replay_module
from azjax.training.replay import Steps, count_ready, new_replay, weigh_ready

GAME = make("connect2")
insert = jax.jit(replay_module.insert, static_argnums=2)
sample = jax.jit(replay_module.sample, static_argnums=3, static_argnames="with_following")
NUM_ROWS = 12
NUM_STEPS = 2


def _steps(movers, rewards, ended, **others):
    """Steps [T, G] of positions that differ in the player to move alone."""
    shape = np.shape(ended)
    start = jax.vmap(GAME.init)(jax.random.split(jax.random.key(0), shape[1]))
    states = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (shape[0], *leaf.shape)), start)
    states = dataclasses.replace(states, current_player=jnp.asarray(movers, jnp.int32))
    nowhere = jnp.zeros(shape, bool)
    steps = Steps(
        states=states,
        policy=jnp.zeros((*shape, 4)),
        reward=jnp.asarray(rewards, jnp.float32),
        ended=jnp.asarray(ended),
        truncated=nowhere,
        value=jnp.zeros(shape),
        proven=nowhere,
        learned=~nowhere,
        trace=jnp.ones(shape),
    )
    return dataclasses.replace(steps, **others)


@pytest.fixture
def empty():
    return new_replay(GAME, jax.vmap(GAME.init)(jax.random.split(jax.random.key(0), 1)), NUM_ROWS)


def _insert_all(replay, movers, rewards, ended):
    for i in range(0, len(ended), NUM_STEPS):
        rows = slice(i, i + NUM_STEPS)
        replay = insert(replay, _steps(movers[rows, None], rewards[rows, None], ended[rows, None]), GAME.max_plies)
    return replay


def test_positions_wait_for_the_end_of_their_game(empty):
    movers, rewards = np.array([0, 1]), np.zeros(2)
    waiting = _insert_all(empty, movers, rewards, np.zeros(2, bool))
    assert not np.asarray(waiting.ready).any()
    # Player 0 then moves and wins: the win is +1 for each of its positions and -1 for the other's.
    done = _insert_all(waiting, np.array([0, 1]), np.array([1.0, 0.0]), np.array([True, False]))
    np.testing.assert_array_equal(done.ready[:4, 0], [True, True, True, False])
    np.testing.assert_array_equal(done.outcome[:3, 0], [1, -1, 1])


def test_a_player_who_moves_twice_in_a_row_keeps_the_sign(empty):
    replay = _insert_all(empty, np.array([1, 1, 0, 0]), np.array([0, 0, 0, -1.0]), np.array([0, 0, 0, 1], bool))
    np.testing.assert_array_equal(replay.outcome[:4, 0], [1, 1, -1, -1])


def test_rewards_on_the_way_count_for_the_positions_before_them(empty):
    replay = _insert_all(empty, np.array([0, 1]), np.array([0.5, 1.0]), np.array([False, True]))
    np.testing.assert_array_equal(replay.outcome[:2, 0], [1.5, -1.0])


def test_the_ring_agrees_with_a_list_over_many_games():
    """The oracle keeps a Python list a column."""
    rng = np.random.default_rng(0)
    num_games, num_inserts = 5, 20
    replay = new_replay(GAME, jax.vmap(GAME.init)(jax.random.split(jax.random.key(0), num_games)), NUM_ROWS)
    columns = [[] for _ in range(num_games)]  # of [mover, outcome or None], oldest first
    running = [[] for _ in range(num_games)]
    for _ in range(num_inserts):
        movers = rng.integers(0, 2, (NUM_STEPS, num_games))
        ended = rng.random((NUM_STEPS, num_games)) < 0.4
        for t in range(NUM_STEPS):
            for g in range(num_games):
                ended[t, g] |= len(running[g]) + 1 == GAME.max_plies
                entry = [movers[t, g], None]
                columns[g].append(entry)
                running[g].append(entry)
                if ended[t, g]:
                    running[g] = []
        # Rewards come with the end alone; drawn here so that the oracle can use the same.
        rewards = np.where(ended, rng.integers(-1, 2, ended.shape), 0)
        _settle(columns, ended, rewards, len(columns[0]))
        replay = insert(replay, _steps(movers, rewards, ended), GAME.max_plies)
        for g, column in enumerate(columns):
            for back in range(1, min(NUM_ROWS, len(column)) + 1):
                row = (int(replay.written) - back) % NUM_ROWS
                _, outcome = column[-back]
                assert bool(replay.ready[row, g]) == (outcome is not None)
                if outcome is not None:
                    assert float(replay.outcome[row, g]) == outcome


def _settle(columns, ended, rewards, length):
    for g, column in enumerate(columns):
        for t in range(NUM_STEPS):
            if ended[t, g]:
                for entry in column[: length - NUM_STEPS + t + 1]:
                    if entry[1] is None:
                        entry[1] = rewards[t, g] if entry[0] == 0 else -rewards[t, g]


def test_ready_positions_alone_are_sampled_and_all_equally_often(empty):
    replay = new_replay(GAME, jax.vmap(GAME.init)(jax.random.split(jax.random.key(0), 2)), NUM_ROWS)
    ended = np.array([[True, False], [True, False]])
    rewards = np.array([[1.0, 0.0], [-1.0, 0.0]])
    replay = insert(replay, _steps(np.zeros((2, 2), int), rewards, ended), GAME.max_plies)
    ready_so_far = count_ready(replay)
    assert int(ready_so_far[-1]) == 2
    outcomes = np.asarray(sample(replay, ready_so_far, jax.random.key(1), 4000).outcome)
    assert set(outcomes) == {1.0, -1.0}
    assert abs(outcomes.mean()) < 4 / np.sqrt(4000)


def test_positions_that_are_not_learned_from_pass_the_result_back_and_are_not_sampled(empty):
    """As after a fast search: the result reaches the move before."""
    learned = jnp.array([[True], [False]])
    replay = insert(empty, _steps([[0], [1]], [[0.0], [-1.0]], [[False], [True]], learned=learned), GAME.max_plies)
    np.testing.assert_array_equal(replay.ready[:2, 0], [True, False])
    assert float(replay.outcome[0, 0]) == -1
    examples = sample(replay, count_ready(replay), jax.random.key(0), 16)
    assert set(np.asarray(examples.outcome)) == {-1.0}


def test_before_a_cut_the_result_is_the_value_of_the_search(empty):
    """Player 1 gives a win away, which its search did not: the positions before count as won for it."""
    movers, ended = np.array([[0], [1], [0], [1]]), np.array([[False], [False], [False], [True]])
    value, trace = jnp.array([[0.1], [0.9], [0.2], [-0.3]]), jnp.array([[1.0], [0.0], [1.0], [1.0]])
    rewards = np.array([[0.0], [0.0], [0.0], [1.0]])
    replay = empty
    for rows in (slice(0, 2), slice(2, 4)):
        steps = _steps(movers[rows], rewards[rows], ended[rows], value=value[rows], trace=trace[rows])
        replay = insert(replay, steps, GAME.max_plies)
    np.testing.assert_allclose(replay.outcome[:4, 0], [-0.9, 0.9, 1, -1], rtol=1e-6)
    assert np.asarray(replay.ready[:4]).all()


def test_a_cut_at_the_end_of_a_game_counts_too(empty):
    trace, value = jnp.array([[1.0], [0.0]]), jnp.array([[0.0], [0.5]])
    steps = _steps([[0], [1]], [[0.0], [1.0]], [[False], [True]], value=value, trace=trace)
    np.testing.assert_array_equal(insert(empty, steps, GAME.max_plies).outcome[:2, 0], [-0.5, 0.5])


def test_the_result_is_the_lambda_return_of_the_values_and_the_result(empty):
    """Over two insertions, with a player who moves twice: 0, 0, 1, 0, and player 0 wins."""
    movers, ended = np.array([[0], [0], [1], [0]]), np.array([[False], [False], [False], [True]])
    rewards, values, share = np.array([[0.0], [0.0], [0.0], [1.0]]), np.array([[0.5], [-0.25], [0.75], [0.0]]), 0.5
    replay = empty
    for rows in (slice(0, 2), slice(2, 4)):
        trace = jnp.full((2, 1), share)
        steps = _steps(movers[rows], rewards[rows], ended[rows], value=jnp.asarray(values[rows]), trace=trace)
        replay = insert(replay, steps, GAME.max_plies)
    # For player 0, from the end: half of 1 and of 0; half of that and of -0.75; and so on.
    np.testing.assert_allclose(replay.outcome[:4, 0], [0.15625, -0.1875, 0.125, 0.5], rtol=1e-6)


def test_a_sample_contains_the_values_of_the_searches(empty):
    value, proven = jnp.array([[0.25], [-1.0]]), jnp.array([[False], [True]])
    steps = _steps([[0], [1]], [[0.0], [1.0]], [[False], [True]], value=value, proven=proven)
    replay = insert(empty, steps, GAME.max_plies)
    examples = sample(replay, count_ready(replay), jax.random.key(0), 64)
    drawn = set(
        zip(*(np.asarray(x).tolist() for x in (examples.outcome, examples.value, examples.proven)), strict=True)
    )
    assert drawn == {(1.0, 0.25, False), (-1.0, -1.0, True)}


def _following(replay, row):
    """What came after the position of the one column whose player to move is player `row`, the only one."""
    drawn = sample(replay, count_ready(replay), jax.random.key(0), 64, with_following=True)
    rows = np.asarray(drawn.states.current_player)
    return jax.tree.map(lambda leaf: np.asarray(leaf)[list(rows).index(row)], drawn.following)


def _columns(replay, movers, rewards, ended, **others):
    """Inserts one column; `others` are fields of `Steps`, [T]."""
    for i in range(0, len(ended), NUM_STEPS):
        rows = slice(i, i + NUM_STEPS)
        fields = {name: jnp.asarray(field)[rows, None] for name, field in others.items()}
        steps = _steps(movers[rows, None], rewards[rows, None], ended[rows, None], **fields)
        replay = insert(replay, steps, GAME.max_plies)
    return replay


def test_what_follows_a_position_are_the_values_of_its_game_and_then_the_result(empty):
    """A game of three plies that player 0 wins, and the first ply of another. Row 1 is that of the only player 1."""
    movers, ended = np.array([0, 1, 0, 0]), np.array([False, False, True, False])
    values, rewards = np.array([0.1, 0.2, 0.3, 0.9]), np.array([0.0, 0, 1, 0])
    policy = np.eye(4, dtype=np.float32)
    replay = _columns(empty, movers, rewards, ended, value=values.astype(np.float32), policy=policy)
    second = _following(replay, 1)
    np.testing.assert_allclose(second.values[:4], [0.2, -0.3, -1, -1])  # as player 1 sees it
    assert (second.values[3:] == -1).all()
    assert int(second.plies_left) == 2
    assert second.has_reply
    assert second.reply_states.current_player == 0
    np.testing.assert_array_equal(second.reply_policy, policy[2])


def test_what_a_game_pays_before_its_end_counts_in_what_follows(empty):
    """The searches are right: of 0.5 for player 0 half is paid at once, and the rest in the end."""
    movers, ended = np.array([0, 1, 1, 1]), np.array([False, False, False, True])
    rewards, values = np.array([0.25, 0.5, 0, -0.25]), np.array([0.5, -0.25, 0.25, 0.25])
    replay = _columns(empty, movers, rewards, ended, value=values.astype(np.float32))
    assert set(_following(replay, 0).values.tolist()) == {0.5}


def test_after_the_end_is_the_result_of_the_game_whatever_the_trace(empty):
    """The lambda-return of the position is less than its win, since the search saw nothing."""
    movers, ended = np.array([1, 0, 0, 0]), np.array([False, True, False, False])
    trace = np.full(4, 0.5, np.float32)
    replay = _columns(empty, movers, np.array([0.0, -1, 0, 0]), ended, trace=trace)
    assert replay.outcome[0, 0] == 0.25
    assert _following(replay, 1).values.tolist() == [0, 0, *[1] * (replay_module.WINDOW - 2)]


def test_a_move_that_a_fast_search_chose_is_no_reply(empty):
    movers, ended = np.array([0, 1, 0, 0]), np.array([False, False, False, True])
    learned = np.array([True, True, False, True])
    replay = _columns(empty, movers, np.zeros(4), ended, value=np.zeros(4, np.float32), learned=learned)
    following = _following(replay, 1)
    assert not following.has_reply
    assert int(following.plies_left) == 3


def test_the_last_position_of_a_game_has_no_reply_and_one_ply_left(empty):
    replay = _columns(empty, np.array([0, 1]), np.array([0.0, -1.0]), np.array([False, True]), value=np.zeros(2))
    last = _following(replay, 1)
    assert not last.has_reply
    assert int(last.plies_left) == 1
    assert last.values[0] == 0
    assert (last.values[1:] == 1).all()


def test_a_truncated_game_has_as_many_plies_left_as_are_told_at_most(empty):
    truncated = np.array([False, True])
    replay = _columns(empty, np.array([0, 1]), np.array([0.0, 0.5]), truncated, truncated=truncated)
    assert int(_following(replay, 1).plies_left) == replay_module.WINDOW


def test_what_follows_goes_over_the_end_of_the_ring(empty):
    """Ten plies of other games, then one that begins in the last row and goes on in the first."""
    movers = np.array([0] * 10 + [0, 1, 0, 0])
    ended = np.array([True] * 10 + [False, False, True, True])
    values = np.arange(14, dtype=np.float32) / 16
    replay = _columns(empty, movers, np.zeros(14), ended, value=values)
    second = _following(replay, 1)
    assert int(replay.written) == 14
    assert second.values[:3].tolist() == [11 / 16, -12 / 16, 0]
    assert int(second.plies_left) == 2


def _weighted(surprise, ready=None):
    """The weights of the positions of one column."""
    surprise = jnp.asarray(surprise, jnp.float32)[:, None]
    games = jax.vmap(GAME.init)(jax.random.split(jax.random.key(0), 1))
    replay = new_replay(GAME, games, len(surprise), with_surprise=True)
    ready = jnp.ones_like(replay.ready) if ready is None else jnp.asarray(ready)[:, None]
    steps = dataclasses.replace(replay.steps, surprise=surprise)
    replay = dataclasses.replace(replay, steps=steps, ready=ready)
    return np.diff(np.asarray(weigh_ready(replay)), prepend=0)


def test_half_of_the_weight_is_even_and_half_goes_by_surprise():
    """Means of 1 and of 64: 64 * (1/2 + 1/2 * s / 1)."""
    assert _weighted([0.0, 1.0, 2.0, 1.0]).tolist() == [32, 64, 96, 64]


def test_positions_that_are_not_ready_have_no_weight_and_do_not_count_for_the_mean():
    assert _weighted([0.0, 9.0, 2.0], [True, False, True]).tolist() == [32, 0, 96]


def test_one_position_has_at_most_32_times_the_mean_of_the_surprise():
    weights = _weighted([100.0] + [0.0] * 199)
    assert weights.tolist() == [32 + 32 * 32] + [32] * 199


def test_without_any_surprise_all_weigh_the_same():
    assert _weighted([0.0] * 3).tolist() == [64, 64, 64]


def test_without_surprise_in_the_replay_the_weights_count_the_ready_positions(empty):
    replay = _insert_all(empty, np.array([0, 1]), np.array([0.0, 1.0]), np.array([False, True]))
    np.testing.assert_array_equal(weigh_ready(replay), count_ready(replay))
