"""A whole game as one animated SVG, or as slides to click through. Axis letter: `T` moves of the game.

A shape that several positions share is written once, with its offsets and the frames in which it is visible.
"""

import dataclasses
import hashlib
import html
import importlib.resources
import itertools
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence

from azjax.core.errors import InputError
from azjax.games.game import AnyGame, State
from azjax.games.protocols import action_to_text
from azjax.render.drawing import LAYERS
from azjax.render.picture import svg_element

_SVG = "http://www.w3.org/2000/svg"
_SLIDE, _FADE = 0.4, 0.2  # durations in plies
_REST_PLIES = 3  # at the end


def animate(game: AnyGame, states: Sequence[State], actions: Sequence[int], *, seconds_per_ply: float = 1.0) -> str:
    """A game as one SVG document that runs in a loop, with a rest at the end.

    Pieces slide and captured ones fade. With reduced motion, and in programs without animation, the last position is
    shown.

    Args:
      game: the game.
      states: T + 1 positions, beginning with the start.
      actions: T actions; action t leads from position t to position t + 1.
      seconds_per_ply: how long each position is shown.

    Raises:
      InputError: the numbers of states and actions do not match, or the time is not positive.
    """
    if not seconds_per_ply > 0:
        raise InputError(f"seconds_per_ply must be positive, got {seconds_per_ply}")
    frames = _frames(game, states, actions)
    digest = hashlib.sha256(b"".join(map(ElementTree.tostring, frames))).hexdigest()
    name, plies = f"azjax-{digest[:8]}", len(actions) + _REST_PLIES
    names: dict[str, str] = {}

    picture = frames[-1]
    label = picture.attrib["aria-label"]
    moves = ", ".join(_move_texts(game, states, actions))
    picture.set("aria-label", f"A game of {len(actions)} plies, animated. Moves: {moves}. At the end: {label}")
    picture.set("class", f"{picture.attrib['class']} {name}")
    elements = []
    for track in _tracks(frames):
        element, keyframes = track.final_element(), _keyframes(track, plies)
        if keyframes:
            element.set("style", f"animation-name:{names.setdefault(keyframes, f'{name}-{len(names)}')}")
        elements.append((track, element))
    _replace_shapes(picture, elements)
    css = f".{name} *{{animation:{plies * seconds_per_ply:g}s ease-in-out infinite}}"
    css += "".join(f"@keyframes {short}{{{keyframes}}}" for keyframes, short in names.items())
    css += f"@media(prefers-reduced-motion:reduce){{.{name} *{{animation:none!important}}}}"
    ElementTree.SubElement(picture, "style").text = css
    return ElementTree.tostring(picture, encoding="unicode")


def slideshow(game: AnyGame, states: Sequence[State], actions: Sequence[int], *, title: str) -> str:
    """A game as a board with a slider, buttons, keys and the list of moves.

    The result is a piece of HTML that needs no server and loads nothing. It opens at the last position, and without
    scripts it shows that position alone.

    Args:
      game: the game.
      states: T + 1 positions, beginning with the start.
      actions: T actions; action t leads from position t to position t + 1.
      title: heading; plain text.

    Raises:
      InputError: the numbers of states and actions do not match.
    """
    frames = _frames(game, states, actions)
    labels = [frame.attrib["aria-label"] for frame in frames]
    elements = []
    for track in _tracks(frames):
        element = track.final_element()
        if changes := _changes(track):
            element.set("data-changes", changes)
        elements.append((track, element))
    board = frames[-1]
    _replace_shapes(board, elements)
    items = (
        f'<li><button type="button" disabled data-label="{html.escape(label)}">{html.escape(move)}</button></li>'
        for move, label in zip(["start", *_move_texts(game, states, actions)], labels, strict=True)
    )
    page = importlib.resources.files("azjax.render").joinpath("slides.html").read_text(encoding="utf-8")
    for name, content in (
        ("TITLE", html.escape(title)),
        ("PLIES", str(len(actions))),
        ("MOVES", "".join(items)),
        ("BOARD", ElementTree.tostring(board, encoding="unicode")),
    ):
        page = page.replace(f"<!--{name}-->", content).replace(f'"{name}"', f'"{content}"')
    return page


@dataclasses.dataclass(eq=False)
class _Track:
    """One shape through the game.

    Attributes:
      layer: layer of the sheet.
      shape: the shape as SVG, without its offset.
      offsets: its offset in each frame: "x y"; "" if it has none; None while the shape is absent.
    """

    layer: str
    shape: str
    offsets: list[str | None]

    def final_element(self) -> ElementTree.Element:
        """The shape as it is in the last frame."""
        element = ElementTree.fromstring(self.shape)
        if self.filled_offsets()[-1]:
            element.set("transform", f"translate({self.filled_offsets()[-1]})")
        if self.offsets[-1] is None:
            element.set("opacity", "0")
        return element

    def filled_offsets(self) -> list[str]:
        """`offsets`, where an absent shape keeps its last offset or already has its first one."""
        filled: list[str] = []
        last = next(offset for offset in self.offsets if offset is not None)
        for offset in self.offsets:
            last = last if offset is None else offset
            filled.append(last)
        return filled


def _frames(game: AnyGame, states: Sequence[State], actions: Sequence[int]) -> list[ElementTree.Element]:
    """The pictures of the positions, each with the action that led to it marked."""
    if len(states) != len(actions) + 1:
        raise InputError(f"a game of {len(actions)} actions has {len(actions) + 1} states, got {len(states)}")
    frames = []
    for state, action in zip(states, [None, *actions], strict=True):
        frame = svg_element(game, state, action)
        frames.append(frame if "data-down" in frame.attrib else _as_sheet(game, frame))
    return frames


def _as_sheet(game: AnyGame, picture: ElementTree.Element) -> ElementTree.Element:
    """A sheet with one shape: a picture that was not drawn on a `Sheet`, such as one of another library."""
    _, _, width, height = picture.attrib["viewBox"].split()
    picture.attrib.update(width=width, height=height)
    size = {"width": width, "viewBox": f"0 0 {width} {height}"}
    label = picture.get("aria-label", game.name)
    sheet = ElementTree.Element("svg", size, role="img", **{"class": "azjax", "aria-label": label})
    ElementTree.SubElement(sheet, "g", {"class": "pieces"}).append(picture)
    return sheet


def _move_texts(game: AnyGame, states: Sequence[State], actions: Sequence[int]) -> list[str]:
    return [action_to_text(game, state, int(action)) for state, action in zip(states, actions, strict=False)]


def _tracks(frames: Sequence[ElementTree.Element]) -> list[_Track]:
    """The shapes of all frames, the lowest layer first.

    A shape that disappears while an equal one appears is a piece that moves.
    """
    tracks: list[_Track] = []
    for number, frame in enumerate(frames):
        for layer in LAYERS:
            shapes = _shapes(frame, layer)
            absent = []
            for track in (track for track in tracks if track.layer == layer):
                if (track.shape, track.offsets[-1]) in shapes:
                    del shapes[track.shape, track.offsets[-1]]
                    track.offsets.append(track.offsets[-1])
                else:
                    absent.append(track)
            for (shape, offset), origin in shapes.items():
                alike = [track for track in absent if track.shape == shape]
                leaving = [track for track in alike if track.offsets[-1] and offset]
                returning = [track for track in alike if track.offsets[-1] is None and offset in track.offsets]
                if leaving or returning:
                    track = (leaving or returning)[0]
                    absent.remove(track)
                    track.offsets.append(offset)
                else:
                    tracks.append(_Track(layer, shape, [origin] * number + [offset]))
            for track in absent:
                track.offsets.append(None)
    return sorted(tracks, key=lambda track: LAYERS.index(track.layer))


def _shapes(frame: ElementTree.Element, layer: str) -> dict[tuple[str, str | None], str | None]:
    """The (shape, offset) pairs of a layer, in order, and where each appears from; None for a shape that fades in."""
    shapes: dict[tuple[str, str | None], str | None] = {}
    for element in frame.findall(f"g[@class='{layer}']/*"):
        offset = element.attrib.pop("transform", "").removeprefix("translate(").removesuffix(")")
        origin = element.attrib.pop("data-from", None)
        shapes[ElementTree.tostring(element, encoding="unicode"), offset] = origin
    return shapes


def _replace_shapes(sheet: ElementTree.Element, elements: Sequence[tuple[_Track, ElementTree.Element]]) -> None:
    """Puts the elements of tracks into the layers of a frame, instead of the frame's own shapes."""
    for group in sheet.findall("g"):
        sheet.remove(group)
    for layer in LAYERS:
        group = ElementTree.SubElement(sheet, "g", {"class": layer})
        group.extend(element for track, element in elements if track.layer == layer)
    sheet.set("xmlns", _SVG)


def _keyframes(track: _Track, plies: int) -> str:
    """The CSS keyframes of a track in an animation of `plies` plies; empty if the shape never changes."""
    filled = track.filled_offsets()
    fades, slides = None in track.offsets, len(set(filled)) > 1
    looks = []
    for offset, filled_offset in zip(track.offsets, filled, strict=True):
        opacity = [f"opacity:{int(offset is not None)}"] if fades else []
        x, _, y = filled_offset.partition(" ")
        looks.append(";".join([*opacity, f"transform:translate({x}px,{y}px)"] if slides else opacity))
    stops = [(0.0, looks[0])]
    for frame in range(1, len(looks)):
        if looks[frame] != looks[frame - 1]:
            stops += [(frame, looks[frame - 1]), (frame + (_SLIDE if slides else _FADE), looks[frame])]
    if len(stops) == 1:
        return ""
    return "".join(f"{100 * ply / plies:.2f}%{{{look}}}" for ply, look in [*stops, (plies, looks[-1])])


def _changes(track: _Track) -> str:
    """The frames at which a shape moves, appears or disappears, such as "0 50 150;7 250 150;9 -".

    A shape without offset is at "0 0". The result is empty if the shape never changes.
    """
    looks = [
        f"{filled or '0 0'}{'' if offset is not None else ' -'}"
        for filled, offset in zip(track.filled_offsets(), track.offsets, strict=True)
    ]
    changes = [(0, looks[0])]
    changes += ((at, look) for at, (before, look) in enumerate(itertools.pairwise(looks), 1) if before != look)
    return ";".join(f"{at} {look}" for at, look in changes) if len(changes) > 1 else ""
