"""Search trees as text. The docstring of `tree_nodes.py` says from whose view values are."""

import math
from collections.abc import Collection, Sequence

from azjax.core.errors import InputError
from azjax.games.game import AnyGame
from azjax.games.protocols import TextGame, player_names
from azjax.render.tree_nodes import (
    NodeSummary,
    checked_max_nodes,
    most_visited,
    move_text,
    node_summaries,
    preorder,
)
from azjax.search.rules.ucb1 import DECIDED
from azjax.search.tree import Tree

ORDERS = {
    "made": "in the order in which they were made",
    "depth": "each followed by its subtree, the most visited child first",
    "visits": "the most visited first",
}
"""The orders of `to_text` and their descriptions."""

VALUES_NOTE = "Values are for the player who moved into the node; at the root, for the player to move."


def to_text(
    tree: Tree,
    game: AnyGame | None = None,
    row: int = 0,
    *,
    max_nodes: int | None = 50,
    order: str = "made",
    trace: bool = False,
    exploration: float = 2**0.5,
) -> str:
    """A tree as a table with one line per node.

    Columns: number, number of the parent, move, visits; then the wins of each side, value and UCB1 score if the search
    counts wins (`uct_policy`), else prior and value; what a solver has proven; the position.

    Args:
      tree: a batch of trees.
      game: writes moves and positions. Without it moves are action numbers. Positions are shown for a `TextGame` only.
      row: index in the batch.
      max_nodes: the number of nodes shown, at least 1: the first ones in the order "made", else the most visited ones;
        None for all.
      order: "made", "depth" (each node is followed by its subtree, indented) or "visits".
      trace: adds the column `NodeSummary.evaluation`, the value that each node had when it was made.
      exploration: weight in the UCB1 score, value + exploration sqrt(ln (visits of the parent) / visits); see
        `uct_policy`.

    Raises:
      InputError: `row` is outside the batch, `max_nodes` is below 1, or `order` is unknown.
    """
    if order not in ORDERS:
        raise InputError(f"order must be one of {', '.join(ORDERS)}, got {order!r}")
    nodes = node_summaries(tree, row)
    if order == "made":
        shown = list(nodes)[: checked_max_nodes(max_nodes)]
    else:
        shown = most_visited(nodes, max_nodes)
        if order == "depth":
            shown = preorder(nodes, shown)
    text_game = game if isinstance(game, TextGame) else None
    players = ("player 0", "player 1") if game is None else player_names(game)
    header = ["node", "parent", "move", "visits"]
    header += (
        ["prior", "value"]
        if DECIDED not in tree.sum_names
        else [*(f"wins of {name}" for name in players), "value", "UCB"]
    )
    header += ["proven"] if tree.bounds is not None else []
    header += ["evaluation"] if trace else []
    header += ["position"] if text_game else []
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
        cells += [text_game.to_text(node.state)] if text_game else []
        rows.append(cells)
    count = f"{len(nodes)} nodes" if len(shown) == len(nodes) else f"{len(shown)} of {len(nodes)} nodes"
    table = _aligned(rows, left={"move", "proven", "position"})
    return "\n".join([f"Tree {row}: {count}, {ORDERS[order]}.", VALUES_NOTE, *table])


def to_graphviz(
    tree: Tree, game: AnyGame | None = None, row: int = 0, *, max_nodes: int | None = 30, max_depth: int | None = None
) -> str:
    """The most visited nodes of a tree in Graphviz's DOT language; edges are labelled with move, visits and value.

    Args:
      tree: a batch of trees.
      game: writes the moves and, if it is a `TextGame`, draws the positions in characters. Otherwise nodes show their
        numbers.
      row: index in the batch.
      max_nodes: the number of nodes shown, at least 1; None for all.
      max_depth: plies shown below the root, at least 0; None for all.

    Raises:
      InputError: `row` is outside the batch, `max_nodes` is below 1 or `max_depth` below 0.
    """
    nodes = node_summaries(tree, row)
    lines = [
        "digraph tree {",
        f'  label="{_escaped(VALUES_NOTE)}";',
        '  node [shape=box, fontname="monospace"];',
        '  edge [fontname="sans-serif"];',
    ]
    for node in map(nodes.__getitem__, preorder(nodes, most_visited(nodes, max_nodes, max_depth))):
        drawing = game.draw(node.state) if isinstance(game, TextGame) else f"node {node.number}"
        if node.parent is None:
            drawing = f"{drawing}\n{statistics(node)}"
        # \l ends a left-aligned line.
        label = "".join(f"{_escaped(line)}\\l" for line in drawing.splitlines())
        lines.append(f'  n{node.number} [label="{label}"];')
        if node.parent is not None:
            label = f"{_escaped(move_text(nodes, game, node))}\\n{_escaped(statistics(node))}"
            lines.append(f'  n{node.parent} -> n{node.number} [label="{label}"];')
    return "\n".join([*lines, "}", ""])


def proof(node: NodeSummary) -> str:
    """The proven value or bound of a node; empty if nothing is proven."""
    if node.bounds is None:
        return ""
    lower, upper = node.bounds
    if lower == upper:
        return {-1.0: "loss", 0.0: "draw", 1.0: "win"}.get(lower, f"{lower:g}")
    return f">= {lower:g}" if lower > -1 else f"<= {upper:g}" if upper < 1 else ""


def statistics(node: NodeSummary) -> str:
    """Visits, value and proven value of a node."""
    parts = [f"{node.visits} visit{'s' if node.visits != 1 else ''}", signed(node.value), proof(node)]
    return ", ".join(part for part in parts if part)


def signed(value: float | None) -> str:
    """A value with its sign and three decimals; "-" for None."""
    return "-" if value is None else f"{round(value, 3) + 0.0:+.3f}"


def _escaped(text: str) -> str:
    """Text for a quoted string of DOT."""
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _aligned(rows: Sequence[Sequence[str]], left: Collection[str]) -> list[str]:
    """Lines of aligned columns: to the left for the columns named in `left`, else to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = ["<" if name in left else ">" for name in rows[0]]
    return [
        "  ".join(f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths, strict=True)).rstrip()
        for row in rows
    ]
