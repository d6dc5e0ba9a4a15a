"""The claims of the study of tactics, on its whole sets, and its exhaustive check against plain Python."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rich.progress import Progress
from studies import load_study

pytestmark = pytest.mark.slow


tactics = load_study("tactics")


@functools.cache
def mates(name, moves):
    """The states of the study, and bool [B, A]: which actions mate."""
    game, number = tactics.GAMES[name], tactics.NUM_POSITIONS[moves]
    states = tactics.read(game, tactics.find_positions(game, moves, number, jax.random.key(tactics.SEED)))
    return states, np.asarray(tactics.mating_actions(game, states, moves))


@pytest.mark.parametrize("solver", [False, True])
@pytest.mark.parametrize(
    ("name", "moves", "num_simulations"),
    [("Connect Four", 1, 400), ("Santorini 5x5", 1, 400), ("Brandub", 1, 400), ("Connect Four", 2, 1000)],
)
def test_every_mate_of_the_set_is_found(name, moves, num_simulations, solver):
    states, mating = mates(name, moves)
    assert len(mating) == tactics.NUM_POSITIONS[moves]
    result = tactics.search(tactics.GAMES[name], states, num_simulations, solver=solver)
    assert mating[np.arange(len(mating)), np.asarray(result.action)].all()


@pytest.mark.parametrize("name", tactics.GAMES)
def test_a_proven_mate_in_two_is_a_win_and_one_of_its_actions_is_played(name):
    states, mating = mates(name, 2)
    states, mating = jax.tree.map(lambda leaf: leaf[:20], states), mating[:20]
    result = tactics.search(tactics.GAMES[name], states, 5000, solver=True)
    bounds = np.asarray(result.bounds)
    proven = bounds[:, 0] == bounds[:, 1]
    assert proven.any()
    assert (bounds[proven] == 1).all()
    assert (bounds[:, 1] == 1).all()


@pytest.mark.parametrize("name", tactics.SOLVED)
def test_100000_simulations_prove_every_position_rightly(name):
    row = tactics.measure_proofs(name, Progress(disable=True))
    assert row["positions"] == {"tic-tac-toe": 4520, "Santorini 2x2": 1311}[name]
    assert row["simulations"][-1] == 100_000
    assert row["proven"][-1] == row["positions"]
    assert row["wrong_bounds"] == 0


class PlainCheck:
    """Mates found by plain recursion, one position at a time."""

    def __init__(self, game):
        self.play = jax.jit(jax.vmap(game.step, (None, 0)))
        self.legal = jax.jit(game.legal_action_mask)
        self.most = game.max_legal_actions

    def children(self, state):
        """Each legal action and the state after it."""
        actions = np.flatnonzero(self.legal(state))
        if not len(actions):
            return {}
        states = jax.device_get(self.play(state, jnp.asarray(np.resize(actions, self.most), jnp.int32)))
        return {int(a): jax.tree.map(lambda leaf, i=i: leaf[i], states) for i, a in enumerate(actions)}

    def wins(self, state, player, plies):
        """Whether `player` has won, or wins within so many plies whatever the other does."""
        if state.terminated:
            return state.rewards[player] == 1
        if plies == 0:
            return False
        results = (self.wins(child, player, plies - 1) for child in self.children(state).values())
        return any(results) if state.current_player == player else all(results)

    def mating_actions(self, state, moves):
        player = int(state.current_player)
        return {a for a, child in self.children(state).items() if self.wins(child, player, 2 * moves - 2)}


@pytest.mark.parametrize("name", tactics.GAMES)
def test_the_exhaustive_check_equals_plain_recursion(name):
    game = tactics.GAMES[name]
    positions, _, in_two = jax.device_get(tactics.random_positions(game, jax.random.key(5)))
    rows = np.random.default_rng(5).choice(np.flatnonzero(in_two), 64, replace=False)
    states = jax.tree.map(lambda leaf: leaf[rows], positions)
    found = [set(np.flatnonzero(row)) for row in np.asarray(tactics.mating_actions(game, states, 2))]
    having = [i for i in range(64) if found[i]][:3]
    lacking = [i for i in range(64) if not found[i]][:3]
    assert having
    assert lacking
    plain = PlainCheck(game)
    for i in having + lacking:
        assert plain.mating_actions(jax.tree.map(lambda leaf, i=i: leaf[i], states), 2) == found[i]
