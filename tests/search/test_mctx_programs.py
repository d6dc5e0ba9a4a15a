"""Programs as users of mctx write them, run with mctx and with `azjax.search.mctx` in its place."""

import functools

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pgx
import pytest

from azjax.search import mctx as ours

BATCH = 16


def bandit(mctx, num_simulations=4, num_actions=30):
    """Does the search improve on the prior, with the same Gumbel noise? As mctx's policy_improvement_demo.py asks."""
    keys = jax.random.split(jax.random.PRNGKey(42), 3)
    logits = jax.random.normal(keys[0], (BATCH, num_actions))
    values = jax.random.uniform(keys[1], (BATCH, num_actions))
    prior_value = jnp.sum(jax.nn.softmax(logits) * values, axis=1)
    rows = jnp.arange(BATCH)

    def recurrent_fn(params, rng_key, action, embedding):
        del params, rng_key
        reward = jnp.where(embedding == 0, values[rows, action], 0.0)
        output = mctx.RecurrentFnOutput(
            reward=reward,
            discount=jnp.ones_like(reward),
            prior_logits=jnp.zeros_like(values),
            value=jnp.zeros_like(reward),
        )
        return output, embedding + 1

    output = mctx.gumbel_muzero_policy(
        params=(),
        rng_key=keys[2],
        root=mctx.RootFnOutput(prior_logits=logits, value=prior_value, embedding=jnp.zeros([BATCH])),
        recurrent_fn=recurrent_fn,
        num_simulations=num_simulations,
        max_num_considered_actions=16,
        qtransform=functools.partial(mctx.qtransform_completed_by_mix_value, use_mixed_value=False),
    )
    drawn = jnp.argmax(output.search_tree.extra_data.root_gumbel + logits, axis=1)
    return {
        "action": output.action,
        "gain_of_action": values[rows, output.action] - values[rows, drawn],
        "gain_of_weights": jnp.sum(output.action_weights * values, axis=1) - prior_value,
    }


@pytest.mark.slow
def test_planning_improves_the_policy_of_a_bandit_as_with_mctx():
    improved, known = (jax.jit(functools.partial(bandit, package))() for package in (ours, mctx))
    for name, value in known.items():
        np.testing.assert_allclose(improved[name], value, rtol=0, atol=1e-5, err_msg=name)
    assert (improved["gain_of_action"] >= 0).all()
    assert (improved["gain_of_weights"] > 0).all()


# The environment of mctx's visualization_demo.py: a step to state 0 is the last.
TO = np.zeros((7, 4), np.int32)
TO[0], TO[1, 1], TO[2, 3] = [1, 2, 3, 4], 5, 6
REWARDS = np.zeros((7, 4), np.float32)
REWARDS[0], REWARDS[6] = [1, -1, 0, 0], [10, 0, 20, 0]


def planned(mctx, max_depth=None):
    """The output of a search in that environment, whose values are optimistic, so that all is tried."""
    to, rewards = jnp.asarray(TO), jnp.asarray(REWARDS)

    def recurrent_fn(params, rng_key, action, embedding):
        del params, rng_key
        following = to[embedding, action]
        output = mctx.RecurrentFnOutput(
            reward=rewards[embedding, action],
            discount=jnp.where(following > 0, 1.0, 0.0),
            prior_logits=jnp.zeros((2, 4)),
            value=jnp.full(2, 15.0),
        )
        return output, following

    root = mctx.RootFnOutput(prior_logits=jnp.zeros((2, 4)), value=jnp.full(2, 15.0), embedding=jnp.zeros(2, jnp.int32))
    return mctx.gumbel_muzero_policy(
        (), jax.random.PRNGKey(42), root, recurrent_fn, num_simulations=32, max_depth=max_depth
    )


def drawing(tree, row=0):
    """The nodes and edges of one tree, as lines: what a program that draws mctx's `Tree` reads."""
    tree_of = {name: np.asarray(getattr(tree, name)[row]) for name in ("node_values", "node_visits", "children_index")}
    rewards, discounts = np.asarray(tree.children_rewards[row]), np.asarray(tree.children_discounts[row])
    priors = np.asarray(jax.nn.softmax(tree.children_prior_logits[row]))
    lines = [f"root value {tree_of['node_values'][0]:.3f} visits {tree_of['node_visits'][0]}"]
    waiting = [0]
    while waiting:
        node = waiting.pop()
        q = np.asarray(tree.qvalues(jnp.full(2, node, jnp.int32)))[row]
        for action in range(tree.num_actions):
            child = tree_of["children_index"][node, action]
            if child < 0:
                continue
            edge = f"{node}-{action}->{child} p {priors[node, action]:.3f} q {q[action]:.3f}"
            lines.append(f"{edge} r {rewards[node, action]:.1f} n {tree_of['node_visits'][child]}")
            if discounts[node, action] != 0:  # below a discount of 0 mctx has nodes that mean nothing
                waiting.append(child)
    return lines


@pytest.mark.slow
def test_a_program_that_draws_the_tree_draws_that_of_mctx():
    output, known = (jax.jit(functools.partial(planned, package))() for package in (ours, mctx))
    np.testing.assert_array_equal(output.action, known.action)
    np.testing.assert_allclose(output.action_weights, known.action_weights, rtol=0, atol=1e-4)
    lines = drawing(output.search_tree)
    assert lines == drawing(known.search_tree)
    assert len(lines) > 10
    # By the actions 1, 3 and 2 come -1, 0 and 20, which tree 0 found: that is more than a visit elsewhere can bring.
    assert output.action[0] == 1
    assert output.search_tree.summary().qvalues[0].argmax() == 1


ENV = pgx.make("tic_tac_toe")
WEIGHTS = np.random.default_rng(0).normal(size=(18, 10)).astype(np.float32)


def self_play(mctx, num_moves=3):
    """Moves of self-play with a game of pgx, as its AlphaZero example makes them; the network is one random layer."""

    def network(weights, observation):
        features = observation.reshape(len(observation), -1).astype(jnp.float32) @ weights
        return features[:, :9], jnp.tanh(features[:, 9])

    def recurrent_fn(weights, rng_key, action, state):
        del rng_key
        player = state.current_player
        state = jax.vmap(ENV.step)(state, action)
        logits, value = network(weights, state.observation)
        logits = jnp.where(state.legal_action_mask, logits, jnp.finfo(logits.dtype).min)
        output = mctx.RecurrentFnOutput(
            reward=state.rewards[jnp.arange(BATCH), player],
            discount=jnp.where(state.terminated, 0.0, -1.0),
            prior_logits=logits,
            value=jnp.where(state.terminated, 0.0, value),
        )
        return output, state

    def move(state, rng_key):
        logits, value = network(jnp.asarray(WEIGHTS), state.observation)
        output = mctx.gumbel_muzero_policy(
            params=jnp.asarray(WEIGHTS),
            rng_key=rng_key,
            root=mctx.RootFnOutput(prior_logits=logits, value=value, embedding=state),
            recurrent_fn=recurrent_fn,
            num_simulations=16,
            invalid_actions=~state.legal_action_mask,
            qtransform=mctx.qtransform_completed_by_mix_value,
            gumbel_scale=1.0,
        )
        following = jax.vmap(ENV.step)(state, output.action)
        return following, (output.action, output.action_weights, state.legal_action_mask)

    state = jax.vmap(ENV.init)(jax.random.split(jax.random.PRNGKey(0), BATCH))
    return jax.lax.scan(move, state, jax.random.split(jax.random.PRNGKey(1), num_moves))[1]


@pytest.mark.slow
def test_self_play_in_a_game_of_pgx_is_that_with_mctx():
    (action, weights, legal), known = (jax.jit(functools.partial(self_play, package))() for package in (ours, mctx))
    np.testing.assert_array_equal(action, known[0])
    np.testing.assert_allclose(weights, known[1], rtol=0, atol=1e-4)
    assert not np.asarray(weights)[~np.asarray(legal)].any()
    assert len(np.unique(np.asarray(action)[0])) > 1
