"""An agent as an engine of the Go Text Protocol (Farnebäck 2002, version 2), with verbs that every game has.

Player 0 is black. Moves are in the notation of the game, or plain action numbers.
"""

from collections.abc import Callable

from azjax import __version__
from azjax.games.protocols import legal_texts
from azjax.games.registry import available
from azjax.play.clock import Clock
from azjax.play.lines import LONGEST, whole_number
from azjax.play.ongoing_game import OngoingGame

_COLOURS = {"b": 0, "black": 0, "w": 1, "white": 1}
_MOST_SIMULATIONS = 100_000  # of a move


class _Refused(Exception):
    """What a command cannot do, as it is answered."""


class GtpEngine:
    """Answers commands, one at a time.

    Args:
      ongoing: the game, and who plays it.
    """

    greeting = ""

    def __init__(self, ongoing: OngoingGame) -> None:
        self._ongoing, self._game = ongoing, ongoing.game
        self._clock: Clock | None = None  # that both sides begin with
        self.has_ended = False
        self._verbs: dict[str, Callable[[list[str]], str]] = {
            "protocol_version": lambda _: "2",
            "name": lambda _: f"azjax {ongoing.player.name}",
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
            "time_settings": self._set_time,
            "time_left": self._tell_time,
            "num_simulations": self._set_simulations,
            "legal_actions": lambda _: " ".join([] if ongoing.is_over else legal_texts(self._game, ongoing.state)),
            "is_terminal": lambda _: str(ongoing.is_over).lower(),
            "returns": lambda _: " ".join(f"{reward:g}" for reward in ongoing.returns),
            "final_score": lambda _: self._score(),
            "showboard": lambda _: f"\n{self._game.draw(ongoing.state)}",
            "quit": lambda _: self._quit(),
        }

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
            if len(line) > LONGEST:
                raise _Refused(f"a line has at most {LONGEST} characters")
            if verb not in self._verbs:
                raise _Refused("unknown command")
            sign, said = "=", self._verbs[verb](rest)
        except (_Refused, ValueError, NotImplementedError) as error:
            sign, said = "?", " ".join(str(error).split())
        return f"{sign}{number} {said}".rstrip() + "\n\n"

    def _begin(self) -> str:
        self._ongoing.begin()
        self._ongoing.clocks = [self._clock] * 2
        return ""

    def _play_game(self, words: list[str]) -> str:
        name = " ".join(words)
        if name in ("", self._game.name, str(self._game)):
            return self._game.name
        raise _Refused(f"this engine plays {self._game.name}, not {name[:40]}")

    def _check_size(self, words: list[str]) -> str:
        size = getattr(self._game, "size", getattr(self._game, "columns", None))
        if words != [str(size)]:
            raise _Refused("unacceptable size")
        return ""

    def _mover(self, words: list[str]) -> None:
        """Holds that a colour, if one is named, is to move."""
        if words and words[0].lower() in _COLOURS and _COLOURS[words.pop(0).lower()] != self._ongoing.mover:
            raise _Refused("it is the other side's turn")
        if self._ongoing.is_over:
            raise _Refused("the game is over")

    def _play(self, words: list[str]) -> str:
        if len(words) > 1 and words[0].lower() not in _COLOURS:
            raise _Refused("syntax error: play COLOUR MOVE")
        self._mover(words)
        try:
            self._ongoing.play(" ".join(words))
        except ValueError:
            raise _Refused("illegal move") from None
        return ""

    def _generate(self, words: list[str]) -> str:
        self._mover(words)
        return self._ongoing.choose()

    def _undo(self) -> str:
        self._ongoing.undo()
        return ""

    def _set_time(self, words: list[str]) -> str:
        if len(words) != 3:
            raise _Refused("syntax error: time_settings MAIN_TIME BYO_YOMI_TIME BYO_YOMI_STONES")
        main, period, stones = map(whole_number, words)
        # A period without stones is the sign for no limit, and no time at all cannot be meant.
        is_limited = stones > 0 if period else main > 0
        self._clock = Clock(main, period=period, period_moves=max(stones, 1)) if is_limited else None
        self._ongoing.clocks = [self._clock] * 2
        if is_limited:
            self._ongoing.prepare()
        return ""

    def _tell_time(self, words: list[str]) -> str:
        if len(words) != 3 or words[0].lower() not in _COLOURS:
            raise _Refused("syntax error: time_left COLOUR TIME STONES")
        seconds, stones = map(whole_number, words[1:])
        clock = self._clock or Clock(0)
        self._ongoing.clocks[_COLOURS[words[0].lower()]] = Clock(
            seconds, moves=stones, period=clock.period, period_moves=clock.period_moves
        )
        self._ongoing.prepare()
        return ""

    def _set_simulations(self, words: list[str]) -> str:
        if len(words) != 1:
            raise _Refused("syntax error: num_simulations NUMBER")
        number = whole_number(words[0])
        if not 1 <= number <= _MOST_SIMULATIONS:
            raise _Refused(f"num_simulations must be 1..{_MOST_SIMULATIONS}")
        self._ongoing.set_simulations(number)
        return ""

    def _score(self) -> str:
        if not self._ongoing.is_over:
            raise _Refused("the game is not over")
        first, second = self._ongoing.returns
        return "0" if first == second else f"{'B' if first > second else 'W'}+{abs(first):g}"

    def _quit(self) -> str:
        self.has_ended = True
        return ""
