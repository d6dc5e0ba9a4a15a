"""Whether a position occurred before, on the path to it or in the game before its root. Axis letters: see `path.py`."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int32, UInt32

from azjax.core.arrays import read, read_row
from azjax.games.repetition import History
from azjax.search.path import Path
from azjax.search.tree import Tree


def occurred_before(tree: Tree, path: Path, keys: UInt32[Array, "R 2"]) -> Bool[Array, "R"]:
    """Whether positions with these keys occurred on the paths, or in the games before their roots."""
    tree_keys, histories, num_nodes = tree.keys, tree.histories, tree.num_nodes
    assert tree_keys is not None
    assert histories is not None

    def compare(depth: Int32[Array, ""], occurred: Bool[Array, "R"]) -> Bool[Array, "R"]:
        node = read_row(path.nodes, depth, len(keys))
        index = tree.index(jnp.minimum(node, num_nodes - 1))
        same = jnp.all(read(tree_keys, index, 2) == keys, axis=1)
        return occurred | (same & (node < num_nodes))

    contains = jax.vmap(jax.vmap(History.contains), in_axes=(None, 0))
    before_root = contains(histories, keys.reshape(-1, tree.batch, 2)).reshape(-1)
    occurred: Array = jax.lax.fori_loop(0, path.longest, compare, before_root)
    return occurred
