"""How players of single positions, and of a time, differ from players of many."""

import jax
import pytest

from azjax.evaluation import (
    RememberingPolicy,
    for_one_position,
    for_seconds,
    policy_player,
    random_player,
    search_player,
    start_memory,
    uct_player,
    with_simulations,
)
from azjax.evaluation.searching_players import keeping_trees, several_leaves
from azjax.games.registry import make
from azjax.networks import make_network
from azjax.search import AlphaZero, GumbelAlphaZero, evaluators

GAME = make("connect2")
NETWORK = make_network("mlp", GAME, width=8, depth=1)
VARIABLES = NETWORK.init(jax.random.key(0), GAME)
STARTS = jax.vmap(GAME.init)(jax.random.split(jax.random.key(0), 1))


def searching(num_simulations):
    evaluator = evaluators.network(NETWORK, GAME)
    return search_player(GAME, evaluator, VARIABLES, num_simulations=num_simulations, name="agent")


@pytest.mark.parametrize(
    ("num_simulations", "leaves"), [(1, 1), (199, 1), (200, 2), (400, 4), (804, 4), (1600, 16), (1601, 1), (6400, 16)]
)
def test_a_network_evaluates_a_hundredth_of_the_simulations_at_once(num_simulations, leaves):
    player = for_one_position(searching(num_simulations))
    assert (player.policy.policy.leaves_per_step, player.policy.policy.num_simulations) == (leaves, num_simulations)
    assert player.name == "agent"


def test_a_search_in_chunks_has_the_leaves_of_all_its_simulations():
    policy = searching(64).policy.policy
    assert several_leaves(policy, 1600).leaves_per_step == 16
    assert several_leaves(policy, 64) == policy
    without_network = uct_player(GAME, num_simulations=64).policy.policy
    assert several_leaves(without_network, 1600) == without_network


def test_other_players_stay_as_they_are():
    rollouts = search_player(GAME, evaluators.rollout(GAME), num_simulations=1600, leaves_per_step=4)
    for player in (random_player(GAME), uct_player(GAME, num_simulations=1600), rollouts):
        assert for_one_position(player).policy == player.policy


def test_another_number_of_simulations_keeps_the_leaves_that_divide_it():
    player = for_one_position(searching(1600))
    assert with_simulations(player, 24).policy.policy.leaves_per_step == 8
    assert with_simulations(player, 25).policy.policy.leaves_per_step == 1


@pytest.mark.parametrize(("seconds", "leaves", "nodes"), [(0.01, 1, 4096), (0.1, 8, 8192), (1.0, 64, 65536)])
def test_a_search_for_a_time_has_leaves_and_room_for_it(seconds, leaves, nodes):
    policy = for_seconds(searching(400), seconds).policy.policy
    assert (policy.leaves_per_step, policy.max_nodes) == (leaves, nodes)
    without_network = for_seconds(uct_player(GAME, num_simulations=64), seconds).policy.policy
    assert without_network.leaves_per_step == 1
    assert without_network.max_nodes >= nodes


def test_a_number_of_leaves_that_was_chosen_stays():
    player = search_player(GAME, evaluators.network(NETWORK, GAME), VARIABLES, num_simulations=9, leaves_per_step=3)
    timed = for_seconds(player, 1.0)
    assert timed.policy.policy.leaves_per_step == 3
    result = timed.policy.search_within(timed.params, jax.random.key(0), STARTS, 1e-9)
    assert result.visits.sum() == 16 * 3


def test_gumbels_search_for_a_time_is_alphazeros():
    evaluator = evaluators.network(NETWORK, GAME)
    gumbel, alphazero = (
        for_seconds(policy_player(kind(GAME, evaluator, 64, solver=True), VARIABLES), 1.0).policy.policy
        for kind in (GumbelAlphaZero, AlphaZero)
    )
    assert gumbel == alphazero


def test_a_player_that_keeps_its_tree_is_the_same_search():
    player = searching(64)
    kept = keeping_trees(player)
    assert (kept.name, kept.params, kept.policy.policy) == (player.name, player.params, player.policy.policy)
    assert start_memory(player, STARTS) is None
    assert start_memory(kept, STARTS).max_nodes == 3 * 64 + 1
    assert isinstance(for_seconds(kept, 1.0).policy, RememberingPolicy)
    assert not isinstance(for_seconds(player, 1.0).policy, RememberingPolicy)


def test_other_players_keep_no_tree():
    player = random_player(GAME)
    assert keeping_trees(player) is player


def test_other_players_have_no_time():
    assert for_seconds(random_player(GAME), 1.0).policy == random_player(GAME).policy
