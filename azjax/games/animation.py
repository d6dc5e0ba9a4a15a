"""A whole game as one animated SVG: a shape that several positions share is written once, with the times it is seen."""

import dataclasses
import hashlib
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from typing import Any

from azjax.games.drawing import LAYERS
from azjax.games.game import Game

_NAMESPACE = "http://www.w3.org/2000/svg"
_SLIDE, _FADE = 0.4, 0.2  # of a ply
_PLIES_AT_THE_END = 3


def animate(game: Game, states: Sequence[Any], actions: Sequence[int], *, seconds_per_ply: float = 1.0) -> str:
    """The game as one SVG document that runs in a loop, and rests at the end.

    Pieces slide, captured ones fade. Readers who ask for reduced motion, and programs that know no animation, see the
    last position.

    Args:
      game: its `svg` draws on a `azjax.games.drawing.Sheet`.
      states: T + 1 positions, the first without a move.
      actions: T; action t leads from position t to the next.
      seconds_per_ply: how long a position stays.

    Raises:
      ValueError: the numbers of states and actions do not fit, or the time is not positive.
    """
    if len(states) != len(actions) + 1:
        raise ValueError(f"a game of {len(actions)} actions has {len(actions) + 1} states, got {len(states)}")
    if not seconds_per_ply > 0:
        raise ValueError(f"seconds_per_ply must be positive, got {seconds_per_ply}")
    pictures = [game.svg(state, last_action=action) for state, action in zip(states, [None, *actions], strict=True)]
    frames = [_parse(picture) for picture in pictures]
    tracks = _follow(frames)
    plies = len(actions) + _PLIES_AT_THE_END
    name = f"azjax-{hashlib.sha256(''.join(pictures).encode()).hexdigest()[:8]}"
    names: dict[str, str] = {}

    root = frames[-1]
    label = root.attrib["aria-label"]
    moves = [game.action_to_text(state, int(action)) for state, action in zip(states, actions, strict=False)]
    root.set("aria-label", f"A game of {len(actions)} plies, animated. Moves: {', '.join(moves)}. At the end: {label}")
    root.set("class", f"{root.attrib['class']} {name}")
    for group in root.findall("g"):
        root.remove(group)
    for layer in LAYERS:
        group = ElementTree.SubElement(root, "g", {"class": layer})
        for track in (track for track in tracks if track.layer == layer):
            element, keyframes = track.final_element(), track.keyframes(plies)
            if keyframes:
                element.set("style", f"animation-name:{names.setdefault(keyframes, f'{name}-{len(names)}')}")
            group.append(element)
    css = f".{name} *{{animation:{plies * seconds_per_ply:g}s ease-in-out infinite}}"
    css += "".join(f"@keyframes {short}{{{keyframes}}}" for keyframes, short in names.items())
    css += f"@media(prefers-reduced-motion:reduce){{.{name} *{{animation:none!important}}}}"
    ElementTree.SubElement(root, "style").text = css
    root.set("xmlns", _NAMESPACE)
    return ElementTree.tostring(root, encoding="unicode")


@dataclasses.dataclass(eq=False)
class _Track:
    """One shape through the game.

    Attributes:
      layer: of the sheet.
      shape: how it is drawn, without its place.
      places: by frame, "x y" where it is, "" for what has no place of its own, None while it is not there.
    """

    layer: str
    shape: str
    places: list[str | None]

    def final_element(self) -> ElementTree.Element:
        """As it is at the end of the game."""
        element = ElementTree.fromstring(self.shape)
        if self._known_places()[-1]:
            element.set("transform", f"translate({self._known_places()[-1]})")
        if self.places[-1] is None:
            element.set("opacity", "0")
        return element

    def keyframes(self, plies: int) -> str:
        """CSS of its changes in an animation of so many plies; empty where there are none."""
        known = self._known_places()
        fades, slides = None in self.places, len(set(known)) > 1
        looks = []
        for place, known_place in zip(self.places, known, strict=True):
            opacity = [f"opacity:{int(place is not None)}"] if fades else []
            x, _, y = known_place.partition(" ")
            looks.append(";".join([*opacity, f"transform:translate({x}px,{y}px)"] if slides else opacity))
        stops = [(0.0, looks[0])]
        for frame in range(1, len(looks)):
            if looks[frame] != looks[frame - 1]:
                stops += [(frame, looks[frame - 1]), (frame + (_SLIDE if slides else _FADE), looks[frame])]
        if len(stops) == 1:
            return ""
        return "".join(f"{100 * ply / plies:.2f}%{{{look}}}" for ply, look in [*stops, (plies, looks[-1])])

    def _known_places(self) -> list[str]:
        """Where it is, was last, or comes to be first."""
        known: list[str] = []
        place = next(place for place in self.places if place is not None)
        for seen in self.places:
            place = place if seen is None else seen
            known.append(place)
        return known


def _parse(picture: str) -> ElementTree.Element:
    root = ElementTree.fromstring(picture)
    for element in root.iter():
        element.tag = element.tag.removeprefix(f"{{{_NAMESPACE}}}")
    return root


def _follow(frames: Sequence[ElementTree.Element]) -> list[_Track]:
    """The shapes of all frames. One that goes while another like it comes is a piece that moves."""
    tracks: list[_Track] = []
    for number, frame in enumerate(frames):
        for layer in LAYERS:
            here = [track for track in tracks if track.layer == layer]
            shapes = _shapes(frame, layer)
            absent = []
            for track in here:
                if (track.shape, track.places[-1]) in shapes:
                    del shapes[track.shape, track.places[-1]]
                    track.places.append(track.places[-1])
                else:
                    absent.append(track)
            for (shape, place), origin in shapes.items():
                alike = [track for track in absent if track.shape == shape]
                leaving = [track for track in alike if track.places[-1] and place]
                returning = [track for track in alike if track.places[-1] is None and place in track.places]
                if leaving or returning:
                    track = (leaving or returning)[0]
                    absent.remove(track)
                    track.places.append(place)
                else:
                    tracks.append(_Track(layer, shape, [origin] * number + [place]))
            for track in absent:
                track.places.append(None)
    return tracks


def _shapes(frame: ElementTree.Element, layer: str) -> dict[tuple[str, str | None], str | None]:
    """The shapes of a layer and their places, in order, and where each comes from when it appears (None: fades in)."""
    found: dict[tuple[str, str | None], str | None] = {}
    for element in frame.findall(f"g[@class='{layer}']/*"):
        place = element.attrib.pop("transform", "").removeprefix("translate(").removesuffix(")")
        origin = element.attrib.pop("data-from", None)
        found[ElementTree.tostring(element, encoding="unicode"), place] = origin
    return found
