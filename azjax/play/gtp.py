"""An agent as an engine of the Go Text Protocol (Farnebäck 2002, version 2), with commands that suit every game.

Player 0 is black. Moves are in the notation of the game, or plain action numbers.
"""

from collections.abc import Callable

from azjax.core.errors import InputError
from azjax.core.version import __version__
from azjax.games.protocols import TextGame, legal_texts
from azjax.games.registry import available
from azjax.play.clock import Clock
from azjax.play.lines import MAX_LINE, whole_number
from azjax.play.ongoing_game import OngoingGame

_COLORS = {"b": 0, "black": 0, "w": 1, "white": 1}
_MAX_SIMULATIONS = 100_000  # of a move


class GtpEngine:
    """Answers commands, one at a time. A command that fails raises `InputError`, which is the text of its answer.

    Args:
      ongoing: the game and its player.
    """

    greeting = ""

    def __init__(self, ongoing: OngoingGame) -> None:
        self._ongoing, self._game = ongoing, ongoing.game
        self._clock: Clock | None = None  # of both sides at the start of a game
        self.has_ended = False
        self._commands: dict[str, Callable[[list[str]], str]] = {
            "protocol_version": lambda _: "2",
            "name": lambda _: f"azjax {ongoing.player.name}",
            "version": lambda _: __version__,
            "known_command": lambda words: str(" ".join(words) in self._commands).lower(),
            "list_commands": lambda _: "\n".join(self._commands),
            "list_games": lambda _: "\n".join(available()),
            "game": self._check_name,
            "boardsize": self._check_size,
            "komi": lambda _: "",
            "clear_board": self._begin,
            "play": self._play,
            "genmove": self._generate,
            "undo": self._undo,
            "time_settings": self._set_time,
            "time_left": self._set_time_left,
            "num_simulations": self._set_simulations,
            "legal_actions": lambda _: " ".join([] if ongoing.is_over else legal_texts(self._game, ongoing.state)),
            "is_terminal": lambda _: str(ongoing.is_over).lower(),
            "returns": lambda _: " ".join(f"{reward:g}" for reward in ongoing.returns),
            "final_score": self._score,
            "showboard": self._draw,
            "quit": self._quit,
        }

    def answer(self, line: str) -> str:
        """The response to a line, which ends with an empty line; nothing for a line without a command."""
        # Control characters are dropped, tabs are blanks, and a hash starts a comment.
        kept = "".join(" " if letter == "\t" else letter for letter in line if letter.isprintable() or letter == "\t")
        words = kept.partition("#")[0].split()
        number = words.pop(0) if words and words[0].isascii() and words[0].isdigit() else ""
        if not words:
            return ""
        command, *arguments = words
        try:
            if len(line) > MAX_LINE:
                raise InputError(f"a line has at most {MAX_LINE} characters")
            if command not in self._commands:
                raise InputError("unknown command")
            sign, text = "=", self._commands[command](arguments)
        except InputError as error:
            sign, text = "?", " ".join(str(error).split())
        return f"{sign}{number} {text}".rstrip() + "\n\n"

    def _begin(self, _: list[str]) -> str:
        self._ongoing.begin()
        self._ongoing.clocks = [self._clock] * 2
        return ""

    def _check_name(self, words: list[str]) -> str:
        name = " ".join(words)
        if name in ("", self._game.name, str(self._game)):
            return self._game.name
        raise InputError(f"this engine plays {self._game.name}, not {name[:40]}")

    def _check_size(self, words: list[str]) -> str:
        size = getattr(self._game, "size", getattr(self._game, "columns", None))
        if words != [str(size)]:
            raise InputError("unacceptable size")
        return ""

    def _check_turn(self, words: list[str]) -> None:
        """Removes the color from the words, if there is one, and checks that it is to move."""
        if self._ongoing.is_over:
            raise InputError("the game is over")
        if words and words[0].lower() in _COLORS and _COLORS[words.pop(0).lower()] != self._ongoing.mover:
            raise InputError("it is the other side's turn")

    def _play(self, words: list[str]) -> str:
        if len(words) > 1 and words[0].lower() not in _COLORS:
            raise InputError("syntax error: play COLOR MOVE")
        self._check_turn(words)
        try:
            self._ongoing.play(" ".join(words))
        except InputError:
            raise InputError("illegal move") from None
        return ""

    def _generate(self, words: list[str]) -> str:
        self._check_turn(words)
        if words:
            raise InputError("syntax error: genmove COLOR")
        return self._ongoing.choose()

    def _undo(self, _: list[str]) -> str:
        self._ongoing.undo()
        return ""

    def _set_time(self, words: list[str]) -> str:
        if len(words) != 3:
            raise InputError("syntax error: time_settings MAIN_TIME BYO_YOMI_TIME BYO_YOMI_STONES")
        main, period, stones = map(whole_number, words)
        # The protocol writes "no limit" as a period without stones. No time at all means no limit too.
        is_limited = stones > 0 if period else main > 0
        self._clock = Clock(float(main), period=float(period), period_moves=max(stones, 1)) if is_limited else None
        self._ongoing.clocks = [self._clock] * 2
        if is_limited:
            self._ongoing.compile_for_clocks()
        return ""

    def _set_time_left(self, words: list[str]) -> str:
        if len(words) != 3 or words[0].lower() not in _COLORS:
            raise InputError("syntax error: time_left COLOR TIME STONES")
        seconds, stones = map(whole_number, words[1:])
        clock = self._clock or Clock(0.0)
        self._ongoing.clocks[_COLORS[words[0].lower()]] = Clock(
            float(seconds), moves=stones, period=clock.period, period_moves=clock.period_moves
        )
        self._ongoing.compile_for_clocks()
        return ""

    def _set_simulations(self, words: list[str]) -> str:
        if len(words) != 1:
            raise InputError("syntax error: num_simulations NUMBER")
        number = whole_number(words[0])
        if not 1 <= number <= _MAX_SIMULATIONS:
            raise InputError(f"num_simulations must be 1..{_MAX_SIMULATIONS}")
        self._ongoing.set_simulations(number)
        return ""

    def _score(self, _: list[str]) -> str:
        if not self._ongoing.is_over:
            raise InputError("the game is not over")
        first, second = self._ongoing.returns
        return "0" if first == second else f"{'B' if first > second else 'W'}+{abs(first):g}"

    def _draw(self, _: list[str]) -> str:
        if not isinstance(self._game, TextGame):
            raise InputError(f"{self._game.name} is not drawn in text")
        return f"\n{self._game.draw(self._ongoing.state)}"

    def _quit(self, _: list[str]) -> str:
        self.has_ended = True
        return ""
