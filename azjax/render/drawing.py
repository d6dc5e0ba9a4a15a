"""Parts of pictures: a sheet for one position, and the shapes that games put on it.

A picture is one SVG document that scales, follows light and dark mode, loads nothing and runs nothing. A square of the
board is 100 by 100 units and the top left corner of the board is (0, 0), so the middle of square (row, column) is
(100 column + 50, 100 row + 50); `data-rows` and `data-columns` tell how many there are. Colours are named by their
role, such as `first` for the pieces of player 0.
"""

import math
import string
from collections.abc import Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from azjax.core.errors import InputError
from azjax.games.game import Game
from azjax.games.protocols import action_to_text, player_names

SQUARE = 100
LAYERS = ("board", "marks", "pieces", "signs")
"""What lies beneath what."""

Colors = Mapping[str, tuple[str, str]]
"""Colours by role, each in light and in dark mode."""

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
SMALLEST_PROBABILITY = 0.01
_LONGER_SIDE = 400  # pixels, where the page asks for no size


def number(value: float) -> str:
    """A length with at most one decimal."""
    return f"{round(value, 1) + 0.0:.1f}".removesuffix(".0")


def shape(tag: str, *inside: str, **attributes: Any) -> str:
    """An SVG element; `stroke_width=3` is written `stroke-width="3"`, and `fill="ink"` is the colour of that role."""
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


def rectangle(x: float, y: float, width: float, height: float, **attributes: Any) -> str:
    return shape("rect", x=x, y=y, width=width, height=height, **attributes)


def circle(x: float, y: float, radius: float, **attributes: Any) -> str:
    return shape("circle", cx=x, cy=y, r=radius, **attributes)


def path(data: str, **attributes: Any) -> str:
    return shape("path", d=data, **attributes)


def line(start: tuple[float, float], end: tuple[float, float], **attributes: Any) -> str:
    return path(f"M{number(start[0])} {number(start[1])}L{number(end[0])} {number(end[1])}", **attributes)


def words(x: float, y: float, text: str, size: float, **attributes: Any) -> str:
    """Text with its middle at (x, y)."""
    centred = {"dy": "0.35em", "text_anchor": "middle"}
    return shape("text", escape(text), x=x, y=y, font_size=size, **centred, **attributes)


def middle(row: float, column: float) -> tuple[float, float]:
    """(x, y) of the middle of a square."""
    return SQUARE * (column + 0.5), SQUARE * (row + 0.5)


def tile(row: int, column: int, inset: float, **attributes: Any) -> str:
    """A square of the board, smaller by `inset` on each side."""
    side = SQUARE - 2 * inset
    return rectangle(SQUARE * column + inset, SQUARE * row + inset, side, side, **attributes)


def arrow(start: tuple[float, float], end: tuple[float, float], width: float, gap: float, **attributes: Any) -> str:
    """From one point towards another, `gap` squares short of it; `width` is that of the shaft."""
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


def percentage(x: float, y: float, probability: float, size: float, **attributes: Any) -> str:
    """A probability with its middle at (x, y), smaller where it has three digits, so that all are about as wide."""
    text = percent(probability)
    return words(x, y, text, size * min(1, 3.2 / len(text)), font_weight="600", **attributes)


def likely_actions(game: Game, policy: Any, count: int) -> list[tuple[int, float]]:
    """The `count` most probable actions and their probabilities, falling; those below 1% are left out.

    Args:
      policy: float [A], or None, which has no likely actions.

    Raises:
      ValueError: `policy` has another shape.
    """
    if policy is None:
        return []
    policy = np.asarray(policy, np.float64)
    if policy.shape != (game.num_actions,):
        raise InputError(f"{game.name}: a policy has shape ({game.num_actions},), got {policy.shape}")
    order = np.argsort(-policy, kind="stable")[:count]
    return [(int(action), float(policy[action])) for action in order if policy[action] >= SMALLEST_PROBABILITY]


class Sheet:
    """The board, room for coordinates around it, and a line of words beneath.

    Args:
      look: its name; two pictures with the same look have the same colours.
      rows, columns: of the board.
      colors: of the look's own roles. `first` and `second`, the pieces of the players, and their edges
        `first-edge` and `second-edge` must be among them.
    """

    def __init__(self, look: str, rows: int, columns: int, colors: Colors) -> None:
        self.look, self.rows, self.columns = look, rows, columns
        self.colors = {**COMMON_COLORS, **colors}
        self.layers: dict[str, list[str]] = {layer: [] for layer in LAYERS}
        # Words have the same size in all pictures that are equally large.
        self.scale = max(rows, columns, 3) * SQUARE / 520

    def add(self, layer: str, *shapes: str) -> None:
        self.layers[layer] += shapes

    def piece(self, row: float, column: float, *shapes: str, falls: bool = False) -> None:
        """A piece, drawn around (0, 0), on a square. `animate` slides it, or lets it fall from above the board."""
        x, y = (number(length) for length in middle(row, column))
        fall = {"data-from": f"{x} {-SQUARE}"} if falls else {}
        self.add("pieces", shape("g", *shapes, transform=f"translate({x} {y})", **fall))

    def ground(self, **attributes: Any) -> str:
        """The whole board, a little wider than its squares."""
        width, height = SQUARE * self.columns + 12, SQUARE * self.rows + 12
        return rectangle(-6, -6, width, height, rx=14, stroke_width=4, **attributes)

    def strike(self, start: tuple[int, int], end: tuple[int, int]) -> None:
        """A line through the squares, (row, column), that won."""
        (x1, y1), (x2, y2) = middle(*start), middle(*end)
        beyond = 0.28 * SQUARE / max(abs(x2 - x1), abs(y2 - y1), 1)
        over = ((x2 - x1) * beyond, (y2 - y1) * beyond)
        ends = (x1 - over[0], y1 - over[1]), (x2 + over[0], y2 + over[1])
        for color, width in (("win-edge", 14), ("win", 8)):
            self.add("signs", line(*ends, stroke=color, stroke_width=width, stroke_linecap="round"))

    def heat(self, likely: Sequence[tuple[tuple[int, int], float]], numbers: int) -> None:
        """Squares ((row, column), probability), falling, and the percentages of the first `numbers` of them."""
        for place, (square, probability) in enumerate(likely):
            opacity = 0.1 + 0.5 * probability / likely[0][1]
            self.add("marks", tile(*square, 3, rx=10, fill="policy", fill_opacity=opacity))
            if place < numbers:
                self.add("signs", percentage(*middle(*square), probability, 24, fill="ink"))

    def arrows(self, moves: Sequence[tuple[tuple[int, int], tuple[int, int], float]], badges: int) -> None:
        """Moves (from, to, probability), falling, and the percentages of the first `badges` of them."""
        badged: list[tuple[float, float]] = []
        signs: list[str] = []
        for place, (start, end, probability) in enumerate(moves):
            strength = probability / moves[0][2]
            at, tip = middle(*end), 0.08
            if place < badges:
                if at in badged:
                    at = middle(*(0.64 * before + 0.36 * after for before, after in zip(start, end, strict=True)))
                else:
                    tip = 0.24
                badged.append(at)
                badge = circle(*at, 23, fill="policy", stroke="on-policy", stroke_width=2)
                signs = [*signs, badge, percentage(*at, probability, 19, fill="on-policy")]
            style = {"fill": "policy", "opacity": 0.45 + 0.5 * strength}
            signs.insert(0, arrow(middle(*start), middle(*end), 5 + 9 * strength, tip, **style))
        self.add("signs", *signs)

    def coordinates(self, columns: Sequence[str] | None = None, *, rows: bool = True) -> None:
        """Names of the columns, letters by default, beneath the board, and numbers of the rows beside it."""
        size = 23 * self.scale
        for column, name in enumerate(columns or string.ascii_lowercase[: self.columns]):
            y = SQUARE * self.rows + 26 * self.scale
            self.add("board", words(SQUARE * (column + 0.5), y, name, size, fill="faint"))
        for row in range(self.rows if rows else 0):
            label = str(self.rows - row)
            self.add("board", words(-22 * self.scale, SQUARE * (row + 0.5), label, size, fill="faint"))

    def document(
        self,
        game: Game,
        state: Any,
        *details: str,
        likely: Sequence[tuple[int, float]] = (),
        last_move: str | None = None,
    ) -> str:
        """The picture. Beneath the board stands whose turn it is, or who has won, and what the marks mean.

        Args:
          details: sentences for people who hear the picture: what is where.
          likely: of `likely_actions`; told too.
          last_move: told too.
        """
        width = max(SQUARE * self.columns + 92 * self.scale, 400 * self.scale)
        height = SQUARE * self.rows + 128 * self.scale
        left, top = (SQUARE * self.columns - width) / 2, -30 * self.scale
        player, status = _status(game, state)
        size, foot, margin = 22 * self.scale, top + height - 30 * self.scale, 42 * self.scale
        parts = [escape(status)]
        if player is not None:
            color = ("first", "second")[player]
            parts = [_dot(color, stroke=f"{color}-edge", stroke_width=0.06 * size), " ", *parts]
        self.add("signs", self._line_of_words(left + margin, foot, size, "start", parts))
        legend = ["last move ", _dot("last")] if last_move else []
        legend += [" " * 3 if legend else "", "policy ", _dot("policy")] if likely else []
        if legend:
            self.add("signs", self._line_of_words(left + width - margin, foot, 0.8 * size, "end", legend))
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
            **{"class": f"azjax {self.look}", "role": "img", "aria-label": ". ".join(label)},
            font_family="system-ui, sans-serif",
        )

    def _line_of_words(self, x: float, y: float, size: float, anchor: str, parts: Sequence[str]) -> str:
        style = {"font_size": size, "dy": "0.35em", "text_anchor": anchor, "fill": "ink", "xml:space": "preserve"}
        return shape("text", *parts, x=x, y=y, **style)

    def _style(self) -> str:
        def block(mode: int) -> str:
            return f".azjax.{self.look}{{{';'.join(f'--{role}:{both[mode]}' for role, both in self.colors.items())}}}"

        return f"{block(0)}@media(prefers-color-scheme:dark){{{block(1)}}}"


def _dot(color: str, **attributes: Any) -> str:
    return shape("tspan", "\N{BLACK CIRCLE}", fill=color, **attributes)


def _status(game: Game, state: Any) -> tuple[int | None, str]:
    """The player whom the line beneath the board is about, None for a draw, and the line."""
    rewards = np.asarray(state.rewards)
    if state.terminated and rewards[0] == rewards[1]:
        return None, "Draw"
    player = int(np.argmax(rewards)) if state.terminated else int(state.current_player)
    name = player_names(game)[player]
    return player, f"{name[0].upper()}{name[1:]} {'won' if state.terminated else 'to move'}"
