"""The top of a search tree as a picture. The docstring of `tree_nodes.py` says from whose view values are."""

import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence

from azjax.games.game import AnyGame
from azjax.render.picture import svg_element
from azjax.render.tree_nodes import NodeSummary, most_visited, move_text, node_summaries, preorder
from azjax.render.tree_text import VALUES_NOTE, statistics
from azjax.search.tree import ROOT, Tree

_SVG = "http://www.w3.org/2000/svg"
# In pixels.
_BOARD, _GAP, _LABEL, _EDGE, _MARGIN = 130.0, 20.0, 40.0, 64.0, 24.0
_NOTE_WIDTH = 460.0  # of `VALUES_NOTE`
_STYLE = (
    ".azjax-tree{--card:#fcfbf8;--ink:#33353b;--faint:#6d6d68;--edge:#b6b3aa}"
    "@media(prefers-color-scheme:dark){.azjax-tree{--card:#1d1f24;--ink:#e8e6e1;--faint:#9b9fa8;--edge:#5c6069}}"
)


def to_svg(tree: Tree, game: AnyGame, row: int = 0, *, max_nodes: int | None = 15, max_depth: int | None = None) -> str:
    """The most visited nodes of a tree as one SVG document without external references, with a board for each node.

    The root is at the top and the most visited child to the left. Above each board are the move, its visits and its
    value. The width of an edge shows its share of the parent's visits.

    Args:
      tree: a batch of trees.
      game: draws the positions and writes the moves; see `azjax.render.svg`.
      row: index in the batch.
      max_nodes: the number of nodes shown, at least 1; None for all.
      max_depth: plies shown below the root, at least 0; None for all.

    Raises:
      InputError: `row` is outside the batch, `max_nodes` is below 1, `max_depth` is below 0, or the game has no
        picture.
    """
    nodes = node_summaries(tree, row)
    shown = preorder(nodes, most_visited(nodes, max_nodes, max_depth))
    boards = {number: svg_element(game, nodes[number].state, nodes[number].action) for number in shown}
    _, _, width, height = map(float, boards[ROOT].attrib["viewBox"].split())
    board_height = _BOARD * height / width
    level = _LABEL + board_height + _EDGE
    columns = _columns(nodes, shown)
    left = {number: _MARGIN + column * (_BOARD + _GAP) for number, column in columns.items()}
    top = {number: _MARGIN + _LABEL + nodes[number].depth * level for number in shown}
    title = f"{game.name}: {len(shown)} of {len(nodes)} nodes of a search tree"
    size = {
        "width": f"{max(*left.values(), _NOTE_WIDTH - _BOARD) + _BOARD + _MARGIN:g}",
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
    _label(picture, _MARGIN, float(size["height"]) - _MARGIN, VALUES_NOTE, 11, "faint", **{"text-anchor": "start"})
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


def _columns(nodes: Mapping[int, NodeSummary], order: Sequence[int]) -> dict[int, float]:
    """The horizontal position of each node: leaves side by side, the others centered above their children."""
    columns: dict[int, float] = {}
    leaves = [number for number in order if not any(child in order for child in nodes[number].children)]
    columns.update((number, float(column)) for column, number in enumerate(leaves))
    for number in reversed(order):
        below = [columns[child] for child in nodes[number].children if child in columns]
        if below:
            columns[number] = (below[0] + below[-1]) / 2
    return columns


def _label(
    parent: ElementTree.Element, x: float, y: float, text: str, size: int, color: str, **attributes: str
) -> None:
    style = {"x": f"{x:g}", "y": f"{y:g}", "font-size": str(size), "fill": f"var(--{color})", "text-anchor": "middle"}
    ElementTree.SubElement(parent, "text", style | attributes).text = text
