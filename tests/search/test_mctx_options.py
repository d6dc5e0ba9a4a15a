"""Every option of mctx's policies, against mctx on random problems.

The problems have no ties: their priors, rewards and values are normal draws. mctx breaks ties by noise of 1e-7.
"""

import functools

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest

from azjax.core.errors import InputError
from azjax.search import mctx as ours

NUM_STATES = 50
GUMBEL, MUZERO = "gumbel_muzero_policy", "muzero_policy"


def problem(seed, num_actions, scale, zero_discounts=True):
    """A random decision process. Rewards and values are of the size `scale`, discounts from -1.2 to 1.2."""
    rng = np.random.default_rng(seed)
    shape = NUM_STATES, num_actions
    discount = rng.uniform(-1.2, 1.2, size=shape)
    if zero_discounts:
        discount[rng.random(shape) < 0.1] = 0
    floats = {
        "reward": rng.normal(scale=scale, size=shape),
        "discount": discount,
        "prior_logits": rng.normal(size=shape),
        "value": rng.normal(scale=scale, size=NUM_STATES),
    }
    following = rng.integers(NUM_STATES, size=shape).astype(np.int32)
    return {"following": following} | {name: array.astype(np.float32) for name, array in floats.items()}


def mask(batch, num_actions):
    """About a third of the actions are invalid; in the last row all but one."""
    invalid = np.random.default_rng(batch).random((batch, num_actions)) < 0.3
    invalid[:, 1] = False
    invalid[-1] = np.arange(num_actions) != 2
    return invalid


def searched(package, policy, table, batch, *, num_simulations=20, transform=None, **options):
    """The output of a package, mctx's or ours, on the host; the embedding is a pytree."""
    name, keywords = transform or (None, {})

    @jax.jit
    def run(rng_key, params, invalid_actions):
        def recurrent_fn(params, rng_key, action, embedding):
            del rng_key
            state, (steps, flag) = embedding["state"], embedding["more"]
            following = params["following"][state, action]
            output = package.RecurrentFnOutput(
                reward=params["reward"][state, action],
                discount=params["discount"][state, action],
                prior_logits=params["prior_logits"][following],
                value=params["value"][following],
            )
            return output, {"state": following, "more": (steps + 1, ~flag)}

        state = jnp.arange(batch, dtype=jnp.int32)
        root = package.RootFnOutput(
            prior_logits=params["prior_logits"][state],
            value=params["value"][state],
            embedding={"state": state, "more": (jnp.zeros((batch, 3), jnp.float16), state > 2)},
        )
        chosen = {}
        if name is not None:
            transform = getattr(package, name)
            chosen["qtransform"] = functools.partial(transform, **keywords) if keywords else transform
        return getattr(package, policy)(
            params, rng_key, root, recurrent_fn, num_simulations, invalid_actions, **chosen, **options
        )

    invalid_actions = mask(batch, table["reward"].shape[1])
    output = run(jax.random.PRNGKey(3), table, invalid_actions)
    return jax.device_get((output.action, output.action_weights, output.search_tree.summary())), output.search_tree


def equals_mctx(policy, num_actions, scale, batch, **options):
    """Visits and actions are equal; values to 1e-5 of the largest, weights to 1e-4."""
    table = problem(num_actions + batch, num_actions, scale)
    if policy == "muzero_policy":
        options = {"dirichlet_fraction": 0.0, "temperature": 0.0} | options
    (action, weights, summary), _ = searched(ours, policy, table, batch, **options)
    (known_action, known_weights, known), _ = searched(mctx, policy, table, batch, **options)
    np.testing.assert_array_equal(summary.visit_counts, known.visit_counts)
    most_visited = summary.visit_counts == summary.visit_counts.max(axis=1, keepdims=True)
    # At temperature 0 mctx draws among equal visits.
    clear = (most_visited.sum(axis=1) == 1) | (policy == GUMBEL)
    np.testing.assert_array_equal(action[clear], known_action[clear])
    np.testing.assert_array_equal(action[~clear], most_visited[~clear].argmax(axis=1))
    np.testing.assert_allclose(weights, known_weights, rtol=0, atol=1e-4)
    np.testing.assert_allclose(summary.visit_probs, known.visit_probs, rtol=0, atol=1e-6)
    size = max(scale, np.abs(known.qvalues).max(), np.abs(known.value).max())
    np.testing.assert_allclose(summary.value, known.value, rtol=0, atol=1e-5 * size)
    np.testing.assert_allclose(summary.qvalues, known.qvalues, rtol=0, atol=1e-5 * size)
    return summary


BOUNDS = ("qtransform_by_min_max", {"min_value": -8.0, "max_value": 12.0})
SIBLINGS = ("qtransform_by_parent_and_siblings", {})
MIXED = ("qtransform_completed_by_mix_value", {})
SLOW = pytest.mark.slow
CASES = [
    # policy, actions, size of rewards, batch, options; up to 16 actions have dense edges, more have blocked ones.
    (MUZERO, 5, 3.0, 6, {"max_depth": 2}),
    (GUMBEL, 20, 3.0, 4, {"max_depth": 2}),
    (MUZERO, 20, 3.0, 4, {"transform": MIXED, "pb_c_init": 2.5, "pb_c_base": 100.0}),
]
SLOW_CASES = [
    (GUMBEL, 5, 3.0, 6, {"transform": SIBLINGS, "max_depth": 5, "gumbel_scale": 0.5}),
    *((policy, 5, 3.0, 6, {"max_depth": depth}) for policy in (MUZERO, GUMBEL) for depth in (1, 2, 5, 20, None)),
    *((policy, 20, 3.0, 4, {"max_depth": depth}) for policy in (MUZERO, GUMBEL) for depth in (1, 5)),
    *((policy, 6, 0.01, 1, {"transform": one}) for policy in (MUZERO, GUMBEL) for one in (SIBLINGS, MIXED)),
    *((policy, 6, 200.0, 9, {"transform": one}) for policy in (MUZERO, GUMBEL) for one in (SIBLINGS, MIXED)),
    *((policy, 20, 3.0, 4, {"transform": BOUNDS, "max_depth": 3}) for policy in (MUZERO, GUMBEL)),
    *((policy, 6, 3.0, 4, {"transform": BOUNDS}) for policy in (MUZERO, GUMBEL)),
    *(
        (policy, 6, 1.0, 5, {"transform": ("qtransform_completed_by_mix_value", keywords)})
        for policy in (MUZERO, GUMBEL)
        for keywords in (
            {"use_mixed_value": False},
            {"rescale_values": False, "value_scale": 0.02},
            {"maxvisit_init": 10.0, "value_scale": 0.3},
            {"epsilon": 2.0},
        )
    ),
    *((MUZERO, 6, 1.0, 5, {"pb_c_init": init, "pb_c_base": base}) for init in (0.2, 4.0) for base in (5.0, 1e5)),
    (MUZERO, 6, 1.0, 5, {"transform": ("qtransform_by_parent_and_siblings", {"epsilon": 3.0})}),
    *((GUMBEL, 20, 1.0, 5, {"max_num_considered_actions": considered}) for considered in (1, 3, 40)),
    *((GUMBEL, 6, 1.0, 5, {"gumbel_scale": gumbel}) for gumbel in (0.0, 3.0)),
    (MUZERO, 6, 1.0, 5, {"num_simulations": 1}),
    (GUMBEL, 6, 1.0, 5, {"num_simulations": 60, "max_depth": 4}),
    (MUZERO, 6, 1.0, 5, {"num_simulations": 60, "max_depth": 4}),
]


@pytest.mark.slow_except("muzero_policy-20-3.0-4-options2")
@pytest.mark.parametrize(
    ("policy", "num_actions", "scale", "batch", "options"),
    [*CASES, *(pytest.param(*case, marks=SLOW) for case in SLOW_CASES)],
)
def test_results_are_those_of_mctx(policy, num_actions, scale, batch, options):
    summary = equals_mctx(policy, num_actions, scale, batch, **options)
    # The row with one valid action.
    simulations = options.get("num_simulations", 20)
    np.testing.assert_array_equal(summary.visit_counts[-1], np.where(np.arange(num_actions) == 2, simulations, 0))


FIELDS = [
    *("node_visits", "raw_values", "node_values", "parents", "action_from_parent"),
    *("children_index", "children_visits", "children_rewards", "children_discounts", "children_values"),
]


@pytest.mark.slow
@pytest.mark.parametrize("max_depth", [3, pytest.param(None, marks=SLOW)])
def test_the_search_tree_has_the_fields_of_mctx(max_depth):
    table, batch = problem(1, 5, 1.0, zero_discounts=False), 4
    options = {"dirichlet_fraction": 0.0, "max_depth": max_depth}
    tree, known = (searched(package, MUZERO, table, batch, **options)[1] for package in (ours, mctx))
    assert (tree.num_actions, tree.num_simulations) == (known.num_actions, known.num_simulations)
    assert (tree.ROOT_INDEX, tree.NO_PARENT, tree.UNVISITED) == (known.ROOT_INDEX, known.NO_PARENT, known.UNVISITED)
    for field in FIELDS:
        value, expected = getattr(tree, field), getattr(known, field)
        assert value.dtype == expected.dtype
        np.testing.assert_allclose(value, expected, rtol=0, atol=1e-4, err_msg=field)
    for value, expected in zip(jax.tree.leaves(tree.embeddings), jax.tree.leaves(known.embeddings), strict=True):
        np.testing.assert_array_equal(value, expected)
    priors = [jax.nn.softmax(searched.children_prior_logits) for searched in (tree, known)]
    np.testing.assert_allclose(*priors, rtol=0, atol=1e-6)
    nodes = jnp.arange(batch, dtype=jnp.int32)
    np.testing.assert_allclose(tree.qvalues(nodes), known.qvalues(nodes), rtol=0, atol=1e-4)


@pytest.mark.slow
def test_an_embedding_may_be_empty():
    root = ours.RootFnOutput(prior_logits=jnp.zeros((1, 2)), value=jnp.zeros(1), embedding=())

    def model(params, rng_key, action, embedding):
        del params, rng_key
        reward = jnp.array([3.0, 7.0])[action]
        zeros = jnp.zeros_like(reward)
        logits = jnp.zeros((1, 2))
        return ours.RecurrentFnOutput(reward=reward, discount=zeros, prior_logits=logits, value=zeros), embedding

    plan = jax.jit(lambda rng_key: ours.gumbel_muzero_policy((), rng_key, root, model, 4))
    output = plan(jax.random.PRNGKey(0))
    np.testing.assert_allclose(output.search_tree.summary().qvalues, [[3, 7]])
    assert output.action == 1


def test_outputs_can_be_replaced_in_part():
    root = ours.RootFnOutput(prior_logits=jnp.zeros((1, 2)), value=jnp.zeros(1), embedding=())
    assert root.replace(value=jnp.ones(1)).value == 1
    assert root.value == 0


@pytest.mark.slow
def test_embeddings_of_other_shapes_are_refused():
    def model(params, rng_key, action, embedding):
        del params, rng_key
        zeros, logits = jnp.zeros(action.shape), jnp.zeros((*action.shape, 2))
        output = ours.RecurrentFnOutput(reward=zeros, discount=zeros, prior_logits=logits, value=zeros)
        return output, jnp.zeros((len(embedding), 3))

    for shape, message in (
        ((1, 2), r"every leaf of root.embedding must have the shape \[4, ...\], got \(1, 2\)"),
        ((4, 2), r"must have the shapes of the root's: got \(4, 3\), expected \(4, 2\)"),
    ):
        root = ours.RootFnOutput(prior_logits=jnp.zeros((4, 2)), value=jnp.zeros(4), embedding=jnp.zeros(shape))
        for policy in (GUMBEL, MUZERO):
            with pytest.raises(InputError, match=message):
                getattr(ours, policy)((), jax.random.key(0), root, model, 4)


def test_numbers_out_of_range_are_refused():
    root = ours.RootFnOutput(prior_logits=jnp.zeros((1, 2)), value=jnp.zeros(1), embedding=())
    for name, number in (("dirichlet_fraction", 1.5), ("dirichlet_alpha", 0.0), ("temperature", -1.0)):
        with pytest.raises(InputError, match=f"{name} must be .*, got"):
            ours.muzero_policy((), jax.random.key(0), root, None, 4, **{name: number})
