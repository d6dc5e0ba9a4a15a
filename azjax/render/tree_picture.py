"""Pictures of the top of a search tree: for Graphviz, and as SVG. Values are seen as in `view.py`."""

import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence

from azjax.games.game import Game
from azjax.render.picture import svg
from azjax.render.tree_text import (
    SEEN_BY,
    NodeView,
    made_nodes,
    most_visited,
    move_text,
    position_text,
    preorder,
    statistics,
)
from azjax.search.tree import ROOT, Tree

_SVG = "http://www.w3.org/2000/svg"
_BOARD, _GAP, _LABEL, _EDGE, _MARGIN = 130.0, 20.0, 40.0, 64.0, 24.0  # of the picture, in pixels
_WORDS = 460.0  # the width of `SEEN_BY`
_STYLE = (
    ".azjax-tree{--card:#fcfbf8;--ink:#33353b;--faint:#6d6d68;--edge:#b6b3aa}"
    "@media(prefers-color-scheme:dark){.azjax-tree{--card:#1d1f24;--ink:#e8e6e1;--faint:#9b9fa8;--edge:#5c6069}}"
)


def to_graphviz(
    tree: Tree, game: Game | None = None, row: int = 0, *, max_nodes: int | None = 30, max_depth: int | None = None
) -> str:
    """The most visited nodes of a tree in Graphviz's DOT language; edges are labelled with move, visits and value.

    Args:
      tree: the trees of a batch.
      game: draws the positions in characters and writes the moves. Without it, and for a game without text, nodes show
        their numbers.
      row: the index in the batch.
      max_nodes: how many nodes are shown, at least 1; None for all.
      max_depth: how many plies below the root are shown, at least 0; None for all.

    Raises:
      ValueError: row outside the batch, max_nodes below 1 or max_depth below 0.
    """
    nodes = made_nodes(tree, row)
    lines = [
        "digraph tree {",
        f'  label="{_quoted(SEEN_BY)}";',
        '  node [shape=box, fontname="monospace"];',
        '  edge [fontname="sans-serif"];',
    ]
    shown = preorder(nodes, most_visited(nodes, max_nodes, max_depth))
    for node in map(nodes.__getitem__, shown):
        drawn = f"node {node.number}"
        if game is not None and position_text(game, node) is not None:
            drawn = game.draw(node.state)
        if node.parent is None:
            drawn = f"{drawn}\n{statistics(node)}"
        # \l ends a line that is set to the left.
        label = "".join(f"{_quoted(line)}\\l" for line in drawn.splitlines())
        lines.append(f'  n{node.number} [label="{label}"];')
        if node.parent is not None:
            label = f"{_quoted(move_text(nodes, game, node))}\\n{_quoted(statistics(node))}"
            lines.append(f'  n{node.parent} -> n{node.number} [label="{label}"];')
    return "\n".join([*lines, "}", ""])


def to_svg(tree: Tree, game: Game, row: int = 0, *, max_nodes: int | None = 15, max_depth: int | None = None) -> str:
    """The most visited nodes of a tree as one SVG document, a board picture for each, without external references.

    Levels go down, and of the children of a node the most visited stands first. Above each board stand the move, its
    visits and its value; an edge is as wide as its share of the parent's visits.

    Args:
      tree: the trees of a batch.
      game: draws the positions (`Game.svg`) and writes the moves.
      row: the index in the batch.
      max_nodes: how many nodes are shown, at least 1; None for all.
      max_depth: how many plies below the root are shown, at least 0; None for all.

    Raises:
      ValueError: row outside the batch, max_nodes below 1 or max_depth below 0.
      NotImplementedError: the game has no picture.
    """
    nodes = made_nodes(tree, row)
    shown = preorder(nodes, most_visited(nodes, max_nodes, max_depth))
    boards = {number: _board(game, nodes[number]) for number in shown}
    _, _, width, height = map(float, boards[ROOT].attrib["viewBox"].split())
    board_height = _BOARD * height / width
    level = _LABEL + board_height + _EDGE
    columns = _columns(nodes, shown)
    left = {number: _MARGIN + column * (_BOARD + _GAP) for number, column in columns.items()}
    top = {number: _MARGIN + _LABEL + nodes[number].depth * level for number in shown}
    title = f"{game.name}: {len(shown)} of {len(nodes)} nodes of a search tree"
    size = {
        "width": f"{max(*left.values(), _WORDS - _BOARD) + _BOARD + _MARGIN:g}",
        "height": f"{max(top.values()) + board_height + 3 * _MARGIN:g}",
    }
    picture = ElementTree.Element(
        "svg",
        size,
        xmlns=_SVG,
        viewBox=f"0 0 {size['width']} {size['height']}",
        role="img",
        **{"class": "azjax-tree", "aria-label": title, "font-family": "system-ui, sans-serif"},
    )
    ElementTree.SubElement(picture, "title").text = title
    ElementTree.SubElement(picture, "style").text = _STYLE
    ElementTree.SubElement(picture, "rect", size, fill="var(--card)")
    _label(picture, _MARGIN, float(size["height"]) - _MARGIN, SEEN_BY, 11, "faint", **{"text-anchor": "start"})
    for node in map(nodes.__getitem__, shown):
        x, y = left[node.number], top[node.number]
        middle = x + _BOARD / 2
        hidden = sum(child not in boards for child in node.children)
        if hidden:
            _label(picture, middle, y + board_height + 12, f"{hidden} more", 11, "faint")
        if node.parent is not None:
            begin_x, begin_y = left[node.parent] + _BOARD / 2, top[node.parent] + board_height + 18
            end_y = y - _LABEL
            bend = (begin_y + end_y) / 2
            curve = f"M{begin_x:g} {begin_y:g}C{begin_x:g} {bend:g} {middle:g} {bend:g} {middle:g} {end_y:g}"
            thickness = f"{1 + 9 * node.visits / nodes[node.parent].visits:.1f}"
            style = {"fill": "none", "stroke": "var(--edge)", "stroke-width": thickness}
            ElementTree.SubElement(picture, "path", style, d=curve)
            _label(picture, middle, y - 24, move_text(nodes, game, node), 15, "ink", **{"font-weight": "600"})
        _label(picture, middle, y - 8, statistics(node), 12, "faint")
        board = boards[node.number]
        board.attrib.update(x=f"{x:g}", y=f"{y:g}", width=f"{_BOARD:g}", height=f"{board_height:g}")
        picture.append(board)
    return ElementTree.tostring(picture, encoding="unicode")


def _columns(nodes: Mapping[int, NodeView], order: Sequence[int]) -> dict[int, float]:
    """Where each node stands from left to right: those without children side by side, the others above theirs."""
    columns: dict[int, float] = {}
    lowest = [number for number in order if not any(child in order for child in nodes[number].children)]
    columns.update((number, float(column)) for column, number in enumerate(lowest))
    for number in reversed(order):
        below = [columns[child] for child in nodes[number].children if child in columns]
        if below:
            columns[number] = (below[0] + below[-1]) / 2
    return columns


def _quoted(text: str) -> str:
    """As it stands inside the quotation marks of DOT."""
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _label(
    parent: ElementTree.Element, x: float, y: float, text: str, size: int, color: str, **attributes: str
) -> None:
    style = {"x": f"{x:g}", "y": f"{y:g}", "font-size": str(size), "fill": f"var(--{color})", "text-anchor": "middle"}
    ElementTree.SubElement(parent, "text", style | attributes).text = text


def _board(game: Game, node: NodeView) -> ElementTree.Element:
    """The game's picture of the node, to stand inside another; its own size is in its `viewBox`."""
    board = ElementTree.fromstring(svg(game, node.state, last_action=node.action))
    for element in board.iter():
        element.tag = element.tag.removeprefix(f"{{{_SVG}}}")
    if "viewBox" not in board.attrib:
        width, height = (board.attrib[side].removesuffix("px") for side in ("width", "height"))
        board.set("viewBox", f"0 0 {width} {height}")
    return board
