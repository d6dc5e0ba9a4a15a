"""The board pictures of the package's games, one file per family. Importing a module registers its picture."""

from azjax.render.boards import chomp, connect_four, hex, mnk, santorini, tafl

__all__ = ["chomp", "connect_four", "hex", "mnk", "santorini", "tafl"]
