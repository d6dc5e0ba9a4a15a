"""Simulations that count by the expected error of their evaluation, against a plain search written again."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.core.errors import InputError
from azjax.games.registry import make
from azjax.networks import make_network
from azjax.search import AlphaZero, GumbelAlphaZero, SearchHyper, evaluators
from azjax.search.reuse import advance
from benchmarks.rules.table_game import TableGame, TableRules, slot_priors

F32 = np.float32
GAME = TableGame(seed=1, width=128, depth=8, actions=11, slots=6)
MANY_SLOTS = TableGame(seed=3, width=64, depth=8, actions=40, slots=24)
# The weights of these errors, 0.25 / (error + 1/32), are 4, 2, 1 and 1/2; and 8 without an error.
ERRORS = (1 / 32, 3 / 32, 7 / 32, 15 / 32)
C_PUCT = 1.25


@dataclasses.dataclass(frozen=True)
class Tables:
    """Looks priors, values and errors up."""

    def __call__(self, params, key, states):
        return tuple(table[states.node] for table in params)


def errors_of(game):
    return np.random.default_rng(0).choice(ERRORS, game.num_nodes).astype(F32)


def searched(game, nodes, num_simulations, kind=AlphaZero, **options):
    params = game.tables.prior_logits, game.tables.values, errors_of(game)
    policy = kind(game, Tables(), num_simulations, **options)
    return jax.jit(lambda states: policy(params, jax.random.key(0), states, hyper=SearchHyper(c_puct=C_PUCT)))(
        game.state_at(nodes)
    )


def test_errors_that_no_value_can_have_count_as_the_nearest():
    values = GAME.tables.prior_logits, GAME.tables.values
    given = np.random.default_rng(2).choice(np.array([-1, -1 / 32, 0, 2, 5, np.inf, np.nan], F32), GAME.num_nodes)
    taken = np.where(np.isnan(given), F32(2), np.clip(given, 0, 2))
    policy = AlphaZero(GAME, Tables(), 40)
    found, expected = (
        policy((*values, errors), jax.random.key(0), GAME.state_at(np.arange(4))) for errors in (given, taken)
    )
    np.testing.assert_array_equal(found.visits, expected.visits)
    np.testing.assert_array_equal(found.value, expected.value)
    assert np.isfinite(found.q_values).all()


class Node:
    """A visited position: what its visits count, and the sums of its returns, for the player who moved into it."""

    def __init__(self, position):
        self.position, self.children, self.waits = position, {}, False
        self.visits, self.weight, self.returns = 0, F32(0), F32(0)

    def add(self, visits, weight, returns):
        self.visits, self.weight, self.returns = self.visits + visits, self.weight + weight, self.returns + returns


def plain_search(game, root_node, num_simulations, leaves_per_step):
    """Visits and mean returns by action, and the value of the root."""
    rules, priors, values = TableRules(game), slot_priors(game), game.tables.values
    weights = F32(0.25) / (errors_of(game) + F32(1 / 32))

    def slot_to_follow(node):
        actions, prior = rules.slots(node.position), priors[node.position.node]
        below = F32(node.visits - 1) * node.weight / F32(node.visits)
        exploration = F32(C_PUCT) * np.sqrt(np.maximum(below, F32(1)))
        untried = [slot for slot, action in enumerate(actions) if action >= 0 and slot not in node.children]
        candidates = [*node.children, *([max(untried, key=lambda slot: (prior[slot], -slot))] if untried else [])]

        def score(slot):
            child = node.children.get(slot)
            q, weight = (F32(0), F32(0)) if child is None else (child.returns / child.weight, child.weight)
            return q + exploration * (prior[slot] / (F32(1) + weight))

        return max(candidates, key=lambda slot: (score(slot), -slot))

    root = Node(rules.position_at(root_node))
    root_weight = weights[root_node]
    root.add(1, root_weight, root_weight * F32(values[root_node]))
    for _ in range(num_simulations // leaves_per_step):
        found = []
        for _ in range(leaves_per_step):
            path = [root]
            while not (path[-1].position.terminal or path[-1].waits or (len(path) > 1 and not path[-1].visits)):
                node, slot = path[-1], slot_to_follow(path[-1])
                if slot not in node.children:
                    node.children[slot] = Node(rules.step(node.position, int(rules.slots(node.position)[slot])))
                path.append(node.children[slot])
            found.append(path)
            if leaves_per_step > 1:
                path[-1].waits = True
                for node in path:
                    node.add(1, F32(1), F32(-1))
        for path in found:
            path[-1].waits = False
            leaf = path[-1].position
            value, weight = (F32(0), F32(8)) if leaf.terminal else (F32(values[leaf.node]), weights[leaf.node])
            waited = leaves_per_step > 1
            for depth in reversed(range(len(path))):
                node = path[depth]
                if depth > 0:
                    above = path[depth - 1]
                    mover, child = above.position.player, node.position
                    discount = 0 if child.terminal else 1 if child.player == mover else -1
                    value = F32(child.rewards[mover]) + F32(discount) * value
                node.add(1 - waited, weight - F32(waited), weight * value + F32(waited))
    visits, q = np.zeros(game.num_actions, int), np.zeros(game.num_actions, F32)
    for slot, child in root.children.items():
        action = rules.slots(root.position)[slot]
        visits[action], q[action] = child.visits, child.returns / child.weight
    return visits, q, root.returns / root.weight


@pytest.mark.slow_except("game1-60-4")
@pytest.mark.parametrize(
    ("game", "num_simulations", "leaves_per_step"), [(GAME, 60, 1), (GAME, 60, 4), (MANY_SLOTS, 120, 1)]
)
def test_trees_equal_those_of_a_plain_search(game, num_simulations, leaves_per_step):
    nodes = np.flatnonzero(~game.tables.terminal)[:48]
    result = searched(game, nodes, num_simulations, leaves_per_step=leaves_per_step)
    expected = [plain_search(game, node, num_simulations, leaves_per_step) for node in nodes]
    for found, wanted in zip((result.visits, result.q_values, result.value), zip(*expected, strict=True), strict=True):
        np.testing.assert_array_equal(found, np.stack(wanted))
    equal = AlphaZero(game, evaluators.table(lambda state: state.node), num_simulations)
    params = game.tables.prior_logits, game.tables.values
    without = equal(params, jax.random.key(0), game.state_at(nodes), hyper=SearchHyper(c_puct=C_PUCT))
    assert (np.asarray(without.visits) != np.asarray(result.visits)).any()


@pytest.mark.slow
def test_a_tree_that_is_kept_keeps_its_means():
    """The root below a move has the mean of the edge that led to it, less the reward, for its own player."""
    nodes = np.flatnonzero(~GAME.tables.terminal)[:32]
    result = searched(GAME, nodes, 60)
    action = result.action
    rows = jnp.arange(len(nodes))
    following = jax.vmap(GAME.step)(GAME.state_at(nodes), action)
    discount = jnp.where(following.current_player == GAME.state_at(nodes).current_player, 1.0, -1.0)
    reward = following.rewards[rows, GAME.state_at(nodes).current_player]
    wanted = (result.q_values[rows, action] - reward) * discount
    tree = advance(result.tree, action)
    on = ~np.asarray(following.terminated)
    np.testing.assert_allclose(tree.nodes.q[0][on], wanted[on], atol=1e-6)


@pytest.mark.slow
def test_the_gumbel_search_has_means_by_weight():
    nodes = np.flatnonzero(~GAME.tables.terminal)[:16]
    result = searched(GAME, nodes, 32, GumbelAlphaZero)
    nodes_of = result.tree.nodes
    children = (np.asarray(nodes_of.visits) > 0) & (np.asarray(nodes_of.parent) == 0)
    children[0] = False
    means = np.asarray(nodes_of.returns)[children] / np.asarray(nodes_of.sums["weight"])[children]
    np.testing.assert_allclose(np.asarray(nodes_of.q)[children], means, rtol=1e-6)
    assert (np.asarray(nodes_of.sums["weight"])[children] != np.asarray(nodes_of.visits)[children]).any()
    np.testing.assert_array_equal(result.visits.sum(axis=1), 32)


def test_a_network_without_errors_is_refused():
    game = make("connect2")
    network = make_network("mlp", game, width=8, depth=1)
    policy = AlphaZero(game, evaluators.network(network, game, with_error=True), 4)
    states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), 1))
    with pytest.raises(InputError, match="needs the auxiliary output 'value_error'; the network gives: none"):
        policy(network.init(jax.random.key(0), game), jax.random.key(0), states)
