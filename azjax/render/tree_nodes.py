"""A search tree on the host: one summary per node. Texts and pictures of trees are drawn from these.

The value of a node (its mean return, evaluation and bounds) is from the view of the player who moved into it; that of
the root is from the view of its player to move. So the best of several moves is the one with the highest value.
"""

import functools
import math
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, overload

import jax
import jax.numpy as jnp
import numpy as np

from azjax.core.errors import InputError
from azjax.games.game import AnyGame, State
from azjax.games.protocols import action_to_text
from azjax.search.rules.ucb1 import DECIDED
from azjax.search.tree import ROOT, Nodes, Tree


class NodeSummary(NamedTuple):
    """One node of one search tree. The module docstring says from whose view values are.

    Attributes:
      number: index of the node in the tree; the root is 0.
      parent: number of the parent; None at the root.
      depth: plies below the root.
      action: the action that led to the node; None at the root.
      visits: simulations that passed through the node.
      prior: prior probability of the action; 1 at the root.
      value: mean return of the visits.
      evaluation: mean return of the visits that ended here, up to rounding: the evaluator's value of a new node, or
        the result of a finished game. None if no visit ended here, and for a position that a solver has proven from its
        children, because proofs replace returns.
      wins: visits won by player 0 and by player 1; None if the search does not count them.
      bounds: proven lower and upper bound of the value; None without a solver.
      state: the position without its history, as NumPy arrays.
      children: numbers of the children, by falling visits; the lower slot first on ties.
    """

    number: int
    parent: int | None
    depth: int
    action: int | None
    visits: int
    prior: float
    value: float
    evaluation: float | None
    wins: tuple[int, int] | None
    bounds: tuple[float, float] | None
    state: State
    children: tuple[int, ...]


def node_summaries(tree: Tree, row: int = 0, max_nodes: int | None = None) -> dict[int, NodeSummary]:
    """The root and all visited nodes of one tree, by ascending number.

    Args:
      tree: a batch of trees.
      row: index in the batch.
      max_nodes: keeps this many nodes only: the root's children, and then the most visited ones. The visits of omitted
        children still count. None keeps all.

    Raises:
      InputError: `row` is outside the batch.
    """
    if not 0 <= row < tree.batch:
        raise InputError(f"row must be in 0..{tree.batch - 1}, got {row}")
    count = tree.num_nodes if max_nodes is None else min(max_nodes, tree.num_nodes)
    (of_all, weights, means), (kept, states, actions, bounds) = jax.device_get(_fetch(tree, row, count))
    numbers: Nodes = of_all
    made = numbers.visits > 0
    index = {number: at for at, number in enumerate(kept.tolist()) if made[number] or number == ROOT}
    below: dict[int, list[int]] = {}
    for number in np.flatnonzero(made).tolist():
        if number != ROOT:
            below.setdefault(int(numbers.parent[number]), []).append(number)

    def summarize(number: int, depth: int) -> NodeSummary:
        state: State = jax.tree.map(lambda leaf: leaf[index[number]], states)
        slot, parent = int(numbers.slot[number]), int(numbers.parent[number])
        reward, discount = (
            (float(numbers.reward[number]), float(numbers.discount[number])) if number != ROOT else (0.0, 1.0)
        )
        visits, returns = int(numbers.visits[number]), float(numbers.returns[number])
        children = sorted(below.get(number, []), key=lambda child: (-numbers.visits[child], numbers.slot[child]))
        proven = None
        if bounds is not None:
            low, high = sorted(reward + discount * bound + 0.0 for bound in bounds[index[number]].tolist())
            proven = (low, high)
        weight_below = sum(float(weights[child]) for child in children)
        returns_below = reward * weight_below + discount * sum(float(numbers.returns[child]) for child in children)
        weight_here = float(weights[number]) - weight_below
        ended_here = visits - sum(int(numbers.visits[child]) for child in children)
        has_evaluation = ended_here > 0 and not (children and proven and proven[0] == proven[1])
        wins = None
        if DECIDED in numbers.sums:
            mover = states.current_player[index[ROOT if number == ROOT else parent]]
            decided = float(numbers.sums[DECIDED][number])
            won, lost = (round((decided + side * returns) / 2) for side in (1, -1))
            wins = (won, lost) if mover == 0 else (lost, won)
        return NodeSummary(
            number=number,
            parent=None if number == ROOT else parent,
            depth=depth,
            action=None if number == ROOT else slot if actions is None else int(actions[index[parent], slot]),
            visits=visits,
            prior=1.0 if number == ROOT else float(numbers.prior[number]),
            value=float(means[number]),
            evaluation=(returns - returns_below) / weight_here if has_evaluation else None,
            wins=wins,
            bounds=proven,
            state=state,
            children=tuple(child for child in children if child in index),
        )

    nodes: dict[int, NodeSummary] = {}
    level, depth = [ROOT], 0
    while level:
        nodes.update((number, summarize(number, depth)) for number in level)
        level, depth = [child for number in level for child in nodes[number].children], depth + 1
    return dict(sorted(nodes.items()))


@functools.partial(jax.jit, static_argnames="count")
def _fetch(tree: Tree, row: int | jax.Array, count: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The numbers, weights and means of all nodes of one tree; the larger arrays of its `count` most visited nodes."""
    numbers: Nodes = jax.tree.map(lambda column: column[:, row], tree.nodes)
    # A proven move may have a single visit, so the root's children come first. The sort is stable: parents, which are
    # older, precede their children.
    is_first = (numbers.visits > 0) & ((numbers.parent == ROOT) | (jnp.arange(len(numbers.visits)) == ROOT))
    kept = jnp.sort(jnp.lexsort((-numbers.visits, ~is_first))[:count])
    grids = tree.grids()
    rows = (None if each is None else each[kept, row] for each in (grids.actions, grids.bounds))
    return (numbers, numbers.weight, numbers.q), (kept, tree.packing.unpack(grids.positions[kept, row]), *rows)


@overload
def principal_variation(tree: Tree, game: None = None, row: int = 0) -> list[int]: ...


@overload
def principal_variation(tree: Tree, game: AnyGame, row: int = 0) -> list[str]: ...


def principal_variation(tree: Tree, game: AnyGame | None = None, row: int = 0) -> list[int] | list[str]:
    """The most visited line, from the root down to a node without children.

    With a solver the line leaves out moves that are proven to be worse: in a proven position, moves that do not reach
    its value; elsewhere, lost moves.

    Args:
      tree: a batch of trees.
      game: writes the moves; None for a list of actions.
      row: index in the batch.

    Raises:
      InputError: `row` is outside the batch.
    """
    nodes = node_summaries(tree, row)
    line = principal_nodes(nodes)
    if game is None:
        return [node.action for node in line if node.action is not None]
    return [move_text(nodes, game, node) for node in line]


def principal_nodes(nodes: Mapping[int, NodeSummary], number: int = ROOT) -> list[NodeSummary]:
    """The nodes of the principal variation below node `number`."""
    node, line = nodes[number], []
    while playable := _playable_children(nodes, node):
        node = nodes[playable[0]]
        line.append(node)
    return line


def _playable_children(nodes: Mapping[int, NodeSummary], node: NodeSummary) -> list[int]:
    """The children that are not proven to be worse than another, by falling visits."""
    bounds = [nodes[child].bounds or (-math.inf, math.inf) for child in node.children]
    if node.bounds is None or not bounds:
        return list(node.children)
    best = max(lower for lower, _ in bounds)
    is_proven = node.bounds[0] == node.bounds[1]
    return [
        child
        for child, (lower, upper) in zip(node.children, bounds, strict=True)
        if (lower >= best if is_proven else upper > -1)
    ]


def most_visited(nodes: Mapping[int, NodeSummary], max_nodes: int | None, max_depth: int | None = None) -> list[int]:
    """Numbers of the most visited nodes. The parent of a node is among them, since it has at least as many visits.

    Raises:
      InputError: `max_nodes` is below 1 or `max_depth` below 0.
    """
    if max_depth is not None and max_depth < 0:
        raise InputError(f"max_depth must be at least 0, or None for any depth, got {max_depth}")
    candidates = [node for node in nodes.values() if max_depth is None or node.depth <= max_depth]
    candidates.sort(key=lambda node: (-node.visits, node.depth, node.number))
    return [node.number for node in candidates[: checked_max_nodes(max_nodes)]]


def checked_max_nodes(max_nodes: int | None) -> int | None:
    """`max_nodes`, if it is positive or None; else an InputError."""
    if max_nodes is not None and max_nodes < 1:
        raise InputError(f"max_nodes must be at least 1, or None for all nodes, got {max_nodes}")
    return max_nodes


def preorder(nodes: Mapping[int, NodeSummary], numbers: Collection[int]) -> list[int]:
    """`numbers` in an order in which each node is followed by its subtree, the most visited child first."""
    wanted, order, waiting = set(numbers), [], [ROOT]
    while waiting:
        order.append(waiting.pop())
        waiting += [child for child in reversed(nodes[order[-1]].children) if child in wanted]
    return order


def move_text(nodes: Mapping[int, NodeSummary], game: AnyGame | None, node: NodeSummary) -> str:
    """The move into `node`; the action number without a game; "-" at the root."""
    if node.parent is None or node.action is None:
        return "-"
    return str(node.action) if game is None else action_to_text(game, nodes[node.parent].state, node.action)
