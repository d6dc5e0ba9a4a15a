"""The shapes of a whole game's pictures, each written once, with where it is seen and when."""

import dataclasses
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from typing import Any

from azjax.core.errors import InputError
from azjax.games.game import Game
from azjax.render.drawing import LAYERS
from azjax.render.picture import svg

_NAMESPACE = "http://www.w3.org/2000/svg"


@dataclasses.dataclass(eq=False)
class Track:
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
        if self.known_places()[-1]:
            element.set("transform", f"translate({self.known_places()[-1]})")
        if self.places[-1] is None:
            element.set("opacity", "0")
        return element

    def known_places(self) -> list[str]:
        """Where it is, was last, or comes to be first."""
        known: list[str] = []
        place = next(place for place in self.places if place is not None)
        for seen in self.places:
            place = place if seen is None else seen
            known.append(place)
        return known


def draw_frames(game: Game, states: Sequence[Any], actions: Sequence[int]) -> list[ElementTree.Element]:
    """The pictures of a game, each with the move that led to it.

    Args:
      game: draws them; a shape is followed from one to the next where `svg` draws on a `azjax.render.drawing.Sheet`.
      states: T + 1 positions, the first without a move.
      actions: T; action t leads from position t to the next.

    Raises:
      ValueError: the numbers of states and actions do not fit.
    """
    if len(states) != len(actions) + 1:
        raise InputError(f"a game of {len(actions)} actions has {len(actions) + 1} states, got {len(states)}")
    frames = []
    for state, action in zip(states, [None, *actions], strict=True):
        frame = ElementTree.fromstring(svg(game, state, last_action=action))
        for element in frame.iter():
            element.tag = element.tag.removeprefix(f"{{{_NAMESPACE}}}")
        frames.append(frame if "aria-label" in frame.attrib else _on_a_sheet(game, frame))
    return frames


def _on_a_sheet(game: Game, picture: ElementTree.Element) -> ElementTree.Element:
    """A picture of another library as the one shape of a sheet."""
    width, height = (picture.attrib[side].removesuffix("px") for side in ("width", "height"))
    size = {"width": width, "viewBox": f"0 0 {width} {height}"}
    sheet = ElementTree.Element("svg", size, role="img", **{"class": "azjax", "aria-label": game.name})
    ElementTree.SubElement(sheet, "g", {"class": "pieces"}).append(picture)
    return sheet


def follow(frames: Sequence[ElementTree.Element]) -> list[Track]:
    """The shapes of all frames, the lowest layer first.

    One that goes while another like it comes is a piece that moves.
    """
    tracks: list[Track] = []
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
                    tracks.append(Track(layer, shape, [origin] * number + [place]))
            for track in absent:
                track.places.append(None)
    return sorted(tracks, key=lambda track: LAYERS.index(track.layer))


def fill(sheet: ElementTree.Element, elements: Sequence[tuple[Track, ElementTree.Element]]) -> None:
    """Puts the elements of tracks onto a frame, each into its layer, in place of what the frame shows."""
    for group in sheet.findall("g"):
        sheet.remove(group)
    for layer in LAYERS:
        group = ElementTree.SubElement(sheet, "g", {"class": layer})
        group.extend(element for track, element in elements if track.layer == layer)
    sheet.set("xmlns", _NAMESPACE)


def _shapes(frame: ElementTree.Element, layer: str) -> dict[tuple[str, str | None], str | None]:
    """The shapes of a layer and their places, in order, and where each comes from when it appears (None: fades in)."""
    found: dict[tuple[str, str | None], str | None] = {}
    for element in frame.findall(f"g[@class='{layer}']/*"):
        place = element.attrib.pop("transform", "").removeprefix("translate(").removesuffix(")")
        origin = element.attrib.pop("data-from", None)
        found[ElementTree.tostring(element, encoding="unicode"), place] = origin
    return found
