"""Batches of positions of Brandub: asked, played on and compared with plain-Python rules."""

import functools
import random

import jax
import jax.numpy as jnp
import numpy as np

import azjax.games
from benchmarks.rules.tafl import START, action_of

BATCH = 200  # every batch is filled up to it, so that a method of a game is compiled once
QUICK = {"xla_backend_optimization_level": 0}  # compiling takes most of the time of these tests
NUM_ACTIONS = 1176
GAME = azjax.games.make("brandub")
NOTEBOOK = azjax.games.make("brandub", rules="seed000")
same = np.testing.assert_array_equal
SHUFFLE = ["d1-c1", "d3-c3", "c1-d1", "c3-d3"]  # four quiet moves that lead back to the start


@functools.cache
def jitted(game, method):
    return jax.jit(jax.vmap(getattr(game, method)), compiler_options=QUICK)


def ask(game, method, states):
    return jax.device_get(jitted(game, method)(states))


def step(game, states, actions):
    """The states after int [BATCH] actions; a shorter list is filled up with -1, which plays nothing."""
    column = np.full(BATCH, -1, np.int32)
    column[: len(actions)] = actions
    return jitted(game, "step")(states, column)


def stack(states):
    """One batch of the states, over and over."""
    return jax.tree.map(lambda *leaves: fill(np.stack(leaves)), *states)


def fill(leaf):
    """BATCH rows: those of the leaf, over and over."""
    return np.resize(leaf, (BATCH, *leaf.shape[1:]))


def row(states, index):
    return jax.tree.map(lambda leaf: jnp.asarray(leaf[index]), states)


def starts(game):
    return stack([game.init(jax.random.key(0))])


def replay(game, states, games):
    """The states before each ply, and the last ones, of games given as lists of actions; -1 is played after an end."""
    yield states
    for ply in range(max(map(len, games))):
        states = step(game, states, [actions[ply] if ply < len(actions) else -1 for actions in games])
        yield states


def after(game, moves, text=START):
    """One state after `moves` such as "d1-c1"."""
    *_, states = replay(game, stack([game.from_text(text)]), [[action_of(move) for move in moves]])
    return row(states, 0)


def masks_of(lists):
    masks = np.zeros((len(lists), NUM_ACTIONS), bool)
    for mask, actions in zip(masks, lists, strict=True):
        mask[actions] = True
    return masks


def slot_masks(slots):
    """bool [n, A] of `legal_slots`; no action may stand in two valid slots."""
    actions, valid = slots
    counts = np.zeros((len(actions), NUM_ACTIONS), int)
    np.add.at(counts, (np.arange(len(actions))[:, None], actions), valid)
    assert counts.max() <= 1
    return counts == 1


def result_of(state):
    """1, 0 or -1 as the attackers see it; None while the game goes on."""
    assert float(state.rewards.sum()) == 0
    return int(state.rewards[0]) if state.terminated else None


def random_games(rules, seed, number=30, plies=100):
    """Games (position, action), a third of them from set-up positions with few or many pieces."""
    generator = random.Random(seed)
    return [
        rules.random_game(generator, None if index % 3 else rules.random_set_up(generator), plies)
        for index in range(number)
    ]
