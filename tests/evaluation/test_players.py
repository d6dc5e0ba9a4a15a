import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import azjax.games
from azjax.evaluation import (
    Player,
    act,
    choose,
    network_player,
    observe,
    optimal_player,
    random_player,
    search,
    search_player,
    start_memory,
)
from azjax.networks import Network, NetworkOutput
from azjax.search import advance, evaluators
from azjax.search.reuse import by_node, follow

TICTACTOE = azjax.games.make("tictactoe")
KEY_SEED = 0


@dataclasses.dataclass(frozen=True)
class FixedNetwork(Network):
    """The same logits and value everywhere: its variables."""

    def init(self, key, game):
        raise NotImplementedError

    def apply(self, variables, observations, train):
        assert not train
        batch = len(observations)
        logits, value = variables["logits"], variables["value"]
        return NetworkOutput(jnp.tile(logits[None], (batch, 1)), jnp.full(batch, value)), variables


@pytest.fixture(scope="module")
def states(positions_of):
    """X to move and to win at c2's end; O to move; a finished game."""
    return positions_of(TICTACTOE, "XX_OO____", "X________", "XXXOO____")


def test_the_random_player_is_uniform_over_legal_moves_and_has_no_values(states):
    probabilities, value, _ = choose(random_player(TICTACTOE), jax.random.key(KEY_SEED), states)
    np.testing.assert_allclose(probabilities[0], np.array([0, 0, 1, 0, 0, 1, 1, 1, 1]) / 5, rtol=1e-6)
    np.testing.assert_allclose(probabilities[1], np.array([0, 1, 1, 1, 1, 1, 1, 1, 1]) / 8, rtol=1e-6)
    assert not probabilities[2].any()
    assert np.isnan(value).all()


def test_the_optimal_player_spreads_over_the_best_moves_and_knows_the_values(solution_of, states):
    probabilities, value, _ = choose(optimal_player(solution_of("tictactoe")), jax.random.key(KEY_SEED), states)
    # After a corner only the centre holds the draw.
    np.testing.assert_array_equal(np.argmax(probabilities, axis=1)[:2], [2, 4])
    np.testing.assert_array_equal(probabilities.sum(axis=1), [1, 1, 0])
    np.testing.assert_array_equal(value, [1, 0, 0])
    start = jax.tree.map(lambda leaf: leaf[None], TICTACTOE.init(jax.random.key(KEY_SEED)))
    probabilities, _, _ = choose(optimal_player(solution_of("tictactoe")), jax.random.key(KEY_SEED), start)
    np.testing.assert_allclose(probabilities, np.full((1, 9), 1 / 9), rtol=1e-6)


def test_the_optimal_player_finds_moves_in_a_table_with_holes(nim, solution_of):
    solution = solution_of(nim((1, 2, 3)))
    # 2 + 3: taking 1 from the heap of 3 leaves the nim sum 0.
    start = solution.game.init(jax.random.key(KEY_SEED))
    state = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], solution.game.step(start, jnp.int32(0)))
    probabilities, value, _ = choose(optimal_player(solution), jax.random.key(KEY_SEED), state)
    assert probabilities[0].tolist() == [0, 0, 0, 0, 0, 0, 1, 0, 0]
    assert value.tolist() == [1]


def test_the_optimal_player_moves_at_random_where_the_start_does_not_lead(solution_of, states):
    swapped = dataclasses.replace(states, current_player=1 - states.current_player)
    probabilities, value, _ = choose(optimal_player(solution_of("tictactoe")), jax.random.key(KEY_SEED), swapped)
    np.testing.assert_allclose(probabilities[0], np.array([0, 0, 1, 0, 0, 1, 1, 1, 1]) / 5, rtol=1e-6)
    assert np.isnan(value).all()


def test_the_network_player_takes_the_largest_legal_prior_at_temperature_0(states):
    logits = jnp.array([9.0, 8, 1, 7, 6, 3, 2, 0, 0])
    player = network_player(TICTACTOE, FixedNetwork(), {"logits": logits, "value": 0.25})
    probabilities, value, _ = choose(player, jax.random.key(KEY_SEED), states)
    assert probabilities[0].tolist() == [0, 0, 0, 0, 0, 1, 0, 0, 0]
    assert probabilities[1].tolist() == [0, 1, 0, 0, 0, 0, 0, 0, 0]
    assert not probabilities[2].any()
    assert value.tolist() == [0.25] * 3


def test_the_network_player_is_the_softmax_over_legal_moves_at_temperature_1_and_uniform_at_infinity(states):
    weights = np.array([9.0, 8, 1, 7, 6, 3, 2, 4, 6])
    variables = {"logits": jnp.log(jnp.asarray(weights, jnp.float32)), "value": 0.0}
    legal = np.array([0, 0, 1, 0, 0, 1, 1, 1, 1])
    for temperature, expected in ((1.0, weights * legal / 16), (0.5, weights**2 * legal / 66), (np.inf, legal / 5)):
        player = network_player(TICTACTOE, FixedNetwork(), variables, temperature=temperature)
        probabilities, _, _ = choose(player, jax.random.key(KEY_SEED), states)
        np.testing.assert_allclose(probabilities[0], expected, rtol=1e-5)
        assert not probabilities[2].any()


def test_a_negative_temperature_is_refused():
    with pytest.raises(ValueError, match=r"temperature must be 0 or more, got -0\.5"):
        network_player(TICTACTOE, FixedNetwork(), {}, temperature=-0.5)


def test_the_search_player_plays_the_win_that_it_finds(states):
    player = search_player(TICTACTOE, evaluators.uniform(TICTACTOE), num_simulations=100)
    assert player.name == "search:100"
    probabilities, value, _ = choose(player, jax.random.key(KEY_SEED), states)
    assert probabilities[0].tolist() == [0, 0, 1, 0, 0, 0, 0, 0, 0]
    assert sorted(probabilities[1].tolist()) == [0] * 8 + [1]
    assert not probabilities[2].any()
    assert value[0] > 0.8


@pytest.fixture(scope="module")
def reused(positions_of):
    """Two moves of a search that reuses its tree, in 4 games, and its memory before and after the second."""
    player = search_player(TICTACTOE, evaluators.uniform(TICTACTOE), num_simulations=30, reuse_tree=True)
    key = jax.random.key(KEY_SEED)
    start = positions_of(TICTACTOE, "_________", "X________", "XOXXO_O__", "XOXXO_O__")
    actions, judgement, first = act(player, key, start, start_memory(player, start))
    played = jnp.array([0, 1, 5, 8], jnp.int32)
    before = observe(player, first, played)
    _, _, second = act(player, key, jax.vmap(TICTACTOE.step)(start, played), before)
    return start, actions, judgement, first, before, second


@pytest.mark.slow
def test_the_first_move_of_a_search_with_a_memory_is_that_of_one_without(reused):
    start, actions, judgement, first, *_ = reused
    plain = search_player(TICTACTOE, evaluators.uniform(TICTACTOE), num_simulations=30)
    alone, judged, memory = act(plain, jax.random.key(KEY_SEED), start)
    np.testing.assert_array_equal(actions, alone)
    jax.tree.map(np.testing.assert_array_equal, judgement, judged)
    assert memory is start_memory(plain, start) is None
    assert {leaf.shape[0] for leaf in jax.tree.leaves(first)} == {4}


def test_a_search_with_a_memory_adds_its_simulations_to_the_visits_that_it_kept(reused):
    *_, before, second = reused
    kept, visits = (by_node(memory).visits[0] for memory in (before, second))
    assert (kept > 0).all()
    np.testing.assert_array_equal(visits, kept + 30)


def test_a_memory_is_dropped_in_the_games_where_it_leaves_no_room_for_the_next_search(reused):
    *_, second = reused
    tree, action = by_node(second), jnp.array([4, 4, 8, 5], jnp.int32)
    below = advance(tree, action)
    num_made = np.asarray((below.visits > 0).sum(axis=0))
    assert num_made.min() < num_made.max()
    smallest = int(num_made.min())
    dropping = jax.jit(follow, static_argnums=2)(tree, action, 91 - smallest)
    np.testing.assert_array_equal(dropping.visits, np.where(num_made == smallest, below.visits, 0))
    assert int(dropping.num_made) == smallest > 0
    np.testing.assert_array_equal(follow(tree, action, 30).visits, below.visits)


def test_a_move_is_drawn_by_its_probability_and_never_without_one(states):
    many = jax.tree.map(lambda leaf: jnp.repeat(leaf, 4000, axis=0), states)
    weights = jnp.array([9.0, 8, 1, 7, 6, 0, 2, 4, 1])
    player = network_player(TICTACTOE, FixedNetwork(), {"logits": jnp.log(weights), "value": 0.0}, temperature=1.0)
    actions, (probabilities, _, _), _ = act(player, jax.random.key(KEY_SEED), many)
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


@pytest.mark.slow_except("False")
@pytest.mark.parametrize("reuse_tree", [False, True])
def test_the_search_of_a_player_is_the_one_that_it_moves_by(states, reuse_tree):
    evaluator = evaluators.rollout(TICTACTOE)
    player = search_player(TICTACTOE, evaluator, num_simulations=16, reuse_tree=reuse_tree)
    memory = start_memory(player, states)
    action, judgement, _ = act(player, jax.random.key(3), states, memory)
    found = search(player, jax.random.key(3), states, memory)
    np.testing.assert_array_equal(found.action, action)
    np.testing.assert_array_equal(found.value, judgement.value)
    assert search(random_player(TICTACTOE), jax.random.key(3), states) is None
