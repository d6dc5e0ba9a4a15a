"""`alphazero_policy` on every registered game, against a plain-Python search that calls the game's own rules."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracles import puct
from oracles.one_state import HashedPosition, OneStateRules, batch_of

import azjax
from azjax.games.game import available
from azjax.search import alphazero_policy, evaluators

NUM_ROWS = 97  # of the table that judges positions
NUM_SIMULATIONS = 100
PLIES = (0, 3, 8)  # random ones before each search

# Up to 16 slots edges are kept in tables, with more in chains: both, with a slot for every action and without.
GAMES = [*map(azjax.make, available()), azjax.make("mnk", columns=5, rows=5, in_a_row=4)]


def assert_search_equals_the_plain_one(game, make_positions):
    """Of the positions that `make_positions(rules)` lists; returns the plain searches."""
    generator = np.random.default_rng(1)
    logits = generator.integers(-2, 4, (NUM_ROWS, game.num_actions)).astype(np.float32)
    params = logits, (generator.integers(-8, 9, NUM_ROWS) / 8).astype(np.float32)
    rules = OneStateRules(game, params)
    positions = make_positions(rules)
    result = alphazero_policy(
        params,
        jax.random.key(0),
        batch_of(positions),
        game=game,
        evaluator=evaluators.table(HashedPosition(game, NUM_ROWS)),
        num_simulations=NUM_SIMULATIONS,
    )
    expected = [
        puct.search(rules, rules.evaluate, position, NUM_SIMULATIONS, game.num_actions) for position in positions
    ]
    puct.assert_equal(jax.device_get(dataclasses.replace(result, tree=None)), expected)
    return expected


@pytest.mark.parametrize("game", GAMES, ids=lambda game: f"{game.name}-{game.num_actions}")
def test_trees_equal_those_of_a_plain_python_search_by_the_games_own_rules(game):
    generator = np.random.default_rng(2)

    def play(rules):
        return [rules.after_random_plies(generator, plies) for plies in PLIES]

    assert_search_equals_the_plain_one(game, play)


def test_draws_by_repetition_are_those_of_the_rules():
    game = azjax.make("brandub")

    def go_and_come_back(rules):
        """After one to three moves there and back: a position comes back below a root, or by one of its moves."""
        state, actions, positions = rules.after([]).state, [], []
        for move in ("d1-c1", "d3-c3", "c1-d1"):
            actions.append(game.action_from_text(state, move))
            state = game.step(state, jnp.int32(actions[-1]))
            positions.append(rules.after(actions))
        return positions

    trees = assert_search_equals_the_plain_one(game, go_and_come_back)
    ends = [node.position for node in trees[2].root.descendants() if node.position.terminal]
    assert any(position.rewards == (0, 0) for position in ends)
