"""Search results as tests compare them."""

import jax

from azjax.search import Tree


def without_tree(result):
    """The result on the host, with None in place of its tree."""
    parts = jax.tree.map(lambda part: None if isinstance(part, Tree) else part, result, is_leaf=_is_tree)
    return jax.device_get(parts)


def _is_tree(part):
    return isinstance(part, Tree)
