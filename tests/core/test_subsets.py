"""Ranks of subsets, against an enumeration in Python."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np

from azjax.core.subsets import rank_of_subset, subset_of_rank


def test_the_subsets_of_some_cells_have_the_ranks_of_their_colexicographic_order():
    among = np.array([True, False, True, True, False, True, True, True])
    cells, most = np.flatnonzero(among), 3
    for count in range(most + 1):
        subsets = sorted(itertools.combinations(range(len(cells)), count), key=lambda subset: subset[::-1])
        chosen = np.zeros((len(subsets), len(among)), bool)
        for row, subset in enumerate(subsets):
            chosen[row, cells[list(subset)]] = True
        ranks = jax.vmap(lambda chosen: rank_of_subset(chosen, jnp.asarray(among), most))(jnp.asarray(chosen))
        np.testing.assert_array_equal(ranks, np.arange(len(subsets)))
        back = jax.vmap(lambda rank, count=count: subset_of_rank(rank, jnp.int32(count), jnp.asarray(among), most))
        np.testing.assert_array_equal(back(ranks), chosen)


def test_the_last_subset_of_many_cells():
    among, last = jnp.ones(32, bool), 601_080_389  # C(32, 16) - 1
    chosen = subset_of_rank(jnp.uint32(last), jnp.int32(16), among, 16)
    np.testing.assert_array_equal(chosen, np.arange(32) >= 16)
    assert int(rank_of_subset(chosen, among, 16)) == last
