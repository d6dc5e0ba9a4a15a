"""Programs written for mctx, on our tree: against mctx itself and against facts known by hand."""

import functools

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest

from azjax.search import recurrent

BATCH, NUM_SIMULATIONS, NUM_STATES = 8, 24, 64
OPTIONS = {
    "gumbel_muzero_policy": {"gumbel_scale": 1.0},
    "muzero_policy": {"dirichlet_fraction": 0.0, "temperature": 0.0},
}


@functools.cache
def tables(num_actions):
    """A random decision process with rewards; one step in ten is the last."""
    rng = np.random.default_rng(num_actions)
    shape = NUM_STATES, num_actions
    return {
        "following": rng.integers(NUM_STATES, size=shape).astype(np.int32),
        "reward": rng.normal(size=shape).astype(np.float32),
        "discount": np.where(rng.random(shape) < 0.1, 0.0, 0.9).astype(np.float32),
        "prior_logits": rng.normal(size=shape).astype(np.float32),
        "value": rng.normal(scale=3.0, size=NUM_STATES).astype(np.float32),
    }


def embed(state, depth, bits):
    """A pytree of several dtypes and shapes, all of which the state and the depth determine."""
    return {
        "state": state,
        "depth": depth.astype(jnp.uint8),
        "halves": jnp.stack([state / 2, -state / 2, state / 4], axis=-1),
        "facts": (jnp.stack([state % 2 == 0, state % 3 == 0], axis=-1), state.astype(jnp.bfloat16)),
        "bits": bits,
    }


def recurrent_fn(params, rng_key, action, embedding):
    state = params["following"][embedding["state"], action]
    bits = jax.random.bits(rng_key, state.shape)
    output = mctx.RecurrentFnOutput(
        reward=params["reward"][embedding["state"], action],
        discount=params["discount"][embedding["state"], action],
        prior_logits=params["prior_logits"][state],
        value=params["value"][state],
    )
    return output, embed(state, embedding["depth"] + 1, bits)


def invalid(num_actions):
    """Few actions are all valid; of many some are not, and in the last row all but one are."""
    mask = np.zeros((BATCH, num_actions), np.float32)
    if num_actions > 4:
        mask = (np.random.default_rng(0).random(mask.shape) < 0.3).astype(np.float32)
        mask[-1] = np.arange(num_actions) != 5
    return mask


@functools.cache
def compiled(package, policy):
    """`policy` of a package, mctx's or ours; all options are passed, so that one compilation serves."""

    @jax.jit
    def run(rng_key, params, invalid_actions, options):
        state = jnp.arange(BATCH, dtype=jnp.int32)
        root = mctx.RootFnOutput(
            prior_logits=params["prior_logits"][state],
            value=params["value"][state],
            embedding=embed(state, jnp.zeros(BATCH, jnp.uint8), jnp.zeros(BATCH, jnp.uint32)),
        )
        return getattr(package, policy)(
            params, rng_key, root, recurrent_fn, NUM_SIMULATIONS, invalid_actions=invalid_actions, **options
        )

    return run


def search(package, policy, num_actions, *, seed=0, mask=None, options=None):
    """The output on the host."""
    mask = invalid(num_actions) if mask is None else mask
    options = OPTIONS[policy] if options is None else options
    return jax.device_get(compiled(package, policy)(jax.random.PRNGKey(seed), tables(num_actions), mask, options))


policies = pytest.mark.parametrize("policy", OPTIONS)
# Up to 16 actions have dense edges, more have blocked ones.
cases = pytest.mark.parametrize(
    ("policy", "num_actions"),
    [
        pytest.param("gumbel_muzero_policy", 4, marks=pytest.mark.slow),
        ("gumbel_muzero_policy", 20),
        ("muzero_policy", 20),
    ],
)


@pytest.mark.parametrize(
    ("policy", "num_actions", "options"),
    [
        pytest.param("gumbel_muzero_policy", 4, {"gumbel_scale": 0.0}, marks=pytest.mark.slow),
        pytest.param("gumbel_muzero_policy", 4, {"gumbel_scale": 1.0}, marks=pytest.mark.slow),
        pytest.param("gumbel_muzero_policy", 20, {"gumbel_scale": 0.0}, marks=pytest.mark.slow),
        ("gumbel_muzero_policy", 20, {"gumbel_scale": 1.0}),
        pytest.param("muzero_policy", 20, {"dirichlet_fraction": 0.0, "temperature": 0.0}, marks=pytest.mark.slow),
    ],
)
def test_visits_actions_weights_and_values_are_those_of_mctx(policy, num_actions, options):
    ours, theirs = (search(package, policy, num_actions, options=options) for package in (recurrent, mctx))
    summary = theirs.search_tree.summary()
    assert (tables(num_actions)["discount"] == 0).any()
    np.testing.assert_array_equal(ours.visits, summary.visit_counts)
    np.testing.assert_array_equal(ours.action, theirs.action)
    np.testing.assert_allclose(ours.action_weights, theirs.action_weights, rtol=0, atol=1e-4)
    np.testing.assert_allclose(ours.value, summary.value, rtol=0, atol=1e-5)
    visited = ours.visits > 0
    np.testing.assert_allclose(ours.q_values[visited], summary.qvalues[visited], rtol=0, atol=1e-5)


@policies
def test_invalid_actions_have_no_visits_and_no_weight_and_are_not_chosen(policy):
    output, mask = search(recurrent, policy, 20), invalid(20) > 0
    assert not output.visits[mask].any()
    assert not output.action_weights[mask].any()
    assert not mask[np.arange(BATCH), output.action].any()
    assert output.action[-1] == 5
    assert (output.visits.sum(axis=1) == NUM_SIMULATIONS).all()
    np.testing.assert_allclose(output.action_weights.sum(axis=1), 1, atol=1e-6)


@cases
def test_embeddings_of_all_dtypes_are_kept_in_the_tree(policy, num_actions):
    tree = search(recurrent, policy, num_actions).search_tree
    made = (tree.visits > 0) & (np.arange(tree.num_nodes)[:, None] < NUM_SIMULATIONS + 1)
    states = jax.device_get(tree.states)
    parents = np.take_along_axis(states["depth"], tree.nodes.parent, axis=0)
    expected = jax.device_get(
        embed(states["state"], parents + (np.arange(tree.num_nodes) > 0)[:, None], states["bits"])
    )
    for kept, known in zip(jax.tree.leaves(states), jax.tree.leaves(expected), strict=True):
        assert kept.dtype == known.dtype
        np.testing.assert_array_equal(kept[made], known[made])
    assert states["depth"][made].max() > 2


def test_every_simulation_hands_another_key_to_the_model():
    tree = search(recurrent, "gumbel_muzero_policy", 4).search_tree
    bits = jax.device_get(tree.states["bits"])[1 : NUM_SIMULATIONS + 1][tree.visits[1 : NUM_SIMULATIONS + 1] > 0]
    assert len(np.unique(bits)) == len(bits) > NUM_SIMULATIONS


@pytest.mark.parametrize(
    ("policy", "options"),
    [
        ("gumbel_muzero_policy", {"gumbel_scale": 10.0}),
        ("muzero_policy", {"dirichlet_fraction": 0.25, "temperature": 1.0}),
        ("muzero_policy", {"dirichlet_fraction": 1.0, "temperature": 0.0}),
    ],
)
def test_noise_and_temperature_vary_the_action_among_the_valid_ones(policy, options):
    actions = np.stack([search(recurrent, policy, 20, seed=seed, options=options).action for seed in range(20)])
    assert not invalid(20)[np.arange(BATCH), actions].any()
    assert (actions[:, :-1] != actions[0, :-1]).any()


@policies
def test_a_row_without_a_valid_action_has_no_visits_and_no_weights(policy):
    mask = invalid(20)
    mask[0] = 1
    output = search(recurrent, policy, 20, mask=mask)
    assert not output.visits[0].any()
    assert not output.action_weights[0].any()
    np.testing.assert_array_equal(output.visits[1:], search(recurrent, policy, 20).visits[1:])


# mctx's README shows this call, and its examples/visualization_demo.py the model: only the package differs here.

TO = np.zeros((7, 4), np.int32)
TO[0], TO[1, 1], TO[2, 3] = [1, 2, 3, 4], 5, 6
REWARDS = np.zeros((7, 4), np.float32)
REWARDS[0], REWARDS[6] = [1, -1, 0, 0], [10, 0, 20, 0]


def test_the_readme_example_of_mctx_has_the_results_of_mctx():
    rewards, following = jnp.asarray(REWARDS), jnp.asarray(TO)
    values = jnp.full(7, 15.0)  # optimistic, so that all is tried

    def model(params, rng_key, action, embedding):
        del params, rng_key
        output = mctx.RecurrentFnOutput(
            reward=rewards[embedding, action],
            discount=jnp.where(following[embedding, action] > 0, 1.0, 0.0),
            prior_logits=jnp.zeros((2, 4)),
            value=values[embedding],
        )
        return output, following[embedding, action]

    @functools.partial(jax.jit, static_argnums=0)
    def run(package, rng_key):
        root = mctx.RootFnOutput(
            prior_logits=jnp.zeros((2, 4)), value=jnp.full(2, 15.0), embedding=jnp.zeros(2, jnp.int32)
        )
        return package.gumbel_muzero_policy((), rng_key, root, model, num_simulations=32)

    ours, theirs = (run(package, jax.random.PRNGKey(42)) for package in (recurrent, mctx))
    np.testing.assert_array_equal(ours.action, theirs.action)
    np.testing.assert_allclose(ours.action_weights, theirs.action_weights, rtol=0, atol=1e-4)
    # By the actions 1, 3 and 2 come -1, 0 and 20, which tree 0 found: that is more than a visit elsewhere can bring.
    assert ours.action[0] == 1
    assert ours.q_values[0].argmax() == 1


START = mctx.RootFnOutput(prior_logits=jnp.zeros((2, 4)), value=jnp.zeros(2), embedding=jnp.zeros(2))


@pytest.mark.parametrize(
    ("root", "options", "message"),
    [
        (START, {"num_simulations": 0}, "num_simulations must be at least 1, got 0"),
        (START, {"max_depth": 3}, "max_depth must be None, got 3"),
        (START, {"invalid_actions": jnp.zeros(4)}, r"invalid_actions must have the shape \(2, 4\)"),
        (START.replace(value=jnp.zeros((2, 1))), {}, r"root.value must have the shape \(2,\)"),
        (START.replace(prior_logits=jnp.zeros(4)), {}, r"root.prior_logits must have the shape \[B, A\], got \(4,\)"),
    ],
)
@policies
def test_wrong_arguments_are_named(policy, root, options, message):
    with pytest.raises(ValueError, match=message):
        getattr(recurrent, policy)(
            (), jax.random.PRNGKey(0), root, lambda *arguments: None, **({"num_simulations": 4} | options)
        )
