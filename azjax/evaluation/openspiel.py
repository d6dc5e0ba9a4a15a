"""OpenSpiel's bots as players, in the games that OpenSpiel has with the same rules and action numbers."""

import dataclasses
import importlib
from collections.abc import Sequence

from jaxtyping import PRNGKeyArray

from azjax.core.errors import InputError
from azjax.evaluation.host_games import rows_of, start_text
from azjax.evaluation.seats import Move, Rows, SeatNumbers, Seats
from azjax.games.game import AnyGame, State
from azjax.games.protocols import legal_actions
from azjax.games.registry import make, options_of

OPENSPIEL = "openspiel"
"""What the spec of a bot begins with, as that of an external program with its protocol."""

ALGORITHMS = ("mcts", "minimax")
_UCT_C = 2.0  # of OpenSpiel's own example
NAMES_IN_OPENSPIEL = {
    "othello": "othello",
    "pgx:hex": "hex(board_size=11,swap=True)",
    "pgx:othello": "othello",
    "tictactoe": "tic_tac_toe",
}
"""OpenSpiel's names of games that have the same rules and action numbers if they are made without options."""

_PARAMETERS = {
    "connect_four": {"columns": "columns", "rows": "rows", "x_in_row": "in_a_row"},
    "hex": {"board_size": "size", "swap": "swap"},
    "mnk": {"m": "columns", "n": "rows", "k": "in_a_row"},
}
"""Games that have the same name in OpenSpiel: its parameters, and the options that they are."""


@dataclasses.dataclass(frozen=True)
class OpenSpielPlayer:
    """A bot of OpenSpiel.

    Attributes:
      name: for display.
      algorithm: `mcts`, with random rollouts and a solver; or `minimax` (alpha-beta), which evaluates positions at its
        depth as draws and plays the first of the best moves.
      strength: simulations per move, or plies of depth.
      seed: of the draws of `mcts`.
    """

    name: str
    algorithm: str
    strength: int
    seed: int = 0

    def __post_init__(self) -> None:
        if self.algorithm not in ALGORITHMS:
            raise InputError(f"unknown bot {self.algorithm!r} of OpenSpiel; available: {', '.join(ALGORITHMS)}")
        if not 1 <= self.strength < 2**31:
            raise InputError(f"{self.name}: the number must be at least 1 and below 2^31, got {self.strength}")


class OpenSpielSeats(Seats):
    """A bot's seats in games side by side; it chooses its moves one after the other."""

    def __init__(self, player: OpenSpielPlayer, game: AnyGame) -> None:
        """Loads the game.

        Raises:
          InputError: OpenSpiel is not installed, or does not have the game.
        """
        super().__init__()
        name = _name(game)
        if name is None:
            choices = ", ".join(sorted([*_PARAMETERS, *NAMES_IN_OPENSPIEL]))
            rules = f"{game.name} by these rules" if game.name in NAMES_IN_OPENSPIEL else game.name
            raise InputError(f"{player.name} cannot play {rules}; available: {choices}")
        try:
            pyspiel = importlib.import_module("pyspiel")
            self._minimax = importlib.import_module("open_spiel.python.algorithms.minimax")
        except ModuleNotFoundError:
            raise InputError(f"{player.name} needs OpenSpiel: pip install 'azjax[interop]'") from None
        self._player, self._game, self._rules = player, game, pyspiel.load_game(name)
        self._bot = pyspiel.MCTSBot(
            game=self._rules,
            evaluator=pyspiel.RandomRolloutEvaluator(n_rollouts=1, seed=player.seed),
            uct_c=_UCT_C,
            max_simulations=player.strength,
            max_memory_mb=0,
            solve=True,
            seed=player.seed,
            verbose=False,
        )

    def begin(self, seats: SeatNumbers, starts: State, states: State) -> None:
        """Begins new games.

        Raises:
          InputError: a start that is not the game's own.
        """
        for row in range(len(seats)):
            text = start_text(self._game, rows_of(starts, row))
            if text is not None:
                raise InputError(f"{self._player.name} cannot begin at the position {text!r}")

    def choose(self, key: PRNGKeyArray, states: State, rows: Rows, played: Sequence[Sequence[int]]) -> Sequence[Move]:
        """The bot's moves."""
        return [self._move(rows_of(states, row), played[row]) for row in rows]

    def _move(self, here: State, played: Sequence[int]) -> int:
        legal = legal_actions(self._game, here)
        if len(legal) == 1:
            # Where no player can move, Othello is over in OpenSpiel; in pgx two passes follow.
            return legal[0]
        state = self._rules.new_initial_state()
        for action in played:
            state.apply_action(action)
        if self._player.algorithm == "mcts":
            return int(self._bot.step(state))
        _, action = self._minimax.alpha_beta_search(
            self._rules, state, value_function=lambda _: 0.0, maximum_depth=self._player.strength
        )
        return int(action)


def _name(game: AnyGame) -> str | None:
    """OpenSpiel's name of the game; None if OpenSpiel does not have it."""
    if game.name in _PARAMETERS:
        options = options_of(game)
        parameters = (f"{theirs}={options[ours]}" for theirs, ours in _PARAMETERS[game.name].items())
        return f"{game.name}({','.join(parameters)})"
    name = NAMES_IN_OPENSPIEL.get(game.name)
    return name if name is not None and game == make(game.name) else None
