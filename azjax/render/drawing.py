"""The parts of a board picture: a sheet with layers, and SVG shapes to put on it.

A picture is one SVG document that scales, follows light and dark mode, has no scripts and loads nothing. A square of
the board is 100 by 100 units and the top left corner of the board is (0, 0), so the center of square (row, column) is
(100 column + 50, 100 row + 50), unless the sheet has rows that lie elsewhere. `data-rows` and `data-columns` give the
size of the board, and `data-down` how far right and down each row lies from the one above. Colors are named by their
role; `first`, for example, is the color of player 0's pieces.
"""

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias
from xml.sax.saxutils import escape, quoteattr

import numpy as np
from jaxtyping import Array, Bool, Float

from azjax.core.errors import InputError
from azjax.games.game import AnyGame, State
from azjax.games.protocols import action_to_text, column_name, player_names

SQUARE = 100
"""The side of a square."""

LAYERS = ("board", "marks", "pieces", "signs")
"""The layers of a sheet, the lowest first."""

Colors: TypeAlias = Mapping[str, tuple[str, str]]
"""Colors by role, each in light and in dark mode."""

Length: TypeAlias = float | int
Point: TypeAlias = tuple[Length, Length]
"""(x, y)."""

Square: TypeAlias = tuple[int, int]
"""(row, column); rows are counted from the top."""

Likely: TypeAlias = Sequence[tuple[int, float]]
"""Actions and their probabilities, the most probable first."""

Policy: TypeAlias = Float[Array | np.ndarray, "A"]
"""Probabilities of the actions."""

Attributes: TypeAlias = dict[str, str | float | int]
"""Attributes of an SVG element; see `shape`."""

COMMON_COLORS: Colors = {
    "card": ("#fcfbf8", "#1d1f24"),
    "ink": ("#33353b", "#e8e6e1"),
    "faint": ("#6d6d68", "#9b9fa8"),
    "policy": ("#7a3ec8", "#b98cff"),
    "on-policy": ("#ffffff", "#1f1033"),
    "win": ("#17935a", "#45d492"),
    "win-edge": ("#ffffff", "#10131a"),
    "last": ("#f2b632", "#d99f2b"),
}
MIN_PROBABILITY = 0.01
"""Actions below it are not drawn."""

_LONGER_SIDE = 400  # pixels, unless the page sets a size


def number(value: Length) -> str:
    """A length with at most one decimal."""
    return f"{round(value, 1) + 0.0:.1f}".removesuffix(".0")


def shape(tag: str, *inside: str, **attributes: str | float | int) -> str:
    """An SVG element; `stroke_width=3` is written `stroke-width="3"`, and `fill="ink"` is the color of that role."""
    written = []
    for name, value in attributes.items():
        if name in ("fill", "stroke") and value != "none":
            value = f"var(--{value})"
        elif name.endswith("opacity"):
            value = f"{value:.2f}"
        elif not isinstance(value, str):
            value = number(value)
        written.append(f" {name.replace('_', '-')}={quoteattr(value)}")
    start = f"<{tag}{''.join(written)}"
    return f"{start}>{''.join(inside)}</{tag}>" if inside else f"{start}/>"


def rectangle(x: Length, y: Length, width: Length, height: Length, **attributes: str | float | int) -> str:
    """A rectangle with its top left corner at (x, y)."""
    return shape("rect", x=x, y=y, width=width, height=height, **attributes)


def circle(x: Length, y: Length, radius: Length, **attributes: str | float | int) -> str:
    """A circle with its center at (x, y)."""
    return shape("circle", cx=x, cy=y, r=radius, **attributes)


def path(data: str, **attributes: str | float | int) -> str:
    """An SVG path."""
    return shape("path", d=data, **attributes)


def line(start: Point, end: Point, **attributes: str | float | int) -> str:
    """A straight line."""
    return path(f"M{number(start[0])} {number(start[1])}L{number(end[0])} {number(end[1])}", **attributes)


def text(x: Length, y: Length, content: str, size: Length, **attributes: str | float | int) -> str:
    """Text with its center at (x, y)."""
    style: Attributes = {"dy": "0.35em", "text_anchor": "middle"}
    return shape("text", escape(content), x=x, y=y, font_size=size, **style, **attributes)


def center(row: Length, column: Length) -> Point:
    """The center of a square."""
    return SQUARE * (column + 0.5), SQUARE * (row + 0.5)


def squares(mask: Bool[np.ndarray, "rows columns"]) -> list[Square]:
    """The squares where `mask` is true, row by row."""
    return [(row, column) for row, column in np.argwhere(mask).tolist()]


def tile(row: int, column: int, inset: Length, /, **attributes: str | float | int) -> str:
    """A square of the board, smaller by `inset` on each side."""
    side = SQUARE - 2 * inset
    return rectangle(SQUARE * column + inset, SQUARE * row + inset, side, side, **attributes)


def arrow(start: Point, end: Point, width: Length, gap: Length, **attributes: str | float | int) -> str:
    """An arrow from `start` towards `end` that stops `gap` squares before it; `width` is that of the shaft."""
    length = math.dist(start, end)
    along = [(after - before) / length for before, after in zip(start, end, strict=True)]
    half, wing = width / 2, 0.9 * width + 5
    tail, tip = 0.22 * SQUARE, length - gap * SQUARE
    neck = tip - 1.5 * wing
    outline = [(tail, half), (neck, half), (neck, wing), (tip, 0), (neck, -wing), (neck, -half), (tail, -half)]
    points = [
        (start[0] + ahead * along[0] - aside * along[1], start[1] + ahead * along[1] + aside * along[0])
        for ahead, aside in outline
    ]
    return path(f"M{'L'.join(f'{number(x)} {number(y)}' for x, y in points)}Z", **attributes)


def percent(probability: float) -> str:
    return f"{100 * probability:.0f}%"


def percentage(x: Length, y: Length, probability: float, size: Length, **attributes: str | float | int) -> str:
    """A probability with its center at (x, y); 100% is written smaller, so that all are about as wide."""
    content = percent(probability)
    return text(x, y, content, size * min(1, 3.2 / len(content)), font_weight="600", **attributes)


def likely_actions(game: AnyGame, policy: Policy | None, count: int) -> list[tuple[int, float]]:
    """The `count` most probable actions with their probabilities, by falling probability and at least 1%.

    Raises:
      InputError: `policy` does not have the game's number of actions.
    """
    if policy is None:
        return []
    probabilities = np.asarray(policy, np.float64)
    if probabilities.shape != (game.num_actions,):
        raise InputError(f"{game.name}: a policy has shape ({game.num_actions},), got {probabilities.shape}")
    order = np.argsort(-probabilities, kind="stable")[:count].tolist()
    return [(action, float(probabilities[action])) for action in order if probabilities[action] >= MIN_PROBABILITY]


class Sheet:
    """A board with a margin for coordinates and a line of text below.

    Args:
      look: name of the style; pictures with the same look have the same colors.
      rows: of the board.
      columns: of the board.
      colors: the colors of the look. They must include the pieces of the players, `first` and `second`, and their
        edges, `first-edge` and `second-edge`.
      down: how far right and down each row lies from the one above. `center` and `piece` follow it; the other methods
        draw on boards of squares.
    """

    def __init__(
        self, look: str, rows: int, columns: int, colors: Colors, *, down: tuple[float, float] = (0, SQUARE)
    ) -> None:
        self.look, self.rows, self.columns, self.down = look, rows, columns, down
        self.width, self.height = SQUARE * columns + down[0] * (rows - 1), SQUARE + down[1] * (rows - 1)
        self.colors = {**COMMON_COLORS, **colors}
        self.layers: dict[str, list[str]] = {layer: [] for layer in LAYERS}
        # Makes text equally large in all pictures of the same size.
        self.scale = max(self.width, self.height, 3 * SQUARE) / 520

    def center(self, row: Length, column: Length) -> Point:
        """The center of a square."""
        return SQUARE * (column + 0.5) + self.down[0] * row, SQUARE / 2 + self.down[1] * row

    def add(self, layer: str, *shapes: str) -> None:
        """Puts shapes on top of a layer."""
        self.layers[layer] += shapes

    def piece(self, row: Length, column: Length, *shapes: str, falls: bool = False) -> None:
        """Puts a piece, drawn around (0, 0), on a square. Animations slide it, or drop it from above the board."""
        x, y = (number(length) for length in self.center(row, column))
        fall = {"data-from": f"{x} {-SQUARE}"} if falls else {}
        self.add("pieces", shape("g", *shapes, transform=f"translate({x} {y})", **fall))

    def ground(self, **attributes: str | float | int) -> str:
        """The whole board, a little wider than its squares."""
        width, height = SQUARE * self.columns + 12, SQUARE * self.rows + 12
        return rectangle(-6, -6, width, height, rx=14, stroke_width=4, **attributes)

    def tiles(self) -> None:
        """Draws every square, in the color `square`."""
        for row, column in np.ndindex(self.rows, self.columns):
            self.add("board", tile(row, column, 3, rx=10, fill="square"))

    def mark(self, last_squares: Sequence[Square]) -> None:
        """Marks the squares of the last move."""
        for square in last_squares:
            self.add("marks", tile(*square, 3, rx=10, fill="last", fill_opacity=0.45))

    def strike(self, start: Square, end: Square) -> None:
        """Draws the winning line through a row of squares."""
        (x1, y1), (x2, y2) = center(*start), center(*end)
        beyond = 0.28 * SQUARE / max(abs(x2 - x1), abs(y2 - y1), 1)
        over = ((x2 - x1) * beyond, (y2 - y1) * beyond)
        ends = (x1 - over[0], y1 - over[1]), (x2 + over[0], y2 + over[1])
        for color, width in (("win-edge", 14), ("win", 8)):
            self.add("signs", line(*ends, stroke=color, stroke_width=width, stroke_linecap="round"))

    def heat(self, likely: Sequence[tuple[Square, float]], badges: int) -> None:
        """Shades squares by their probabilities, sorted falling, and writes the first `badges` of these."""
        for rank, (square, probability) in enumerate(likely):
            opacity = 0.1 + 0.5 * probability / likely[0][1]
            self.add("marks", tile(*square, 3, rx=10, fill="policy", fill_opacity=opacity))
            if rank < badges:
                self.add("signs", percentage(*center(*square), probability, 24, fill="ink"))

    def arrows(self, moves: Sequence[tuple[Square, Square, float]], badges: int) -> None:
        """Draws moves (from, to, probability), sorted falling, and writes the first `badges` probabilities."""
        badged: list[Point] = []
        signs: list[str] = []
        for rank, (start, end, probability) in enumerate(moves):
            strength = probability / moves[0][2]
            at, tip = center(*end), 0.08
            if rank < badges:
                if at in badged:  # another move ends there
                    at = center(*(0.64 * before + 0.36 * after for before, after in zip(start, end, strict=True)))
                else:
                    tip = 0.24
                badged.append(at)
                badge = circle(*at, 23, fill="policy", stroke="on-policy", stroke_width=2)
                signs = [*signs, badge, percentage(*at, probability, 19, fill="on-policy")]
            style: Attributes = {"fill": "policy", "opacity": 0.45 + 0.5 * strength}
            signs.insert(0, arrow(center(*start), center(*end), 5 + 9 * strength, tip, **style))
        self.add("signs", *signs)

    def coordinates(
        self, columns: Sequence[str] | None = None, *, rows: bool = True, rows_from_top: bool = False
    ) -> None:
        """Writes the columns' names (letters by default) below the board and the rows' numbers beside it."""
        size = 23 * self.scale
        for column, name in enumerate(columns or map(column_name, range(self.columns))):
            y = SQUARE * self.rows + 26 * self.scale
            self.add("board", text(SQUARE * (column + 0.5), y, name, size, fill="faint"))
        for row in range(self.rows if rows else 0):
            label = str(row + 1 if rows_from_top else self.rows - row)
            self.add("board", text(-22 * self.scale, SQUARE * (row + 0.5), label, size, fill="faint"))

    def document(
        self,
        game: AnyGame,
        state: State,
        *details: str,
        likely: Likely = (),
        last_move: str | None = None,
    ) -> str:
        """The SVG document. The line below the board says who is to move or has won, and explains the marks.

        Args:
          game: the game.
          state: the position.
          details: sentences for screen readers, such as which pieces stand where.
          likely: result of `likely_actions`.
          last_move: the last move as text.
        """
        width = max(self.width + 92 * self.scale, 400 * self.scale)
        height = self.height + 128 * self.scale
        left, top = (self.width - width) / 2, -30 * self.scale
        player, status = _status(game, state)
        size, foot, margin = 22 * self.scale, top + height - 30 * self.scale, 42 * self.scale
        parts = [escape(status)]
        if player is not None:
            color = ("first", "second")[player]
            parts = [_dot(color, stroke=f"{color}-edge", stroke_width=0.06 * size), " ", *parts]
        self.add("signs", _caption(left + margin, foot, size, "start", parts))
        legend = ["last move ", _dot("last")] if last_move else []
        legend += [" " * 3 if legend else "", "policy ", _dot("policy")] if likely else []
        if legend:
            self.add("signs", _caption(left + width - margin, foot, 0.8 * size, "end", legend))
        title = f"{game.name}: {status}"
        label = [title, *details]
        if last_move:
            label.append(f"Last move {last_move}")
        if likely:
            moves = (f"{action_to_text(game, state, action)} {percent(probability)}" for action, probability in likely)
            label.append(f"Likely moves {', '.join(moves)}")
        layers = [shape("g", *shapes, **{"class": layer}) for layer, shapes in self.layers.items() if shapes]
        return shape(
            "svg",
            shape("title", escape(title)),
            shape("style", self._style()),
            rectangle(left, top, width, height, rx=16 * self.scale, fill="card"),
            *layers,
            xmlns="http://www.w3.org/2000/svg",
            viewBox=" ".join(map(number, (left, top, width, height))),
            width=round(_LONGER_SIDE * width / max(width, height)),
            data_rows=self.rows,
            data_columns=self.columns,
            data_down=" ".join(map(number, self.down)),
            **{"class": f"azjax {self.look}", "role": "img", "aria-label": ". ".join(label)},
            font_family="system-ui, sans-serif",
        )

    def _style(self) -> str:
        def block(mode: int) -> str:
            return f".azjax.{self.look}{{{';'.join(f'--{role}:{both[mode]}' for role, both in self.colors.items())}}}"

        return f"{block(0)}@media(prefers-color-scheme:dark){{{block(1)}}}"


def _caption(x: Length, y: Length, size: Length, anchor: str, parts: Sequence[str]) -> str:
    style: Attributes = {"font_size": size, "dy": "0.35em", "text_anchor": anchor, "fill": "ink"}
    style["xml:space"] = "preserve"
    return shape("text", *parts, x=x, y=y, **style)


def _dot(color: str, **attributes: str | float | int) -> str:
    return shape("tspan", "\N{BLACK CIRCLE}", fill=color, **attributes)


def _status(game: AnyGame, state: State) -> tuple[int | None, str]:
    """The player whose color the caption shows (None for a draw), and the caption."""
    rewards = np.asarray(state.rewards)
    if state.terminated and rewards[0] == rewards[1]:
        return None, "Draw"
    player = int(np.argmax(rewards)) if state.terminated else int(state.current_player)
    name = player_names(game)[player]
    return player, f"{name[0].upper()}{name[1:]} {'won' if state.terminated else 'to move'}"
