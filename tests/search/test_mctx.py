"""Programs written for mctx, with their import changed: against mctx itself and against facts known by hand."""

import functools

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest

from azjax.search import mctx as ours

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


def visits_of(output):
    return output.search_tree.summary().visit_counts


def is_of_mctx(output, expected, tolerance=1e-5):
    """Visits and actions equal; values and weights within `tolerance`, relative to the largest value."""
    summary, known = output.search_tree.summary(), expected.search_tree.summary()
    np.testing.assert_array_equal(summary.visit_counts, known.visit_counts)
    np.testing.assert_array_equal(output.action, expected.action)
    scale = max(1.0, np.abs(known.qvalues).max(), np.abs(known.value).max())
    for field in ("visit_probs", "value", "qvalues"):
        np.testing.assert_allclose(
            getattr(summary, field), getattr(known, field), rtol=0, atol=tolerance * scale, err_msg=field
        )
    np.testing.assert_allclose(output.action_weights, expected.action_weights, rtol=0, atol=10 * tolerance)


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
    assert (tables(num_actions)["discount"] == 0).any()
    is_of_mctx(*(search(package, policy, num_actions, options=options) for package in (ours, mctx)))


@policies
def test_invalid_actions_have_no_visits_and_no_weight_and_are_not_chosen(policy):
    output, mask = search(ours, policy, 20), invalid(20) > 0
    assert not visits_of(output)[mask].any()
    assert not output.action_weights[mask].any()
    assert not mask[np.arange(BATCH), output.action].any()
    assert output.action[-1] == 5
    assert (visits_of(output).sum(axis=1) == NUM_SIMULATIONS).all()
    np.testing.assert_allclose(output.action_weights.sum(axis=1), 1, atol=1e-6)


@cases
def test_embeddings_of_all_dtypes_are_kept_in_the_tree(policy, num_actions):
    tree = search(ours, policy, num_actions).search_tree.arrays
    made = (tree.visits > 0) & (np.arange(tree.num_nodes)[:, None] < NUM_SIMULATIONS + 1)
    states = jax.device_get(tree.states)
    parents = np.take_along_axis(states["depth"], np.where(made, tree.nodes.parent, 0), axis=0)
    expected = jax.device_get(
        embed(states["state"], parents + (np.arange(tree.num_nodes) > 0)[:, None], states["bits"])
    )
    for kept, known in zip(jax.tree.leaves(states), jax.tree.leaves(expected), strict=True):
        assert kept.dtype == known.dtype
        np.testing.assert_array_equal(kept[made], known[made])
    assert states["depth"][made].max() > 2


def test_every_simulation_hands_another_key_to_the_model():
    tree = search(ours, "gumbel_muzero_policy", 4).search_tree.arrays
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
    actions = np.stack([search(ours, policy, 20, seed=seed, options=options).action for seed in range(20)])
    assert not invalid(20)[np.arange(BATCH), actions].any()
    assert (actions[:, :-1] != actions[0, :-1]).any()


@policies
def test_a_row_without_a_valid_action_has_no_visits_and_no_weights(policy):
    mask = invalid(20)
    mask[0] = 1
    output = search(ours, policy, 20, mask=mask)
    assert not visits_of(output)[0].any()
    assert not output.action_weights[0].any()
    np.testing.assert_array_equal(visits_of(output)[1:], visits_of(search(ours, policy, 20))[1:])


START = mctx.RootFnOutput(prior_logits=jnp.zeros((2, 4)), value=jnp.zeros(2), embedding=jnp.zeros(2))


@pytest.mark.parametrize(
    ("root", "options", "message"),
    [
        (START, {"num_simulations": 0}, "num_simulations must be at least 1, got 0"),
        (START, {"max_depth": 0}, "max_depth must be a whole number from 1 on, or None for any depth, got 0"),
        (START, {"loop_fn": jax.lax.while_loop}, "loop_fn must be jax.lax.fori_loop, got"),
        (START, {"qtransform": max}, "qtransform must be one of qtransform_by_min_max, qtransform_by_parent_and_sib"),
        (START, {"qtransform": ours.qtransform_by_min_max}, "qtransform: .*missing.*min_value"),
        (
            START,
            {"qtransform": functools.partial(ours.qtransform_by_parent_and_siblings, scale=1)},
            "qtransform: .*unexpected keyword argument",
        ),
        (START, {"invalid_actions": jnp.zeros(4)}, r"invalid_actions must have the shape \(2, 4\)"),
        (START.replace(value=jnp.zeros((2, 1))), {}, r"root.value must have the shape \(2,\)"),
        (START.replace(prior_logits=jnp.zeros(4)), {}, r"root.prior_logits must have the shape \[B, A\], got \(4,\)"),
    ],
)
@policies
def test_wrong_arguments_are_named(policy, root, options, message):
    with pytest.raises(ValueError, match=message):
        getattr(ours, policy)(
            (), jax.random.PRNGKey(0), root, lambda *arguments: None, **({"num_simulations": 4} | options)
        )


@pytest.mark.parametrize("policy", [ours.muzero_policy, ours.gumbel_muzero_policy])
def test_no_gradient_flows_through_a_search(policy):
    def loss(params):
        root = ours.RootFnOutput(params * jnp.ones((2, 3)), params * jnp.ones(2), jnp.zeros((2, 1)))

        def recurrent_fn(params, key, action, embedding):
            output = ours.RecurrentFnOutput(jnp.zeros(2), jnp.ones(2), params * jnp.ones((2, 3)), params * jnp.ones(2))
            return output, embedding

        output = policy(params, jax.random.key(0), root, recurrent_fn, num_simulations=4)
        return jnp.sum(output.action_weights) + 3 * params

    assert jax.grad(loss)(jnp.float32(0.5)) == 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"prior_logits": jnp.zeros((2, 3))},
            r"prior_logits of recurrent_fn must have the shape \(2, 4\), got \(2, 3\)",
        ),
        ({"value": jnp.zeros((2, 1))}, r"value of recurrent_fn must have the shape \(2,\), got \(2, 1\)"),
        ({"discount": jnp.float32(1)}, r"discount of recurrent_fn must have the shape \(2,\), got \(\)"),
    ],
)
def test_wrong_shapes_of_a_step_are_named(changes, message):
    numbers = jnp.ones(2)
    output = ours.RecurrentFnOutput(numbers, numbers, jnp.zeros((2, 4)), numbers).replace(**changes)
    with pytest.raises(ValueError, match=message):
        ours.muzero_policy(None, jax.random.key(0), START, lambda *_: (output, START.embedding), num_simulations=4)


def test_random_keys_in_an_embedding_are_refused():
    root = ours.RootFnOutput(jnp.zeros((2, 3)), jnp.zeros(2), jax.random.split(jax.random.key(0), 2))
    with pytest.raises(ValueError, match=r"root.embedding holds key<fry>: store jax.random.key_data of it"):
        ours.muzero_policy(None, jax.random.key(0), root, lambda *_: None, num_simulations=4)


@policies
def test_functions_among_the_params_are_refused(policy):
    with pytest.raises(ValueError, match=r"params\['activation'\] must be an array, got a custom_jvp"):
        getattr(ours, policy)({"activation": jax.nn.relu}, jax.random.key(0), START, lambda *_: None, num_simulations=4)
