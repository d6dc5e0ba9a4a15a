"""A game to click through: a piece of HTML that needs no program behind it and loads nothing."""

import html
import importlib.resources
import itertools
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from typing import Any

from azjax.games.game import Game
from azjax.games.protocols import action_to_text
from azjax.render.tracks import Track, draw_frames, fill, follow


def slideshow(game: Game, states: Sequence[Any], actions: Sequence[int], *, title: str) -> str:
    """The game as a board with a slider, buttons, keys and its moves.

    It begins at the end, and where scripts may not run it stays there.

    Args:
      game: draws the positions.
      states: T + 1 positions, the first without a move.
      actions: T; action t leads from position t to the next.
      title: stands above it; plain text.

    Raises:
      ValueError: the numbers of states and actions do not fit.
    """
    frames = draw_frames(game, states, actions)
    labels = [frame.attrib["aria-label"] for frame in frames]
    elements = []
    for track in follow(frames):
        element = track.final_element()
        if changes := _changes(track):
            element.set("data-changes", changes)
        elements.append((track, element))
    board = frames[-1]
    fill(board, elements)
    moves = [action_to_text(game, state, int(action)) for state, action in zip(states, actions, strict=False)]
    listed = (
        f'<li><button type="button" disabled data-label="{html.escape(label)}">{html.escape(move)}</button></li>'
        for move, label in zip(["start", *moves], labels, strict=True)
    )
    page = importlib.resources.files("azjax.games").joinpath("slides.html").read_text(encoding="utf-8")
    for name, text in (
        ("TITLE", html.escape(title)),
        ("PLIES", str(len(actions))),
        ("MOVES", "".join(listed)),
        ("BOARD", ElementTree.tostring(board, encoding="unicode")),
    ):
        page = page.replace(f"<!--{name}-->", text).replace(f'"{name}"', f'"{text}"')
    return page


def _changes(track: Track) -> str:
    """The frames at which a shape comes to another place or goes, such as "0 50 150;7 250 150;9 -".

    A shape without a place of its own is at "0 0"; one that never changes has no changes.
    """
    seen = [
        f"{place or '0 0'}{'' if there is not None else ' -'}"
        for place, there in zip(track.known_places(), track.places, strict=True)
    ]
    changes = [(0, seen[0]), *((at, now) for at, (old, now) in enumerate(itertools.pairwise(seen), 1) if old != now)]
    return ";".join(f"{at} {now}" for at, now in changes) if len(changes) > 1 else ""
