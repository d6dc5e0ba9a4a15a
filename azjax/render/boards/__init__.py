"""The pictures of the games' boards, a file for each family of `azjax.games`. Importing them registers them."""

from azjax.render.boards import connect_four, mnk, santorini, tafl

__all__ = ["connect_four", "mnk", "santorini", "tafl"]
