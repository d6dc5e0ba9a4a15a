"""Searches of `alphazero_policy` in m,n,k games whose positions are evaluated by a table."""

import dataclasses
import functools
import random

import jax
import jax.numpy as jnp
import numpy as np
from results import without_tree

import azjax.games
from azjax.games.mnk import Mnk
from azjax.search import alphazero_policy, evaluators
from benchmarks.rules.mnk import MnkRules

KEY_SEED = 0
NUM_ROWS = 97  # of the table that evaluates m,n,k positions
BATCH = 64


def search(params, states, *, game, evaluator, num_simulations, key_seed=KEY_SEED, **options):
    """The result on the host without its tree, and no NaN anywhere in it."""
    result = alphazero_policy(
        params,
        jax.random.key(key_seed),
        states,
        game=game,
        evaluator=evaluator,
        num_simulations=num_simulations,
        **options,
    )
    result = without_tree(result)
    for leaf in jax.tree.leaves(result):
        if np.issubdtype(leaf.dtype, np.floating):
            assert not np.isnan(leaf).any()
    return result


def assert_equal_rows(left, right):
    jax.tree.map(np.testing.assert_array_equal, left, right)


@dataclasses.dataclass(frozen=True)
class HashedRow:
    """The table row of a position: the stones weigh random integers, modulo the number of rows."""

    game: Mnk

    @property
    def weights(self):
        return np.random.default_rng(3).integers(0, 1 << 20, (self.game.num_actions, 2), dtype=np.int32)

    def __call__(self, state):
        stones = self.game.observe(state).reshape(-1, 2).astype(jnp.int32)
        return jnp.sum(stones * self.weights) % NUM_ROWS

    def of_position(self, position):
        own, other = position.player + 1, 2 - position.player
        stones = np.array([[cell == own, cell == other] for cell in position.board])
        return int((stones * self.weights).sum() % NUM_ROWS)


def hashed_params(game):
    generator = np.random.default_rng(4)
    logits = generator.integers(-2, 4, (NUM_ROWS, game.num_actions)).astype(np.float32)
    return logits, (generator.integers(-8, 9, NUM_ROWS) / 8).astype(np.float32)


def uniform_params(game):
    return np.zeros((NUM_ROWS, game.num_actions), np.float32), np.zeros(NUM_ROWS, np.float32)


@functools.partial(jax.jit, static_argnums=0)
def play_all(game, actions):
    """States [B, ...] after actions int32 [B, T]; -1 plays nothing."""

    def play_one(sequence):
        start = game.init(jax.random.key(KEY_SEED))
        return jax.lax.scan(lambda state, action: (game.step(state, action), None), start, sequence)[0]

    return jax.vmap(play_one)(actions)


def states_after(game, sequences):
    length = game.num_actions
    return play_all(game, np.array([[*moves, *[-1] * (length - len(moves))] for moves in sequences], np.int32))


def random_positions(game, keep=None):
    """Positions of random games, a batch of them, and their states."""
    rules = MnkRules(game.columns, game.rows, game.in_a_row)
    positions, sequences = zip(*rules.random_positions(random.Random(game.num_actions), BATCH, keep), strict=True)
    return positions, states_after(game, sequences)


TICTACTOE = azjax.games.make("tictactoe")
CONNECT2 = azjax.games.make("connect2")
HASH_EVALUATOR = evaluators.table(HashedRow(TICTACTOE))


def same_search(temperature, key_seed=KEY_SEED, **options):
    """One tictactoe position, X_O______ with X to move, searched in every one of 4096 rows."""
    states = states_after(TICTACTOE, [[0, 2]] * 4096)
    return search(
        hashed_params(TICTACTOE),
        states,
        game=TICTACTOE,
        evaluator=HASH_EVALUATOR,
        num_simulations=16,
        temperature=temperature,
        key_seed=key_seed,
        **options,
    )


def assert_drawn_from(actions, probabilities):
    """Chi-square; the limits are exceeded once in 1000 keys by a draw from `probabilities`."""
    counts = np.bincount(actions, minlength=len(probabilities))
    possible = probabilities > 0
    assert not counts[~possible].any()
    expected = len(actions) * probabilities[possible]
    limits = {1: 10.83, 2: 13.82, 3: 16.27, 4: 18.47, 5: 20.52, 6: 22.46}
    assert ((counts[possible] - expected) ** 2 / expected).sum() < limits[possible.sum() - 1]
