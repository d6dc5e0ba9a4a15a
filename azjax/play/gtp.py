"""An agent as an engine of the Go Text Protocol (Farnebäck 2002, version 2), with verbs that every game has.

Player 0 is black. Moves are in the notation of the game, or plain action numbers.
"""

from collections.abc import Callable, Iterable
from typing import Any, TextIO

import jax
import numpy as np

from azjax import __version__
from azjax.evaluation import Player, act, observe, start_memory
from azjax.games.game import Game, available
from azjax.games.step import step_one

_COLOURS = {"b": 0, "black": 0, "w": 1, "white": 1}
_LONGEST = 4096  # characters of a line


class _Refused(Exception):
    """What a command cannot do, as it is answered."""


class GtpEngine:
    """Answers commands, one at a time.

    Args:
      game: what is played.
      player: who plays; thinks of both sides when asked.
      seed: of the player's draws.
    """

    def __init__(self, game: Game, player: Player, seed: int = 0) -> None:
        self.game, self.player = game, player
        self._key, self._draws = jax.random.key(seed), 0
        self.has_ended = False
        self._verbs: dict[str, Callable[[list[str]], str]] = {
            "protocol_version": lambda _: "2",
            "name": lambda _: f"azjax {self.player.name}",
            "version": lambda _: __version__,
            "known_command": lambda words: str(" ".join(words) in self._verbs).lower(),
            "list_commands": lambda _: "\n".join(self._verbs),
            "list_games": lambda _: "\n".join(available()),
            "game": self._play_game,
            "boardsize": self._check_size,
            "komi": lambda _: "",
            "clear_board": lambda _: self._begin(),
            "play": self._play,
            "genmove": self._generate,
            "undo": lambda _: self._undo(),
            "legal_actions": lambda _: " ".join([] if self._over else game.legal_texts(self._state)),
            "is_terminal": lambda _: str(self._over).lower(),
            "returns": lambda _: " ".join(f"{reward:g}" for reward in self._returns),
            "final_score": lambda _: self._score(),
            "showboard": lambda _: f"\n{game.draw(self._state)}",
            "quit": lambda _: self._quit(),
        }
        self._begin()

    def answer(self, line: str) -> str:
        """The response to a line, with the empty line that ends it; nothing for a line without a command."""
        # Control characters are left out, tabs are blanks, and after a hash comes a comment.
        kept = "".join(" " if letter == "\t" else letter for letter in line if letter >= " " or letter == "\t")
        words = kept.partition("#")[0].split()
        number = words.pop(0) if words and words[0].isascii() and words[0].isdigit() else ""
        if not words:
            return ""
        verb, *rest = words
        try:
            if len(line) > _LONGEST:
                raise _Refused(f"a line has at most {_LONGEST} characters")
            if verb not in self._verbs:
                raise _Refused("unknown command")
            sign, said = "=", self._verbs[verb](rest)
        except (_Refused, ValueError, NotImplementedError) as error:
            sign, said = "?", " ".join(str(error).split())
        return f"{sign}{number} {said}".rstrip() + "\n\n"

    @property
    def _state(self) -> Any:
        return self._states[-1]

    @property
    def _over(self) -> bool:
        return bool(self._state.terminated)

    @property
    def _returns(self) -> np.ndarray:
        return np.sum([np.asarray(state.rewards, float) for state in self._states], axis=0) + 0.0

    def _begin(self) -> str:
        start = jax.tree.map(np.asarray, self.game.init(self._next_key()))
        self._states = [start]
        self._memories = [start_memory(self.player, _batch(start))]
        return ""

    def _next_key(self) -> jax.Array:
        self._draws += 1
        return jax.random.fold_in(self._key, self._draws)

    def _play_game(self, words: list[str]) -> str:
        name = " ".join(words)
        if name in ("", self.game.name, str(self.game)):
            return self.game.name
        raise _Refused(f"this engine plays {self.game.name}, not {name[:40]}")

    def _check_size(self, words: list[str]) -> str:
        size = getattr(self.game, "size", getattr(self.game, "columns", None))
        if words != [str(size)]:
            raise _Refused("unacceptable size")
        return ""

    def _mover(self, words: list[str]) -> None:
        """Holds that a colour, if one is named, is to move."""
        if words and words[0].lower() in _COLOURS and _COLOURS[words.pop(0).lower()] != self._state.current_player:
            raise _Refused("it is the other side's turn")
        if self._over:
            raise _Refused("the game is over")

    def _play(self, words: list[str]) -> str:
        if len(words) > 1 and words[0].lower() not in _COLOURS:
            raise _Refused("syntax error: play COLOUR MOVE")
        self._mover(words)
        try:
            action = self.game.action_from_text(self._state, " ".join(words))
        except ValueError:
            raise _Refused("illegal move") from None
        self._go(action, self._memories[-1])
        return ""

    def _generate(self, words: list[str]) -> str:
        self._mover(words)
        actions, _, memory = act(self.player, self._next_key(), _batch(self._state), self._memories[-1])
        action, move = int(actions[0]), self.game.action_to_text(self._state, int(actions[0]))
        self._go(action, memory)
        return move

    def _go(self, action: int, memory: Any) -> None:
        self._states.append(step_one(self.game, self._state, action))
        self._memories.append(observe(self.player, memory, np.array([action], np.int32)))

    def _undo(self) -> str:
        if len(self._states) == 1:
            raise _Refused("cannot undo")
        self._states.pop()
        self._memories.pop()
        return ""

    def _score(self) -> str:
        if not self._over:
            raise _Refused("the game is not over")
        first, second = self._returns
        return "0" if first == second else f"{'B' if first > second else 'W'}+{abs(first):g}"

    def _quit(self) -> str:
        self.has_ended = True
        return ""


def serve_gtp(engine: GtpEngine, lines: Iterable[str], output: TextIO) -> None:
    """Answers lines until `quit` or their end."""
    for line in lines:
        answer = engine.answer(line)
        if answer:
            output.write(answer)
            output.flush()
        if engine.has_ended:
            return


def _batch(state: Any) -> Any:
    return jax.tree.map(lambda leaf: np.asarray(leaf)[None], state)
