"""How often a position occurred before, on the path to it and in the game before its root.

Axis letters: see `path.py`.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int32, UInt32

from azjax.core.arrays import read, read_row
from azjax.games.repetition import History
from azjax.search.path import Path
from azjax.search.tree import Tree


def occurrences(tree: Tree, path: Path, keys: UInt32[Array, "R 2"]) -> Int32[Array, "R"]:
    """How often positions with these keys occurred on the paths and in the games before, their roots included."""
    tree_keys, histories, num_nodes = tree.keys, tree.histories, tree.num_nodes
    assert tree_keys is not None
    assert histories is not None

    def compare(depth: Int32[Array, ""], times: Int32[Array, "R"]) -> Int32[Array, "R"]:
        node = read_row(path.nodes, depth, len(keys))
        index = tree.index(jnp.minimum(node, num_nodes - 1))
        same = jnp.all(read(tree_keys, index, 2) == keys, axis=1)
        return times + (same & (node < num_nodes)).astype(jnp.int32)

    of_games = jax.vmap(jax.vmap(History.times), in_axes=(None, 0))
    up_to_root = of_games(histories, keys.reshape(-1, tree.batch, 2)).reshape(-1)
    times: Array = jax.lax.fori_loop(0, path.longest, compare, up_to_root)
    return times
