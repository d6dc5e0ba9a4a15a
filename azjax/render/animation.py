"""A whole game as one animated SVG: a shape that several positions share is written once, with the times it is seen."""

import hashlib
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from typing import Any

from azjax.core.errors import InputError
from azjax.games.game import Game
from azjax.games.protocols import action_to_text
from azjax.render.tracks import Track, draw_frames, fill, follow

_SLIDE, _FADE = 0.4, 0.2  # of a ply
_PLIES_AT_THE_END = 3


def animate(game: Game, states: Sequence[Any], actions: Sequence[int], *, seconds_per_ply: float = 1.0) -> str:
    """The game as one SVG document that runs in a loop, and rests at the end.

    Pieces slide, captured ones fade. Readers who ask for reduced motion, and programs that know no animation, see the
    last position.

    Args:
      game: draws the positions.
      states: T + 1 positions, the first without a move.
      actions: T; action t leads from position t to the next.
      seconds_per_ply: how long a position stays.

    Raises:
      ValueError: the numbers of states and actions do not fit, or the time is not positive.
    """
    if not seconds_per_ply > 0:
        raise InputError(f"seconds_per_ply must be positive, got {seconds_per_ply}")
    frames = draw_frames(game, states, actions)
    pictures = b"".join(map(ElementTree.tostring, frames))
    plies = len(actions) + _PLIES_AT_THE_END
    name = f"azjax-{hashlib.sha256(pictures).hexdigest()[:8]}"
    names: dict[str, str] = {}

    root = frames[-1]
    label = root.attrib["aria-label"]
    moves = [action_to_text(game, state, int(action)) for state, action in zip(states, actions, strict=False)]
    root.set("aria-label", f"A game of {len(actions)} plies, animated. Moves: {', '.join(moves)}. At the end: {label}")
    root.set("class", f"{root.attrib['class']} {name}")
    elements = []
    for track in follow(frames):
        element, keyframes = track.final_element(), _keyframes(track, plies)
        if keyframes:
            element.set("style", f"animation-name:{names.setdefault(keyframes, f'{name}-{len(names)}')}")
        elements.append((track, element))
    fill(root, elements)
    css = f".{name} *{{animation:{plies * seconds_per_ply:g}s ease-in-out infinite}}"
    css += "".join(f"@keyframes {short}{{{keyframes}}}" for keyframes, short in names.items())
    css += f"@media(prefers-reduced-motion:reduce){{.{name} *{{animation:none!important}}}}"
    ElementTree.SubElement(root, "style").text = css
    return ElementTree.tostring(root, encoding="unicode")


def _keyframes(track: Track, plies: int) -> str:
    """CSS of its changes in an animation of so many plies; empty where there are none."""
    known = track.known_places()
    fades, slides = None in track.places, len(set(known)) > 1
    looks = []
    for place, known_place in zip(track.places, known, strict=True):
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
