"""What all policies have in common: what they refuse, gradients, and other settings of JAX."""

import dataclasses
import os
import re
import subprocess
import sys
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import azjax
from azjax.core.errors import InputError
from azjax.core.pytree import pytree_dataclass
from azjax.search import AlphaZero, GumbelAlphaZero, SearchHyper, evaluators
from azjax.search.rules.puct import Puct

GAME = azjax.make("tictactoe")
UNIFORM = evaluators.uniform(GAME)
STATES = jax.vmap(GAME.init)(jax.random.split(jax.random.key(0), 2))
POLICY = AlphaZero(GAME, UNIFORM, 4)


@pytest.mark.usefixtures("types_unchecked")
@pytest.mark.parametrize("key", [jax.random.split(jax.random.key(0), 3), jax.random.split(jax.random.PRNGKey(0), 3)])
def test_keys_of_another_batch_are_refused(key):
    with pytest.raises(InputError, match=r"key must be one key, or one for each of 2 states, got the shape \[3\]"):
        POLICY(None, key, STATES)


def test_numbers_of_another_batch_are_refused():
    with pytest.raises(
        InputError, match=r"c_puct must be one number, or one for each of 2 states, got the shape \[3\]"
    ):
        POLICY(None, jax.random.key(0), STATES, hyper=SearchHyper(c_puct=jnp.ones(3)))


@pytest.mark.usefixtures("types_unchecked")
@pytest.mark.parametrize("key", [0, None], ids=str)
def test_what_is_no_key_is_refused(key):
    with pytest.raises(InputError, match=rf"key must be a key, such as jax.random.key\(0\), got {key}"):
        POLICY(None, key, STATES)


class Fewer(NamedTuple):
    q: Any


@pytree_dataclass
class OtherTerms(Puct):
    def update(self, edge):
        return Fewer(edge.q)


@pytree_dataclass
class NoTerms(Puct):
    def init(self, prior):
        return prior, prior


@pytree_dataclass
class OneTarget(Puct):
    def target(self, prior, visits, q):
        return visits[:, 0].astype(jnp.float32)


@pytest.mark.usefixtures("types_unchecked")
@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (OtherTerms, "OtherTerms: init and update must return the same NamedTuple, got PuctTerms and Fewer"),
        (NoTerms, r"NoTerms.init must return a NamedTuple with q and what else it keeps, got \(ShapeDtypeStruct"),
        (OneTarget, r"OneTarget.target must return \[2, 9\], a number of each slot, got \[2\]"),
    ],
)
def test_what_a_rule_of_ones_own_returns_is_checked(rule, message):
    policy = AlphaZero(GAME, UNIFORM, 4, rule=lambda hyper, game: rule(jnp.float32(1), jnp.float32(0)))
    with pytest.raises(InputError, match=f"^{message}"):
        policy(None, jax.random.key(0), STATES)


@pytest.mark.usefixtures("types_unchecked")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"hyper": {"c_puct": 1.0}}, "hyper must be a SearchHyper, got a dict"),
        ({"explore": "no"}, "explore must be True or False, and static, got 'no'"),
        ({"tree": "result"}, "tree must be the `tree` of a SearchResult, got a str"),
    ],
)
def test_an_argument_of_another_type_is_refused(arguments, message):
    with pytest.raises(InputError, match=f"^{message}$"):
        POLICY(None, jax.random.key(0), STATES, **arguments)


@pytest.mark.usefixtures("types_unchecked")
def test_the_name_of_a_game_in_its_place_is_refused():
    with pytest.raises(InputError, match=r"game must be a game, such as azjax\.make\('tictactoe'\), got its name"):
        AlphaZero("tictactoe", UNIFORM, 4)


@pytest.mark.usefixtures("types_unchecked")
def test_states_of_another_game_or_type_and_a_batch_of_none_are_refused():
    others = jax.vmap(azjax.make("connect_four").init)(jax.random.split(jax.random.key(0), 2))
    halves = dataclasses.replace(STATES, rewards=np.asarray(STATES.rewards, np.float16))
    none = jax.tree.map(lambda leaf: leaf[:0], STATES)
    for states, message in (
        (others, "tictactoe: these states are of another game than"),
        (halves, r"the leaf \.rewards of the states is float16 \[2\] and float32 \[2\]: it needs one type"),
        (none, "a search needs one state or more, got a batch of none"),
        (None, "states must be a batch of states of tictactoe, got a NoneType"),
    ):
        with pytest.raises(InputError, match=message):
            POLICY(None, jax.random.key(0), states)


@pytest.mark.parametrize(
    ("logits", "value"),
    [((2, 8), (2,)), ((2, 10), (2,)), ((2, 1), (2,)), ((9,), (2,)), ((2, 9), ()), ((2, 9), (2, 1)), ((9, 2), (2,))],
    ids=str,
)
def test_an_evaluator_that_returns_other_shapes_is_refused(logits, value):
    def evaluator(params, key, states):
        return jnp.zeros(logits), jnp.zeros(value)

    got = re.escape(f"it returned ({list(logits)}, {list(value)})")
    with pytest.raises(InputError, match=rf"must return prior_logits \[2, 9\] and value \[2\], .*{got}"):
        AlphaZero(GAME, evaluator, 4)(None, jax.random.key(0), STATES)


def test_an_evaluator_that_returns_no_pair_is_refused():
    def evaluator(params, key, states):
        return {"logits": jnp.zeros((2, 9)), "value": jnp.zeros(2)}

    with pytest.raises(InputError, match=r"it returned \{'logits': \[2, 9\], 'value': \[2\]\}"):
        AlphaZero(GAME, evaluator, 4)(None, jax.random.key(0), STATES)


def test_an_evaluator_that_is_not_hashable_is_refused():
    @dataclasses.dataclass
    class Network:
        weights: jax.Array

        def __call__(self, params, key, states):
            return UNIFORM(params, key, states)

    with pytest.raises(InputError, match=r"a policy must be hashable, .* arrays are given as `params`"):
        AlphaZero(GAME, Network(jnp.zeros(9)), 4)(None, jax.random.key(0), STATES)


@pytest.mark.usefixtures("types_unchecked")
@pytest.mark.parametrize("rule", ["puct", lambda hyper, game: 1.0], ids=["a name", "another result"])
def test_a_rule_that_makes_no_selection_is_refused(rule):
    with pytest.raises(InputError, match=r"rule must be a function of \(hyper, game\) that returns a Selection"):
        AlphaZero(GAME, UNIFORM, 4, rule=rule)(None, jax.random.key(0), STATES)


def test_a_score_that_is_not_one_for_each_edge_is_refused():
    @pytree_dataclass
    class Total(Puct):
        def score(self, key, depth, node_terms, edge_terms):
            return jnp.sum(edge_terms.q)

    def rule(hyper, game):
        return Total(jnp.float32(1.25), jnp.float32(0))

    with pytest.raises(InputError, match=r"Total.score must return a score for each edge, .* the shape \[\]"):
        AlphaZero(GAME, UNIFORM, 4, rule=rule)(None, jax.random.key(0), STATES)


def test_a_tree_in_which_no_step_fits_is_refused():
    with pytest.raises(InputError, match="max_nodes must be above leaves_per_step = 16, got 16"):
        AlphaZero(GAME, UNIFORM, 64, leaves_per_step=16, max_nodes=16)


@pytest.mark.usefixtures("types_unchecked")
@pytest.mark.parametrize("number", [0, 8.0])
def test_a_number_of_considered_actions_is_whole(number):
    with pytest.raises(InputError, match=f"max_num_considered_actions must be a whole number .*, got {number}"):
        GumbelAlphaZero(GAME, UNIFORM, 4, max_num_considered_actions=number)


@pytest.mark.usefixtures("types_unchecked")
@pytest.mark.parametrize("evaluator", [evaluators.uniform, "uniform", None])
def test_what_is_no_evaluator_is_refused(evaluator):
    with pytest.raises(InputError, match=r"evaluator must be a function, such as .*, got "):
        AlphaZero(GAME, evaluator, 4)


@pytest.mark.usefixtures("types_unchecked")
def test_a_solver_that_is_no_truth_value_is_refused():
    with pytest.raises(InputError, match="solver must be True or False, got 'no'"):
        AlphaZero(GAME, UNIFORM, 4, solver="no")


@pytest.mark.usefixtures("types_unchecked")
def test_whole_numbers_of_numpy_are_numbers_of_simulations():
    policy = AlphaZero(GAME, UNIFORM, np.int64(4), np.int32(2), max_nodes=np.uint8(16))
    assert policy == AlphaZero(GAME, UNIFORM, 4, 2, max_nodes=16)
    assert type(policy.num_simulations) is type(policy.leaves_per_step) is type(policy.max_nodes) is int
    with pytest.raises(InputError, match=r"num_simulations must be a whole number, got np.float64\(4.0\)"):
        AlphaZero(GAME, UNIFORM, np.float64(4))


def test_no_gradient_flows_through_a_search():
    def evaluator(params, key, states):
        batch = len(states.terminated)
        return params * jnp.ones((batch, 9)), jnp.tanh(params) * jnp.ones(batch)

    def loss(params):
        result = AlphaZero(GAME, evaluator, 4)(params, jax.random.key(0), STATES)
        return jnp.sum(result.policy * result.q_values) + 3 * params

    assert jax.grad(loss)(jnp.float32(0.5)) == 3


@pytest.mark.slow
def test_numbers_of_64_bits_change_nothing():
    """A program that enables them for its own work may search; evaluators may give them."""
    script = """
import jax, jax.numpy as jnp
import azjax
from azjax.games import random_legal_action
from azjax.search import AlphaZero, GumbelAlphaZero, Uct, evaluators

game = azjax.make("tictactoe")
states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), 2))


def wide(params, key, states):
    batch = len(states.terminated)
    return jnp.zeros((batch, 9), float), jnp.zeros(batch, float)


for draw in range(4):
    print(random_legal_action(game, jax.random.key(draw), game.init(jax.random.key(0))))
print(evaluators.random(game)(None, jax.random.key(1), states))
for policy in (
    AlphaZero(game, wide, 8, leaves_per_step=4, solver=True),
    AlphaZero(game, evaluators.random(game), 8),
    GumbelAlphaZero(game, evaluators.rollout(game), 8, solver=True),
    Uct(game, evaluators.rollout(game), 8),
):
    result = policy(None, jax.random.key(0), states, explore=True)
    types = {leaf.dtype.name for leaf in (result.policy, result.value, result.q_values, result.bounds)}
    print(types, result.action, result.visits, result.value, result.policy)
"""
    told = []
    for wide in ("0", "1"):
        environment = os.environ | {"JAX_ENABLE_X64": wide}
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=False
        )
        assert not done.stderr
        told.append(done.stdout)
    assert told[0] == told[1]
    assert told[0].count("{'float32'}") == 4
