"""A game that gives nothing beyond the contract: no text and no picture."""

import dataclasses

import azjax.games
from azjax.games.game import Game
from azjax.games.placement import StonesState

_TICTACTOE = azjax.games.make("tictactoe")


@dataclasses.dataclass(frozen=True)
class RulesAlone(Game[StonesState]):
    """The rules of tic-tac-toe."""

    name: str = "bare"
    num_actions: int = _TICTACTOE.num_actions
    max_legal_actions: int = _TICTACTOE.max_legal_actions
    max_plies: int = _TICTACTOE.max_plies
    observation_shape: tuple[int, ...] = _TICTACTOE.observation_shape

    def init(self, key):
        return dataclasses.replace(_TICTACTOE.init(key), game=self)

    def step(self, state, action):
        following = _TICTACTOE.step(dataclasses.replace(state, game=_TICTACTOE), action)
        return dataclasses.replace(following, game=self)

    def legal_action_mask(self, state):
        return _TICTACTOE.legal_action_mask(state)

    def observe(self, state):
        return _TICTACTOE.observe(state)
