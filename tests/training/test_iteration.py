import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from each_game import each_game
from small_run import SMALL

from azjax.games.registry import make
from azjax.networks import NetworkOutput
from azjax.training import init, make_iteration
from azjax.training.iteration import _results
from azjax.training.replay import Steps


def _hyper(config):
    return jax.tree.map(jnp.float32, config.hyper)


def _is_key(leaf):
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _bits(state):
    """The state with its key as bits, which NumPy can compare."""
    return jax.tree.map(lambda leaf: jax.random.key_data(leaf) if _is_key(leaf) else leaf, state)


@pytest.fixture(scope="module")
def connect2():
    return make("connect2")


@pytest.fixture(scope="module")
def begin(connect2):
    return jax.jit(lambda seed: init(connect2, SMALL, seed, _hyper(SMALL)))


@pytest.fixture(scope="module")
def iterate(connect2):
    """Jitted once for the module; it keeps its argument, so that a state can be used twice."""
    return jax.jit(make_iteration(connect2, SMALL))


def test_an_iteration_is_traced_once_and_runs_under_the_transfer_guard(connect2, begin):
    traces = []
    iteration = make_iteration(connect2, SMALL)

    def counted(state, hyper):
        traces.append(1)
        return iteration(state, hyper)

    jitted = jax.jit(counted, donate_argnums=0)
    state, hyper = begin(0), _hyper(SMALL)
    slower = jax.device_put(_hyper(SMALL.replace(learning_rate=1e-4)))
    with jax.transfer_guard("disallow"):
        for scalars in (hyper, hyper, slower):
            state, _ = jitted(state, scalars)
    assert len(traces) == 1
    assert int(state.iteration) == 3


def test_the_games_of_an_iteration_are_counted_by_result(begin, iterate):
    state, metrics = iterate(begin(0), _hyper(SMALL))
    results = sum(float(metrics[name]) for name in ("first_wins", "draws", "second_wins"))
    assert results == float(metrics["games"])
    # Four plies end every game of connect2, so each of the four columns ended at least one.
    assert float(metrics["games"]) >= 4
    ended, ready = np.asarray(state.replay.steps.ended[:4]), np.asarray(state.replay.ready[:4])
    last_end = 3 - np.argmax(ended[::-1], axis=0)
    assert float(metrics["plies_per_game"]) == pytest.approx((last_end + 1).sum() / float(metrics["games"]))
    np.testing.assert_array_equal(ready, np.arange(4)[:, None] <= last_end)
    assert float(metrics["replay_positions"]) == ready.sum()


def test_a_truncated_game_is_neither_won_nor_drawn(connect2):
    """Two games of three plies: the first is won by player 1 at ply 2; the second, truncated at ply 3, began earlier.

    The search's value of a truncated game, 0.5 for player 0, is no win of theirs.
    """
    states = jax.vmap(jax.vmap(connect2.init))(jax.random.split(jax.random.key(0), (3, 2)))
    ended = jnp.array([[False, False], [True, False], [False, True]])
    truncated = jnp.array([[False, False], [False, False], [False, True]])
    steps = Steps(
        states=states,
        policy=jnp.full((3, 2, 4), 0.25),
        reward=jnp.array([[0.0, 0.0], [-1.0, 0.0], [0.0, 0.5]]),
        ended=ended,
        truncated=truncated,
        value=jnp.zeros((3, 2)),
        proven=jnp.array([[False, False], [True, False], [False, False]]),
        learned=jnp.ones((3, 2), bool),
        trace=jnp.ones((3, 2)),
    )
    # Before, 0 and 4 plies of the running games were played, and then 1 and 0: (2 + 7) / 2 plies a game.
    metrics = _results(steps, plies_before=jnp.array([0, 4]), plies_after=jnp.array([1, 0]))
    assert {name: float(value) for name, value in metrics.items()} == {
        "games": 2,
        "first_wins": 0,
        "draws": 0,
        "second_wins": 1,
        "truncated_games": 1,
        "plies_per_game": 4.5,
        "proven_share": pytest.approx(1 / 6),
    }
    # A value of 0 is no draw, and one of -0.5 no win of player 1.
    for value in (0.0, -0.5):
        other = dataclasses.replace(steps, reward=steps.reward.at[2, 1].set(value))
        metrics = _results(other, jnp.zeros(2), jnp.zeros(2))
        assert [float(metrics[name]) for name in ("first_wins", "draws", "second_wins")] == [0, 0, 1]


def test_nothing_is_learned_before_a_game_has_ended():
    game = make("mnk", columns=5, rows=5, in_a_row=5)
    config = dataclasses.replace(SMALL, replay_size=1024)
    before = jax.jit(lambda: init(game, config, 0, _hyper(config)))()
    after, metrics = jax.jit(make_iteration(game, config))(before, _hyper(config))
    assert np.isnan(float(metrics["loss"]))
    assert jax.tree.all(jax.tree.map(lambda a, b: bool(jnp.array_equal(a, b)), before.variables, after.variables))


def test_the_policies_stored_sum_to_one_over_the_legal_actions(connect2, begin, iterate):
    state, _ = iterate(begin(0), _hyper(SMALL))
    steps = jax.tree.map(lambda leaf: leaf[:4].reshape(16, *leaf.shape[2:]), state.replay.steps)
    mask = np.asarray(jax.vmap(connect2.legal_action_mask)(steps.states))
    np.testing.assert_allclose(steps.policy.sum(axis=1), 1, rtol=1e-6)
    assert np.all(np.asarray(steps.policy)[~mask] == 0)


@dataclasses.dataclass(frozen=True)
class Linear:
    """A network of one matrix, without Flax, a base class or other collections than `params`."""

    def init(self, key, game):
        features = math.prod(game.observation_shape)
        return {"params": jax.random.normal(key, (features, game.num_actions + 1)) / 10}

    def apply(self, variables, observations, train):
        outputs = observations.reshape(len(observations), -1) @ variables["params"]
        return NetworkOutput(outputs[:, :-1], jnp.tanh(outputs[:, -1])), variables


def test_any_object_with_init_and_apply_trains(connect2):
    before = jax.jit(lambda: init(connect2, SMALL, 0, _hyper(SMALL), Linear()))()
    after, metrics = jax.jit(make_iteration(connect2, SMALL, network=Linear()))(before, _hyper(SMALL))
    assert np.isfinite(float(metrics["loss"]))
    assert after.variables.keys() == {"params"}
    assert not np.array_equal(before.variables["params"], after.variables["params"])


@pytest.mark.slow
def test_a_population_under_vmap_equals_its_members_alone(connect2, begin, iterate):
    seeds = jnp.arange(3)
    members = [dataclasses.replace(SMALL.hyper, learning_rate=rate) for rate in (1e-3, 3e-3, 1e-2)]
    hypers = jax.tree.map(lambda *values: jnp.array(values, jnp.float32), *members)
    states = jax.jit(jax.vmap(lambda seed, hyper: init(connect2, SMALL, seed, hyper)))(seeds, hypers)
    states, metrics = jax.jit(jax.vmap(make_iteration(connect2, SMALL)))(states, hypers)
    for member in range(3):
        hyper = jax.tree.map(lambda leaf: leaf[member], hypers)
        alone, alone_metrics = iterate(begin(member), hyper)
        for ours, theirs in zip(
            jax.tree.leaves(alone.variables),
            jax.tree.leaves(jax.tree.map(lambda x: x[member], states.variables)),
            strict=True,
        ):
            np.testing.assert_allclose(ours, theirs, atol=1e-5)
        assert float(alone_metrics["loss"]) == pytest.approx(float(metrics["loss"][member]), abs=1e-5)


def test_the_same_seed_gives_the_same_bits_and_another_seed_others(begin, iterate):
    ends = [iterate(iterate(begin(seed), _hyper(SMALL))[0], _hyper(SMALL))[0] for seed in (0, 0, 1)]
    leaves = [jax.tree.leaves(_bits(end)) for end in ends]
    assert all(np.array_equal(a, b) for a, b in zip(leaves[0], leaves[1], strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(leaves[0], leaves[2], strict=True))


@pytest.mark.slow
def test_reused_trees_are_not_in_the_state_and_it_continues_to_the_same_bits(connect2, begin):
    config = dataclasses.replace(SMALL, reuse_tree=True, solver=True)
    iterate = jax.jit(make_iteration(connect2, config))
    first, _ = iterate(begin(0), _hyper(config))
    assert jax.tree.structure(first) == jax.tree.structure(begin(0))
    straight, _ = iterate(first, _hyper(config))
    saved = jax.device_get(_bits(first))
    jax.tree.map(np.testing.assert_array_equal, saved, _bits(iterate(begin(0), _hyper(config))[0]))
    is_key = jax.tree.map(_is_key, first)
    restored = jax.tree.map(
        lambda key, bits: jax.random.wrap_key_data(bits) if key else jax.device_put(bits), is_key, saved
    )
    resumed, _ = iterate(restored, _hyper(config))
    jax.tree.map(np.testing.assert_array_equal, _bits(straight), _bits(resumed))


def test_random_starts_are_never_finished_positions():
    game = make("tictactoe")
    config = dataclasses.replace(SMALL, num_games=512, replay_size=65_536, random_start_plies=9)
    games = jax.jit(lambda: init(game, config, 0, _hyper(config)))().games.states
    stones = np.asarray(jax.vmap(lambda s: game.observe(s).sum())(games))
    assert not np.asarray(games.terminated).any()
    assert set(stones.astype(int)) >= set(range(8))
    # Drawn evenly: about a tenth begins with the empty board.
    assert 20 < (stones == 0).sum() < 90


def test_given_starts_are_used_and_a_finished_one_is_refused():
    game = make("tictactoe")
    texts = ("XO_______", "XXOO_____")
    config = dataclasses.replace(SMALL, num_games=64, replay_size=4096, start_positions=texts)
    games = jax.jit(lambda: init(game, config, 0, _hyper(config)))().games.states
    assert {game.to_text(jax.tree.map(lambda leaf: leaf[i], games)) for i in range(64)} == set(texts)
    over = dataclasses.replace(config, start_positions=("XXXOO____",))
    with pytest.raises(ValueError, match="the game is over in 'XXXOO____'"):
        jax.eval_shape(lambda: init(game, over, 0, _hyper(over)))


@pytest.mark.slow_except("mlp-connect2")
@each_game()
@pytest.mark.parametrize("network", ["mlp", pytest.param("resnet", marks=pytest.mark.slow)])
def test_an_iteration_of_every_game_lowers_for_accelerators(name, network):
    game = make(name)
    config = dataclasses.replace(SMALL, network=network, replay_size=4 * (4 + game.max_plies))
    state = jax.eval_shape(lambda: init(game, config, 0, config.hyper))
    traced = jax.jit(make_iteration(game, config)).trace(state, _hyper(config))
    assert traced.lower(lowering_platforms=("cuda", "tpu")).as_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tictactoe", "brandub"])
def test_self_play_with_reused_trees_and_a_solver_lowers_for_accelerators(name):
    game = make(name)
    config = dataclasses.replace(SMALL, replay_size=4 * (4 + game.max_plies), reuse_tree=True, solver=True)
    state = jax.eval_shape(lambda: init(game, config, 0, config.hyper))
    traced = jax.jit(make_iteration(game, config)).trace(state, _hyper(config))
    assert traced.lower(lowering_platforms=("cuda", "tpu")).as_text()
