"""Random games that tests of pictures share."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

import azjax.games

OPTIONS = {
    "chomp": {"columns": 5, "rows": 4},
    "tictactoe": {},
    "connect2": {},
    "mnk": {"columns": 15, "rows": 15, "in_a_row": 5},
    "connect_four": {},
    "hex": {"size": 5, "swap": True},
    "othello": {"size": 6},
    "santorini": {"size": 5, "workers": 2},
    "brandub": {},
    "hnefatafl": {},
    "breakthrough": {"columns": 5, "rows": 6},
}


@functools.cache
def random_game(name, seed=0, plies=30):
    """(the game, its states, its actions) of at most `plies` random plies."""
    game, generator = azjax.games.make(name, **OPTIONS[name]), np.random.default_rng(seed)
    step, mask = jax.jit(game.step), jax.jit(game.legal_action_mask)
    states, actions = [game.init(jax.random.key(0))], []
    while len(actions) < plies and not states[-1].terminated:
        actions.append(int(generator.choice(np.flatnonzero(mask(states[-1])))))
        states.append(step(states[-1], jnp.int32(actions[-1])))
    return game, states, actions
