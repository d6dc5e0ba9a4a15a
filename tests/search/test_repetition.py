"""A search finds what came before, in the game or on its own path, and its nodes carry no history."""

import dataclasses
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import azjax
from azjax.core.pytree import pytree_dataclass
from azjax.games import Game
from azjax.games.protocols import RepetitionGame, action_from_text
from azjax.games.repetition import History, new_history
from azjax.search import alphazero_policy, evaluators
from azjax.search.tree import ROOT
from benchmarks.rules.one_state import assert_search_equals_the_plain_one
from benchmarks.searches import puct

PLACES = 7
GOAL = 3


@pytree_dataclass
class RingState:
    place: chex.Array
    past: History | None
    current_player: chex.Array
    terminated: chex.Array
    rewards: chex.Array


@dataclasses.dataclass(frozen=True)
class Ring(Game, RepetitionGame):
    """A token on a ring goes left, stays or goes right. Bringing it to the goal wins; a repetition is a draw."""

    repetitions: int = 2
    name: str = "ring"
    num_actions = 3
    max_legal_actions = 3
    max_plies = 6 * PLACES + 1
    observation_shape = (PLACES,)

    def init(self, key):
        place, player = jnp.int32(0), jnp.int32(0)
        past = new_history(self.max_plies, self._key(place, player))
        return RingState(place, past, player, jnp.bool_(False), jnp.zeros(2, jnp.float32))

    def step(self, state, action):
        legal = (action >= 0) & (action < 3) & ~state.terminated
        place = jnp.where(legal, (state.place + action - 1) % PLACES, state.place)
        player = jnp.where(legal, 1 - state.current_player, state.current_player)
        past, repeats = state.past, jnp.bool_(False)
        if past is not None:
            repeats, past = past.visit(self._key(place, player), legal, self.repetitions)
        won = legal & (place == GOAL)
        sign = jnp.where(jnp.arange(2) == state.current_player, 1.0, -1.0)
        ended = state.terminated | (legal & (won | repeats))
        return RingState(place, past, player, ended, jnp.where(won, sign, 0.0).astype(jnp.float32))

    def legal_action_mask(self, state):
        return jnp.broadcast_to(~state.terminated, 3)

    def observe(self, state):
        return (jnp.arange(PLACES) == state.place).astype(jnp.float32)

    def _key(self, place, player):
        return jnp.stack([place, player]).astype(jnp.uint32)

    def position_key(self, state):
        return self._key(state.place, state.current_player)

    def without_history(self, state):
        return dataclasses.replace(state, past=None)

    def with_empty_history(self, state):
        return dataclasses.replace(state, past=new_history(self.max_plies, self.position_key(state)))

    def earlier_positions(self, state):
        return state.past

    def repeated(self, state):
        return dataclasses.replace(state, terminated=jnp.ones_like(state.terminated))

    def next_game(self, key, state):
        raise NotImplementedError("no search begins a new game")

    def with_max_plies(self, max_plies):
        raise NotImplementedError("no search changes the rules")


@dataclasses.dataclass(frozen=True)
class PlainPosition:
    place: int
    player: int
    visited: tuple
    terminal: bool = False
    rewards: tuple[float, float] = (0, 0)


@dataclasses.dataclass(frozen=True)
class PlainRing:
    repetitions: int

    def slots(self, position):
        return [0, 1, 2]

    def step(self, position, action):
        place, player = (position.place + action - 1) % PLACES, 1 - position.player
        won, repeats = place == GOAL, position.visited.count((place, player)) >= self.repetitions - 1
        sign = (1, -1) if position.player == 0 else (-1, 1)
        return PlainPosition(
            place,
            player,
            (*position.visited, (place, player)),
            won or repeats,
            tuple(float(s) for s in sign) if won else (0, 0),
        )


@dataclasses.dataclass(frozen=True)
class Table:
    """Priors and values of place and player."""

    def __call__(self, params: Any, key: chex.PRNGKey, states: Any) -> tuple[chex.Array, chex.Array]:
        priors, values = params
        index = states.place, states.current_player
        return jnp.log(priors[index]), values[index]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    # Powers of two, of which softmax makes exactly the numbers that the oracle uses.
    weights = 2.0 ** rng.integers(-2, 3, (PLACES, 2, 3))
    return (weights / weights.sum(-1, keepdims=True)).astype(np.float32), rng.uniform(-0.5, 0.5, (PLACES, 2)).astype(
        np.float32
    )


@pytest.mark.parametrize(
    ("repetitions", "moves"),
    [
        *((2, moves) for moves in ([], [2], [1, 2, 2], [0, 0, 1], [1, 2, 1, 2])),
        *((3, moves) for moves in ([], [1, 1], [1, 1, 1], [0, 2, 0], [2, 0, 1])),
        (4, [1, 1, 1, 1, 1]),
    ],
    ids=str,
)
def test_visits_equal_those_of_a_plain_search_whose_positions_hold_their_history(table, repetitions, moves):
    game, rules = Ring(repetitions), PlainRing(repetitions)
    state = game.init(jax.random.key(0))
    position = PlainPosition(0, 0, ((0, 0),))
    for move in moves:
        state, position = game.step(state, jnp.int32(move)), rules.step(position, move)
    assert not position.terminal
    result = alphazero_policy(
        table,
        jax.random.key(1),
        jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), state),
        game=game,
        evaluator=Table(),
        num_simulations=200,
    )
    expected = puct.search(
        rules, lambda p: (table[0][p.place, p.player], float(table[1][p.place, p.player])), position, 200, 3
    )
    for row in range(2):
        np.testing.assert_array_equal(result.visits[row], expected.visits)
        np.testing.assert_allclose(result.q_values[row], expected.q_values, atol=1e-5)
        np.testing.assert_allclose(result.value[row], expected.value, atol=1e-5)


def test_nodes_have_no_history(table):
    states = jax.vmap(Ring().init)(jax.random.split(jax.random.key(0), 3))
    tree = alphazero_policy(table, jax.random.key(0), states, game=Ring(), evaluator=Table(), num_simulations=4).tree
    assert tree.states.past is None
    assert tree.histories.table.shape[0] == 3


@pytest.mark.slow
def test_a_brandub_search_scores_a_move_back_as_a_draw():
    game = azjax.make("brandub")
    state = game.init(jax.random.key(0))
    for move in ("d1-c1", "d3-c3", "c1-d1"):
        state = game.step(state, jnp.int32(action_from_text(game, state, move)))
    back = action_from_text(game, state, "c3-d3")
    result = alphazero_policy(
        None,
        jax.random.key(0),
        jax.tree.map(lambda leaf: leaf[None], state),
        game=game,
        evaluator=evaluators.uniform(game),
        num_simulations=60,
    )
    tree = result.tree
    slot = int(np.flatnonzero(np.asarray(tree.root_actions[0]) == back)[0])
    is_child = np.asarray((tree.nodes.parent == ROOT) & (tree.nodes.slot == slot))[:, 0]
    (node,) = np.flatnonzero(is_child & (np.arange(tree.num_nodes) > 0))
    assert bool(tree.states.terminated[node, 0])
    assert float(tree.nodes.discount[node, 0]) == 0


@pytest.mark.slow
def test_draws_by_repetition_are_those_of_the_rules():
    game = azjax.make("brandub")

    def go_and_come_back(rules):
        """After one to three moves there and back: a position comes back below a root, or by one of its moves."""
        state, actions, positions = rules.after([]).state, [], []
        for move in ("d1-c1", "d3-c3", "c1-d1"):
            actions.append(action_from_text(game, state, move))
            state = game.step(state, jnp.int32(actions[-1]))
            positions.append(rules.after(actions))
        return positions

    trees = assert_search_equals_the_plain_one(game, go_and_come_back)
    ends = [node.position for node in trees[2].root.descendants() if node.position.terminal]
    assert any(position.rewards == (0, 0) for position in ends)
