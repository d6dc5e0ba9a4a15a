"""The board pictures of the package's games, one file per family. Importing a module registers its picture."""

from azjax.render.boards import chomp, connect_four, hex, mnk, othello, santorini, tafl

__all__ = ["chomp", "connect_four", "hex", "mnk", "othello", "santorini", "tafl"]
