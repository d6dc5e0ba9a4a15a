"""Everything that draws: boards, search trees, animations, slides, and what notebooks show."""

from azjax.games.pictures import has_picture
from azjax.render import boards, notebook
from azjax.render.animation import animate, slideshow
from azjax.render.picture import show, svg
from azjax.render.squares import draw_squares
from azjax.render.tree_nodes import principal_variation
from azjax.render.tree_picture import to_svg
from azjax.render.tree_text import to_graphviz, to_text

__all__ = [
    "animate",
    "boards",
    "draw_squares",
    "has_picture",
    "notebook",
    "principal_variation",
    "show",
    "slideshow",
    "svg",
    "to_graphviz",
    "to_svg",
    "to_text",
]
