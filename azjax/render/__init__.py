"""Everything that draws: boards, search trees, replays and slides."""

from azjax.render import boards, notebook
from azjax.render.animation import animate
from azjax.render.picture import show, svg
from azjax.render.slides import slideshow

__all__ = ["animate", "boards", "notebook", "show", "slideshow", "svg"]
