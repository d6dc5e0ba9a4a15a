"""The page as text: put together from the files in `page`."""

import json
import re
from collections.abc import Mapping, Sequence
from importlib import resources

SCRIPTS = ("game.js", "board.js", "agent.js", "controls.js")


def page_source(first: Mapping[str, object], scripts: Sequence[str] = SCRIPTS) -> str:
    """The page as one file: with its style, its scripts, and the game and its start, so that it is drawn at once.

    Args:
      first: the game as `PlaySession.describe`, and its start as `PlaySession.position`.
      scripts: files that the page runs, in order.
    """
    parts = {
        "style": "\n" + script(("page.css",)),
        "script": "\n" + script(scripts),
        "first": json.dumps(first).replace("<", "\\u003c"),
    }
    return re.sub(r"{{(\w+)}}", lambda place: parts[place[1]], script(("page.html",)))


def script(names: Sequence[str]) -> str:
    """Some files, one after another."""
    folder = resources.files("azjax.play").joinpath("page")
    return "".join(folder.joinpath(name).read_text(encoding="utf-8") for name in names)
