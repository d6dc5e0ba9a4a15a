"""Searches in programs that forbid implicit promotion (`jax_numpy_dtype_promotion`)."""

import jax
import pytest
from every_policy import NAMES, policies, search_twice

import azjax
from azjax.search import evaluators


@pytest.mark.slow_except("puct-brandub", "gumbel-tictactoe")
@pytest.mark.parametrize("game", ["brandub", "tictactoe"])
@pytest.mark.parametrize("name", NAMES)
def test_no_dtype_is_promoted_implicitly(name, game):
    game = azjax.make(game)
    policy = policies(game, evaluators.uniform(game))[name]
    states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), 2))
    with jax.numpy_dtype_promotion("strict"):
        jax.eval_shape(lambda states: search_twice(policy, None, states), states)
