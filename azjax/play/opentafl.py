"""An agent as an engine of the OpenTafl Engine Protocol, for tafl.

Source: https://manywords.press/other-stuff/opentafl/opentafl-engine-protocol.txt, and OpenTafl's notation specification
for records of rules and positions. Commands are not acknowledged. One that fails is answered `error 0 REASON`, or
`error -1 REASON` if the game cannot continue.
"""

import contextlib
import re
from collections.abc import Callable

from azjax.core.errors import InputError
from azjax.evaluation.engine_protocols import SIDES, position_record, rules_record
from azjax.evaluation.host_games import text_game
from azjax.play.clock import Clock
from azjax.play.lines import MAX_LINE, whole_number
from azjax.play.ongoing_game import OngoingGame

# The values of entries that a record leaves out.
_DEFAULTS = {
    **{"esc": "c", "surf": "y", "atkf": "y", "tfr": "d", "ka": "y", "ks": "s", "kj": "n", "spd": "-1"},
    **{"cor": "default", "cen": "default", "afor": "", "dfor": ""},
    **{"corh": "tTK", "cenh": "t", "cenhe": "tTK", "corp": "K", "cenp": "tTK", "cors": "K", "cens": "K"},
    **{"corre": "tTK", "cenre": "tTK", "sw": "n", "swf": "y", "efe": "n", "linc": "n", "ber": "n"},
}
_PIECES = ("corh", "cenh", "cenhe", "corp", "cenp", "cors", "cens", "corre", "cenre")
# The name, and entries of pieces and squares that our games do not have.
_IGNORED = re.compile(r"name|[ncmg]j|[ad]for(h|p|s|re)")
_MIN_SECONDS = 0.01


class _CriticalError(Exception):
    """The game cannot continue."""


class OpenTaflEngine:
    """Answers commands, one at a time.

    Args:
      ongoing: the game and its player.

    Raises:
      InputError: the game is none of tafl, or has other rules.
    """

    greeting = "hello\n"

    def __init__(self, ongoing: OngoingGame) -> None:
        self._rules = rules_record(ongoing.game)
        self._ongoing, self._game = ongoing, text_game(ongoing.game)
        self.has_ended = False
        self._is_set_up = False  # by a record, which does not say whose turn it is
        self._proposed = ""  # our last move, until the host confirms it
        self._refused = ""  # our last move that the host refused
        self._commands: dict[str, Callable[[list[str]], str]] = {
            "hello": lambda _: "",
            "start": lambda _: "",  # of older versions
            "rules": self._begin,
            "position": self._set_position,
            "side": self._set_side,
            "clock": self._set_clocks,
            "play": self._play,
            "move": self._confirm,
            "error": self._take_back,
            "opponent-move": self._play_opponent,
            "analyze": self._analyze,
            "finish": self._finish,
            "goodbye": self._quit,
        }

    def answer(self, line: str) -> str:
        """The response to a line: one line, or nothing."""
        words = line.split()
        if not words:
            return ""
        command, *arguments = words
        try:
            if len(line) > MAX_LINE:
                raise InputError(f"a line has at most {MAX_LINE} characters")
            if command not in self._commands:
                raise InputError(f"unknown command {command[:40]!r}")
            text = self._commands[command](arguments)
        except _CriticalError as error:
            text = f"error -1 {error}"
        except InputError as error:
            text = f"error 0 {error}"
        # The protocol is ASCII, and an answer is one line.
        text = " ".join(text.encode("ascii", "replace").decode().split())
        return f"{text}\n" if text else ""

    @property
    def _record(self) -> str:
        return position_record(self._game.to_text(self._ongoing.state))

    def _begin(self, words: list[str]) -> str:
        if _entries(words) != _entries(self._rules.split()):
            raise _CriticalError(f"this engine plays by the rules {self._rules}")
        self._begin_game()
        return ""

    def _begin_game(self) -> None:
        self._ongoing.begin()
        self._ongoing.clocks = [None, None]
        self._is_set_up, self._proposed, self._refused = False, "", ""

    def _set_position(self, words: list[str]) -> str:
        (record,) = _arguments(words, "position RECORD")
        self._set_up(record, 0)
        return ""

    def _set_up(self, record: str, mover: int) -> None:
        """Starts at a position with `mover` to move, or the other side if the position is impossible with `mover`."""
        if not re.fullmatch("/.*/", record):
            raise InputError(f"a position begins and ends with a slash, got {record!r}")
        rows = "/".join(reversed(record[1:-1].split("/")))
        try:
            start = self._game.from_text(f"{rows} {'ad'[mover]}")
        except InputError:
            start = self._game.from_text(f"{rows} {'da'[mover]}")
        self._ongoing.begin(start)
        self._is_set_up, self._proposed, self._refused = True, "", ""

    def _set_side(self, words: list[str]) -> str:
        side = _side(words, "side attackers|defenders")
        # After a position it is the side to move. Otherwise it is our side, which `play` names too.
        if self._is_mover_open:
            self._set_up(self._record, side)
        return ""

    @property
    def _is_mover_open(self) -> bool:
        return self._is_set_up and len(self._ongoing.states) == 1

    def _set_clocks(self, words: list[str]) -> str:
        form = "clock ATTACKER_MILLIS[*] DEFENDER_MILLIS[*] OVERTIME_SECONDS ATTACKER_OVERTIMES DEFENDER_OVERTIMES"
        *left, seconds, attackers, defenders = _arguments(words, form)
        period, *overtimes = (whole_number(word) for word in (seconds, attackers, defenders))
        self._ongoing.clocks = [
            Clock(
                whole_number(millis.removesuffix("*")) / 1000,
                moves=int(millis.endswith("*")),
                period=float(period) if count else 0.0,
            )
            for millis, count in zip(left, overtimes, strict=True)
        ]
        self._ongoing.compile_for_clocks()
        return ""

    def _play(self, words: list[str]) -> str:
        side = _side(words, "play attackers|defenders")
        self._continue_after_end()
        if self._is_mover_open and self._ongoing.mover != side:
            self._set_up(self._record, side)
        if self._ongoing.is_over:
            raise _CriticalError("the game is over")
        if self._ongoing.mover != side:
            raise _CriticalError(f"it is the turn of the {SIDES[self._ongoing.mover]}")
        move = self._ongoing.choose()
        if move == self._refused:
            # Otherwise both sides would repeat themselves for ever.
            self._ongoing.undo()
            raise _CriticalError(f"{move} is refused, and legal here")
        self._proposed = move
        return f"move {move}"

    def _continue_after_end(self) -> None:
        """Sets up a finished position again: the host decides when a game is over, and may not count our draws."""
        if self._ongoing.is_over:
            self._set_up(self._record, self._ongoing.mover)

    def _confirm(self, words: list[str]) -> str:
        (record,) = _arguments(words, "move RECORD")
        self._proposed = self._refused = ""
        self._compare(record, "our move")
        return ""

    def _take_back(self, words: list[str]) -> str:
        _arguments(words, "error CODE")
        # The host sends the move before it once more, which changes nothing.
        if self._proposed:
            self._ongoing.undo()
            self._proposed, self._refused = "", self._proposed
        return ""

    def _play_opponent(self, words: list[str]) -> str:
        moves, record = _arguments(words, "opponent-move MOVES RECORD")
        self._proposed = ""
        # After an error of ours the host repeats a move, which is then illegal: the board shows it already.
        with contextlib.suppress(InputError):
            for move in moves.split("|"):
                self._play_for_either_side(move)
        self._compare(record, moves)
        return ""

    def _play_for_either_side(self, move: str) -> None:
        self._continue_after_end()
        try:
            self._ongoing.play(move)
        except InputError:
            if not self._is_mover_open:
                raise
            self._set_up(self._record, 1 - self._ongoing.mover)
            self._ongoing.play(move)

    def _compare(self, record: str, moves: str) -> None:
        """Continues at the host's board if it differs from ours, and reports that."""
        ours = self._record
        if record != ours:
            self._set_up(record, self._ongoing.mover)
            raise InputError(f"after {moves} the board is {ours} here; goes on at {record}")

    def _analyze(self, words: list[str]) -> str:
        number, seconds = map(whole_number, _arguments(words, "analyze NUMBER SECONDS"))
        self._continue_after_end()
        if self._ongoing.is_over:
            raise InputError("the game is over")
        moves = self._ongoing.analyze(max(float(seconds), _MIN_SECONDS))[: max(number, 1)]
        # As in OpenTafl's own engine, a value above 0 is good for the attackers.
        sign = (1, -1)[self._ongoing.mover]
        return f"analysis {len(moves)} " + " ".join(f"{move} {sign * value + 0.0:.3f}" for move, value in moves)

    def _finish(self, words: list[str]) -> str:
        _arguments(words, "finish CODE")
        self._begin_game()
        return ""

    def _quit(self, _: list[str]) -> str:
        self.has_ended = True
        return ""


def _entries(words: list[str]) -> dict[str, str]:
    """The entries of a rules record that matter here, defaults included."""
    entries = dict(_DEFAULTS)
    for word in words:
        key, _, value = word.partition(":")
        if key == "starti":
            key, value = "start", "/".join(reversed(value.split("/")))
        if key in _PIECES:
            value = "".join(piece for piece in "tTK" if piece in value)
        if not _IGNORED.fullmatch(key):
            entries[key] = value
    return entries


def _arguments(words: list[str], form: str) -> list[str]:
    if len(words) != len(form.split()) - 1:
        raise InputError(f"syntax error: {form}")
    return words


def _side(words: list[str], form: str) -> int:
    (side,) = _arguments(words, form)
    if side not in SIDES:
        raise InputError(f"syntax error: {form}")
    return SIDES.index(side)
