"""The search on every registered game, against a plain-Python one that calls the game's own rules, and its pictures."""

import xml.etree.ElementTree as ElementTree

import jax
import numpy as np
import pytest

import azjax
from azjax.games.registry import available
from azjax.render import to_graphviz, to_svg, to_text
from azjax.search import alphazero_policy, evaluators
from benchmarks.rules.one_state import assert_search_equals_the_plain_one

pytestmark = pytest.mark.slow

PLIES = (0, 3, 8)  # random ones before each search

# Dense edges (up to 16 slots) and blocked ones, with a slot for every action and without.
GAMES = [
    *map(azjax.make, available()),
    azjax.make("santorini", size=5, workers=2),
    azjax.make("mnk", columns=5, rows=5, in_a_row=4),
]


@pytest.mark.parametrize("game", GAMES, ids=lambda game: f"{game.name}-{game.num_actions}")
def test_trees_equal_those_of_a_plain_python_search_by_the_games_own_rules(game):
    generator = np.random.default_rng(2)

    def play(rules):
        return [rules.after_random_plies(generator, plies) for plies in PLIES]

    assert_search_equals_the_plain_one(game, play)


@pytest.mark.parametrize("name", available())
def test_the_tree_of_every_game_can_be_drawn(name):
    game = azjax.make(name)
    states = jax.tree.map(lambda leaf: leaf[None], game.init(jax.random.key(0)))
    evaluator = evaluators.uniform(game)
    tree = alphazero_policy(None, jax.random.key(0), states, game=game, evaluator=evaluator, num_simulations=3).tree
    assert len(ElementTree.fromstring(to_svg(tree, game)).findall("{http://www.w3.org/2000/svg}svg")) == 4
    assert to_graphviz(tree, game).count("->") == 3
    assert game.to_text(jax.tree.map(lambda leaf: leaf[0], states)) in to_text(tree, game)
