"""The result of a search. Axis letters: see `tree.py`."""

import jax.numpy as jnp
from jaxtyping import Array, Float32, Int32, Key, Shaped

from azjax.core.errors import InputError
from azjax.core.pytree import pytree_dataclass
from azjax.games.game import AnyGame
from azjax.search.draws import Number, sample_by_visits
from azjax.search.selection import Selection
from azjax.search.solver import playable, root_bounds
from azjax.search.tree import ROOT, RootChildren, Tree


@pytree_dataclass
class SearchResult:
    """The result of a search. Values are seen by the player to move.

    action: the move to play.
    policy: the training target; sums to one over the legal actions, zero after the end.
    value: of the root, in -1..1: the mean of the simulations, or with `GumbelAlphaZero` the mean of completed Q under
      the improved policy; the true value where it is proven.
    visits: of the root's actions; they sum to the number of simulations, plus those of an earlier `tree`, and to less
      where a solver proved the root or the tree has no room for its first child.
    q_values: mean return of each action, 0 where it was not visited.
    bounds: the lower and upper bound proven of the root's value; -1 and 1 where nothing is proven.
    tree: the search trees.
    """

    action: Int32[Array, "B"]
    policy: Float32[Array, "B A"]
    value: Float32[Array, "B"]
    visits: Int32[Array, "B A"]
    q_values: Float32[Array, "B A"]
    bounds: Float32[Array, "B 2"]
    tree: Tree


def summarize(
    game: AnyGame,
    tree: Tree,
    selection: Selection,
    prior: Float32[Array, "B K"],
    keys: Key[Array, "B"],
    temperature: Number,
) -> SearchResult:
    """The result of a search by `selection` with these root priors; the actions are drawn by `keys`."""
    children = tree.root_children()
    visits, q = statistics_of(tree, children)
    valid = prior >= 0
    remaining = playable(tree, children, valid)
    visited = jnp.where(remaining, visits, 0)
    tried = jnp.any(visited > 0, axis=1, keepdims=True)
    # Where every visited slot is lost, the others remain, by their priors.
    others = jnp.where(remaining, prior, 0.0)
    others = jnp.where(jnp.any(others > 0, axis=1, keepdims=True), others, remaining.astype(jnp.float32))
    weights = jnp.where(tried, visited.astype(jnp.float32), others)
    slot = sample_by_visits(keys, weights, remaining, temperature)
    # What is proven worse is no target, whatever its prior.
    target = selection.target(jnp.where(remaining, prior, -1.0), visited, q)
    if target.shape != prior.shape:
        rule = type(selection).__name__
        raise InputError(
            f"{rule}.target must return {list(prior.shape)}, a number of each slot, got {list(target.shape)}"
        )
    target = jnp.where(remaining, target, 0.0)
    target = jnp.where(tried & jnp.any(target > 0, axis=1, keepdims=True), target, weights)
    total = jnp.sum(target, axis=1, keepdims=True)
    policy = target / jnp.where(total > 0, total, 1)
    bounds = root_bounds(tree)
    return SearchResult(
        action=to_action(tree, slot),
        policy=to_actions(game.num_actions, tree, policy),
        value=jnp.where(bounds[:, 0] == bounds[:, 1], bounds[:, 0], tree.nodes.q[ROOT]),
        visits=to_actions(game.num_actions, tree, visits),
        q_values=to_actions(game.num_actions, tree, q),
        bounds=bounds,
        tree=tree,
    )


def root_statistics(tree: Tree) -> tuple[Int32[Array, "B K"], Float32[Array, "B K"]]:
    """Visits and mean returns of the roots' slots, 0 where there is no child."""
    return statistics_of(tree, tree.root_children())


def statistics_of(tree: Tree, children: RootChildren) -> tuple[Int32[Array, "B K"], Float32[Array, "B K"]]:
    """`root_statistics` of these children."""
    nodes = tree.at(children.at)
    return children.by_slot(nodes.visits.astype(jnp.int32)), children.by_slot(nodes.q)


def root_priors(tree: Tree) -> Float32[Array, "B K"]:
    """The priors of the roots' slots that the search began with, -1 in holes."""
    children = tree.root_children()
    return jnp.where(children.exists, children.by_slot(tree.at(children.at).prior), tree.root_prior)


def to_action(tree: Tree, slot: Int32[Array, "B"]) -> Int32[Array, "B"]:
    """The actions of the roots' slots."""
    actions = tree.root_actions
    return slot if actions is None else jnp.take_along_axis(actions, slot[:, None], axis=1)[:, 0]


def to_actions(num_actions: int, tree: Tree, values: Shaped[Array, "B K"]) -> Shaped[Array, "B A"]:
    """Values by slot of the roots, zero in holes, as values by action."""
    actions = tree.root_actions
    if actions is None:
        return values
    rows = jnp.arange(len(values))[:, None]
    return jnp.zeros((len(values), num_actions), values.dtype).at[rows, actions].add(values)
