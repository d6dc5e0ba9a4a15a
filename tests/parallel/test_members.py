"""The networks of a population as one network."""

import jax
import numpy as np
import pytest

from azjax.games.registry import make
from azjax.networks import make_network
from azjax.parallel.members import MemberNetworks


@pytest.mark.slow_except("mlp")
@pytest.mark.parametrize("name", ["mlp", "resnet"])
def test_each_network_evaluates_its_own_rows(name):
    game = make("connect2")
    network = make_network(name, game, width=8, depth=1)
    observations = jax.random.normal(jax.random.key(0), (6, *game.observation_shape))
    variables = jax.vmap(lambda key: network.init(key, game))(jax.random.split(jax.random.key(1), 3))
    output, new = MemberNetworks(network, 3).apply(variables, observations, train=False)
    assert (output.prior_logits.shape, output.value.shape) == ((6, game.num_actions), (6,))
    for member in range(3):
        own = jax.tree.map(lambda leaf: leaf[member], variables)
        rows = slice(2 * member, 2 * member + 2)
        alone, _ = network.apply(own, observations[rows], train=False)
        np.testing.assert_allclose(output.prior_logits[rows], alone.prior_logits, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(output.value[rows], alone.value, rtol=1e-5, atol=1e-6)
    assert jax.tree.map(np.shape, new) == jax.tree.map(np.shape, variables)
    assert len(np.unique(output.prior_logits.round(3), axis=0)) == 6
