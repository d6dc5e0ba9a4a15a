"""Search trees to look at, as text. All of it runs on the host, on one tree of a batch; pictures are in `picture.py`.

Values of a node (its mean return, its evaluation, its bounds) are seen by the player who moved into the node, those of
the root by its player to move. So of all moves of a position the one with the highest value is the best one.
"""

import functools
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, overload

import jax
import jax.numpy as jnp
import numpy as np

from azjax.core.errors import InputError
from azjax.games.game import Game
from azjax.games.protocols import action_to_text, player_names
from azjax.search.tree import DISCOUNT, PARENT, PRIOR, RETURNS, REWARD, ROOT, SLOT, VISITS, Tree

ORDERS = {
    "made": "in the order in which they were made",
    "depth": "each above those below it, of the most visited",
    "visits": "the most visited first",
}
"""The orders of `to_text`, and what is said of each."""

SEEN_BY = "Values are seen by the player who moved into the node, the root's by its player to move."


class NodeView(NamedTuple):
    """A node of one search tree, on the host. The module says by whom values are seen.

    Attributes:
      number: in the tree; the root is 0.
      parent: the number of the node above; None at the root.
      depth: plies below the root.
      action: that led to the node; None at the root.
      visits: simulations that passed through it.
      prior: probability of the action; 1 at the root.
      value: mean return of the visits.
      evaluation: mean return of the visits that ended here, up to rounding: what the evaluator gave the new node, such
        as the result of its rollout, or the result of a finished game. None where no visit ended here, and for a
        position that a solver has proven from those below it, since proofs replace returns.
      wins: visits won for player 0 and for player 1; None where the search does not count decided visits.
      bounds: what the value is proven to lie between; None without a solver.
      state: the position, without its history.
      children: numbers of the nodes below it, the most visited first, the lowest slot first on ties.
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
    state: Any
    children: tuple[int, ...]


def made_nodes(tree: Tree, row: int = 0, most: int | None = None) -> dict[int, NodeView]:
    """The root and the nodes below it that have visits, by their numbers, ascending.

    Args:
      tree: the trees of a batch.
      row: the index in the batch.
      most: only so many, the most visited, of which children that are left out count as visits all the same; None for
        all.

    Raises:
      ValueError: row outside the batch.
    """
    if not 0 <= row < tree.batch:
        raise InputError(f"row must be in 0..{tree.batch - 1}, got {row}")
    count = tree.num_nodes if most is None else min(most, tree.num_nodes)
    of_all, of_shown = jax.device_get(_arrays(tree, row, count))
    (sums, links, reward_and_discount), (shown, *rows) = of_all, of_shown
    place = {number: place for place, number in enumerate(shown.tolist()) if sums[number, VISITS] > 0 or number == ROOT}
    states, prior, actions, decided, bounds = rows
    below: dict[int, list[int]] = {}
    for number in np.flatnonzero(sums[:, VISITS] > 0).tolist():
        if number != ROOT:
            below.setdefault(int(links[number, PARENT]), []).append(number)

    def view(number: int, depth: int) -> NodeView:
        state = jax.tree.map(lambda leaf: leaf[place[number]], states)
        slot, parent = int(links[number, SLOT]), int(links[number, PARENT])
        reward, discount = (0.0, 1.0) if number == ROOT else reward_and_discount[number].tolist()
        visits, returns = int(sums[number, VISITS]), float(sums[number, RETURNS])
        children = sorted(below.get(number, []), key=lambda child: (-sums[child, VISITS], links[child, SLOT]))
        proven = None
        if bounds is not None:
            low, high = sorted(reward + discount * bound + 0.0 for bound in bounds[place[number]].tolist())
            proven = (low, high)
        visits_below = sum(int(sums[child, VISITS]) for child in children)
        returns_below = reward * visits_below + discount * sum(float(sums[child, RETURNS]) for child in children)
        ended_here = visits - visits_below
        is_known = ended_here > 0 and not (children and proven and proven[0] == proven[1])
        wins = None
        if decided is not None:
            mover = states.current_player[place[ROOT if number == ROOT else parent]]
            won, lost = (round((float(decided[place[number]]) + side * returns) / 2) for side in (1, -1))
            wins = (won, lost) if mover == 0 else (lost, won)
        return NodeView(
            number=number,
            parent=None if number == ROOT else parent,
            depth=depth,
            action=None if number == ROOT else slot if actions is None else int(actions[place[parent], slot]),
            visits=visits,
            prior=1.0 if number == ROOT else float(prior[place[number]]),
            value=returns / max(visits, 1),
            evaluation=(returns - returns_below) / ended_here if is_known else None,
            wins=wins,
            bounds=proven,
            state=state,
            children=tuple(child for child in children if child in place),
        )

    nodes: dict[int, NodeView] = {}
    level, depth = [ROOT], 0
    while level:
        nodes.update((number, view(number, depth)) for number in level)
        level, depth = [child for number in level for child in nodes[number].children], depth + 1
    return dict(sorted(nodes.items()))


@functools.partial(jax.jit, static_argnames="count")
def _arrays(tree: Tree, row: int, count: int) -> tuple:
    """What is looked at of one tree: of all nodes what is small, and the rest of the `count` most visited ones."""
    sums, links, facts = (each[:, row] for each in (tree.sums, tree.links, tree.facts))
    shown = jnp.sort(jnp.argsort(-sums[:, VISITS])[:count])  # a stable sort: parents are older than their children
    rows = (None if each is None else each[shown, row] for each in (tree.actions, tree.decided, tree.bounds))
    states = tree.packing.unpack(tree.positions[shown, row])
    return (sums, links, facts[:, jnp.array([REWARD, DISCOUNT])]), (shown, states, facts[shown, PRIOR], *rows)


@overload
def principal_variation(tree: Tree, game: None = None, row: int = 0) -> list[int]: ...


@overload
def principal_variation(tree: Tree, game: Game, row: int = 0) -> list[str]: ...


def principal_variation(tree: Tree, game: Game | None = None, row: int = 0) -> list[int] | list[str]:
    """The most visited line from the root down to a node without children.

    With a solver the line leaves out what is proven not to be played: the moves of a proven position that do not reach
    its value, and lost moves.

    Args:
      tree: the trees of a batch.
      game: writes the moves; None for a list of actions.
      row: the index in the batch.

    Raises:
      ValueError: row outside the batch.
    """
    nodes = made_nodes(tree, row)
    line = line_of(nodes)
    if game is None:
        return [node.action for node in line if node.action is not None]
    return [move_text(nodes, game, node) for node in line]


def line_of(nodes: Mapping[int, NodeView]) -> list[NodeView]:
    """The nodes of the principal variation, without the root."""
    node, line = nodes[ROOT], []
    while standing := _standing(nodes, node):
        node = nodes[standing[0]]
        line.append(node)
    return line


def to_text(
    tree: Tree,
    game: Game | None = None,
    row: int = 0,
    *,
    max_nodes: int | None = 50,
    order: str = "made",
    trace: bool = False,
    exploration: float = 2**0.5,
) -> str:
    """A tree as a table, a node a line.

    Columns: number, number of the parent, move, visits; wins of each side, value and UCB1 score where decided visits
    are counted (`uct_policy`), else prior and value; what a solver has proven; the position.

    Args:
      tree: the trees of a batch.
      game: writes moves and positions. Without it moves are plain actions; without it, and for a game without text,
        there are no positions.
      row: the index in the batch.
      max_nodes: how many nodes are shown, at least 1: those made first in the order "made", else the most visited;
        None for all.
      order: "made", "depth" (each node is followed by those below it, which are indented) or "visits".
      trace: also show what each node was judged to be worth when it was made: its `NodeView.evaluation`.
      exploration: of the UCB1 score, value + exploration sqrt(ln (visits of the parent) / visits); see `uct_policy`.

    Raises:
      ValueError: row outside the batch, max_nodes below 1, or an unknown order.
    """
    if order not in ORDERS:
        raise InputError(f"order must be one of {', '.join(ORDERS)}, got {order!r}")
    nodes = made_nodes(tree, row)
    if order == "made":
        shown = list(nodes)[: _checked(max_nodes)]
    else:
        shown = most_visited(nodes, max_nodes)
        if order == "depth":
            shown = preorder(nodes, shown)
    has_text = position_text(game, nodes[ROOT]) is not None
    players = ("player 0", "player 1") if game is None else player_names(game)
    header = ["node", "parent", "move", "visits"]
    header += ["prior", "value"] if tree.decided is None else [*(f"wins of {name}" for name in players), "value", "UCB"]
    header += ["proven"] if tree.bounds is not None else []
    header += ["judged"] if trace else []
    header += ["position"] if has_text else []
    rows = [header]
    for node in map(nodes.__getitem__, shown):
        parent = None if node.parent is None else nodes[node.parent]
        indent = "  " * node.depth if order == "depth" else ""
        cells = [str(node.number), "-" if parent is None else str(parent.number)]
        cells += [indent + move_text(nodes, game, node), str(node.visits)]
        if node.wins is None:
            cells += ["-" if parent is None else f"{node.prior:.3f}", signed(node.value)]
        else:
            score = None
            if parent is not None:
                score = node.value + exploration * math.sqrt(math.log(parent.visits) / node.visits)
            cells += [*map(str, node.wins), signed(node.value), signed(score)]
        cells += [proof(node) or "-"] if tree.bounds is not None else []
        cells += [signed(node.evaluation)] if trace else []
        cells += [position_text(game, node) or "-"] if has_text else []
        rows.append(cells)
    count = f"{len(nodes)} nodes" if len(shown) == len(nodes) else f"{len(shown)} of {len(nodes)} nodes"
    return "\n".join(
        [
            f"Tree {row}: {count}, {ORDERS[order]}.",
            SEEN_BY,
            *_table(rows, left={"move", "proven", "position"}),
        ]
    )


def _checked(max_nodes: int | None) -> int | None:
    if max_nodes is not None and max_nodes < 1:
        raise InputError(f"max_nodes must be at least 1, or None for all nodes, got {max_nodes}")
    return max_nodes


def most_visited(nodes: Mapping[int, NodeView], max_nodes: int | None, max_depth: int | None = None) -> list[int]:
    """Numbers of the most visited nodes; with each there is its parent, which is visited at least as often."""
    if max_depth is not None and max_depth < 0:
        raise InputError(f"max_depth must be at least 0, or None for any depth, got {max_depth}")
    deep_enough = [node for node in nodes.values() if max_depth is None or node.depth <= max_depth]
    deep_enough.sort(key=lambda node: (-node.visits, node.depth, node.number))
    return [node.number for node in deep_enough[: _checked(max_nodes)]]


def preorder(nodes: Mapping[int, NodeView], shown: Collection[int]) -> list[int]:
    """The same nodes, each before those below it, the most visited child first."""
    wanted, order, waiting = set(shown), [], [ROOT]
    while waiting:
        order.append(waiting.pop())
        waiting += [child for child in reversed(nodes[order[-1]].children) if child in wanted]
    return order


def _standing(nodes: Mapping[int, NodeView], node: NodeView) -> list[int]:
    """The children that may be played for what is proven of them, the most visited first."""
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


def move_text(nodes: Mapping[int, NodeView], game: Game | None, node: NodeView) -> str:
    """The move into the node, as a plain action without a game; "-" at the root."""
    if node.parent is None or node.action is None:
        return "-"
    return str(node.action) if game is None else action_to_text(game, nodes[node.parent].state, node.action)


def position_text(game: Game | None, node: NodeView) -> str | None:
    """The position in one line; None without a game, and in a game without text."""
    if game is None:
        return None
    try:
        return game.to_text(node.state)
    except NotImplementedError:
        return None


def proof(node: NodeView) -> str:
    """What is proven for the player by whom values are seen; empty where nothing is."""
    if node.bounds is None:
        return ""
    lower, upper = node.bounds
    if lower == upper:
        return {-1.0: "loss", 0.0: "draw", 1.0: "win"}.get(lower, f"{lower:g}")
    return f">= {lower:g}" if lower > -1 else f"<= {upper:g}" if upper < 1 else ""


def statistics(node: NodeView) -> str:
    """Visits, value, and what is proven."""
    parts = [f"{node.visits} visit{'s' if node.visits != 1 else ''}", signed(node.value), proof(node)]
    return ", ".join(part for part in parts if part)


def signed(value: float | None) -> str:
    """A value with its sign and three decimals; "-" for none."""
    return "-" if value is None else f"{round(value, 3) + 0.0:+.3f}"


def _table(rows: Sequence[Sequence[str]], left: Collection[str]) -> list[str]:
    """Lines of equal columns, which stand to the right but for those that are named."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = ["<" if name in left else ">" for name in rows[0]]
    return [
        "  ".join(f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths, strict=True)).rstrip()
        for row in rows
    ]
