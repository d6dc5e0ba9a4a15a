"""The board pictures of the package's games, one file per family. Importing a module registers its picture."""

from azjax.render.boards import breakthrough, chomp, connect_four, hex, mnk, othello, santorini, tafl

__all__ = ["breakthrough", "chomp", "connect_four", "hex", "mnk", "othello", "santorini", "tafl"]
