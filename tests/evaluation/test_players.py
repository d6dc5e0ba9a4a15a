import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import azjax.games
from azjax.evaluation.players import (
    Player,
    act,
    judge,
    network_player,
    optimal_player,
    random_player,
    search_player,
)
from azjax.networks import Network
from azjax.search import evaluators

TICTACTOE = azjax.games.make("tictactoe")
KEY_SEED = 0


@dataclasses.dataclass(frozen=True)
class FixedNetwork(Network):
    """The same logits and value everywhere: its variables."""

    def module(self, observation_shape, num_actions, rngs):
        raise NotImplementedError

    def apply(self, variables, observations, train):
        assert not train
        batch = len(observations)
        logits, value = variables
        return jnp.tile(logits[None], (batch, 1)), jnp.full(batch, value), variables


@pytest.fixture(scope="module")
def states(positions_of):
    """X to move and to win at c2's end; O to move; a finished game."""
    return positions_of(TICTACTOE, "XX_OO____", "X________", "XXXOO____")


def test_the_random_player_is_uniform_over_legal_moves_and_has_no_values(states):
    probabilities, value, _ = judge(random_player(TICTACTOE), jax.random.key(KEY_SEED), states)
    np.testing.assert_allclose(probabilities[0], np.array([0, 0, 1, 0, 0, 1, 1, 1, 1]) / 5, rtol=1e-6)
    np.testing.assert_allclose(probabilities[1], np.array([0, 1, 1, 1, 1, 1, 1, 1, 1]) / 8, rtol=1e-6)
    assert not probabilities[2].any()
    assert np.isnan(value).all()


def test_the_optimal_player_spreads_over_the_best_moves_and_knows_the_values(solution_of, states):
    probabilities, value, _ = judge(optimal_player(solution_of("tictactoe")), jax.random.key(KEY_SEED), states)
    # After a corner only the centre holds the draw.
    np.testing.assert_array_equal(np.argmax(probabilities, axis=1)[:2], [2, 4])
    np.testing.assert_array_equal(probabilities.sum(axis=1), [1, 1, 0])
    np.testing.assert_array_equal(value, [1, 0, 0])
    start = jax.tree.map(lambda leaf: leaf[None], TICTACTOE.init(jax.random.key(KEY_SEED)))
    probabilities, _, _ = judge(optimal_player(solution_of("tictactoe")), jax.random.key(KEY_SEED), start)
    np.testing.assert_allclose(probabilities, np.full((1, 9), 1 / 9), rtol=1e-6)


def test_the_optimal_player_finds_moves_in_a_table_with_holes(nim, solution_of):
    solution = solution_of(nim((1, 2, 3)))
    # 2 + 3: taking 1 from the heap of 3 leaves the nim sum 0.
    start = solution.game.init(jax.random.key(KEY_SEED))
    state = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], solution.game.step(start, jnp.int32(0)))
    probabilities, value, _ = judge(optimal_player(solution), jax.random.key(KEY_SEED), state)
    assert probabilities[0].tolist() == [0, 0, 0, 0, 0, 0, 1, 0, 0]
    assert value.tolist() == [1]


def test_the_optimal_player_moves_at_random_where_the_start_does_not_lead(solution_of, states):
    swapped = dataclasses.replace(states, current_player=1 - states.current_player)
    probabilities, value, _ = judge(optimal_player(solution_of("tictactoe")), jax.random.key(KEY_SEED), swapped)
    np.testing.assert_allclose(probabilities[0], np.array([0, 0, 1, 0, 0, 1, 1, 1, 1]) / 5, rtol=1e-6)
    assert np.isnan(value).all()


def test_the_network_player_takes_the_largest_legal_prior_at_temperature_0(states):
    logits = jnp.array([9.0, 8, 1, 7, 6, 3, 2, 0, 0])
    player = network_player(TICTACTOE, FixedNetwork(), (logits, 0.25))
    probabilities, value, _ = judge(player, jax.random.key(KEY_SEED), states)
    assert probabilities[0].tolist() == [0, 0, 0, 0, 0, 1, 0, 0, 0]
    assert probabilities[1].tolist() == [0, 1, 0, 0, 0, 0, 0, 0, 0]
    assert not probabilities[2].any()
    assert value.tolist() == [0.25] * 3


def test_the_network_player_is_the_softmax_over_legal_moves_at_temperature_1_and_uniform_at_infinity(states):
    weights = np.array([9.0, 8, 1, 7, 6, 3, 2, 4, 6])
    variables = (jnp.log(jnp.asarray(weights, jnp.float32)), 0.0)
    legal = np.array([0, 0, 1, 0, 0, 1, 1, 1, 1])
    for temperature, expected in ((1.0, weights * legal / 16), (0.5, weights**2 * legal / 66), (np.inf, legal / 5)):
        player = network_player(TICTACTOE, FixedNetwork(), variables, temperature=temperature)
        probabilities, _, _ = judge(player, jax.random.key(KEY_SEED), states)
        np.testing.assert_allclose(probabilities[0], expected, rtol=1e-5)
        assert not probabilities[2].any()


def test_a_negative_temperature_is_refused():
    with pytest.raises(ValueError, match=r"temperature must be 0 or more, got -0\.5"):
        network_player(TICTACTOE, FixedNetwork(), None, temperature=-0.5)


def test_the_search_player_plays_the_win_that_it_finds(states):
    player = search_player(TICTACTOE, evaluators.uniform(TICTACTOE), num_simulations=100)
    assert player.name == "search:100"
    probabilities, value, _ = judge(player, jax.random.key(KEY_SEED), states)
    assert probabilities[0].tolist() == [0, 0, 1, 0, 0, 0, 0, 0, 0]
    assert sorted(probabilities[1].tolist()) == [0] * 8 + [1]
    assert not probabilities[2].any()
    assert value[0] > 0.8


def test_a_move_is_drawn_by_its_probability_and_never_without_one(states):
    many = jax.tree.map(lambda leaf: jnp.repeat(leaf, 4000, axis=0), states)
    weights = jnp.array([9.0, 8, 1, 7, 6, 0, 2, 4, 1])
    player = network_player(TICTACTOE, FixedNetwork(), (jnp.log(weights), 0.0), temperature=1.0)
    actions, (probabilities, _, _) = act(player, jax.random.key(KEY_SEED), many)
    drawn = np.bincount(np.asarray(actions[:4000]), minlength=9)
    np.testing.assert_allclose(probabilities[0], np.array([0, 0, 1, 0, 0, 0, 2, 4, 1]) / 8, rtol=1e-5)
    assert (drawn[[0, 1, 3, 4, 5]] == 0).all()
    # Four standard deviations of the binomial distribution are below 130.
    np.testing.assert_allclose(drawn[[2, 6, 7, 8]], [500, 1000, 2000, 500], atol=130)
    assert (actions[8000:] == 0).all()


def test_equal_policies_share_one_compilation(states):
    traces = []

    @dataclasses.dataclass(frozen=True)
    class Counting:
        number: int

        def __call__(self, params, key, states):
            traces.append(self.number)
            return random_player(TICTACTOE).policy(params, key, states)

    for name, number in (("a", 1), ("b", 1), ("c", 2)):
        act(Player(name, Counting(number), jnp.float32(number)), jax.random.key(KEY_SEED), states)
    assert traces == [1, 2]
    assert random_player(TICTACTOE).policy == random_player(azjax.games.make("tictactoe")).policy
    searches = [search_player(TICTACTOE, evaluators.uniform(TICTACTOE), num_simulations=n).policy for n in (8, 8, 9)]
    assert searches[0] == searches[1] != searches[2]
