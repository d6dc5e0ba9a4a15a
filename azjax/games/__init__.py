"""Board games as pure array functions. One file a family; `game.py` is the contract."""

from azjax.games.animation import animate
from azjax.games.check import check_game
from azjax.games.game import Game, ShownState, State, available, make, random_legal_action, register, state_dataclass
from azjax.games.slides import slideshow

__all__ = [
    "Game",
    "ShownState",
    "State",
    "animate",
    "available",
    "check_game",
    "make",
    "random_legal_action",
    "register",
    "slideshow",
    "state_dataclass",
]
