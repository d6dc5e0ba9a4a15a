"""Board games as pure array functions. One file a family; `game.py` is the contract."""

from azjax.games.check import CheckedGame, check_game
from azjax.games.endings import EndingsGame
from azjax.games.game import Game, State, random_legal_action
from azjax.games.protocols import (
    ActionGroup,
    BoardGame,
    CellGame,
    ConfiguredGame,
    DrawableGame,
    EditableGame,
    LaidOutGame,
    NumberedGame,
    RepetitionGame,
    TextGame,
)
from azjax.games.registry import available, make, options_of, register

__all__ = [
    "ActionGroup",
    "BoardGame",
    "CellGame",
    "CheckedGame",
    "ConfiguredGame",
    "DrawableGame",
    "EditableGame",
    "EndingsGame",
    "Game",
    "LaidOutGame",
    "NumberedGame",
    "RepetitionGame",
    "State",
    "TextGame",
    "available",
    "check_game",
    "make",
    "options_of",
    "random_legal_action",
    "register",
]
