"""An agent as an engine of the OpenTafl Engine Protocol, for Brandub.

Source: https://manywords.press/other-stuff/opentafl/opentafl-engine-protocol.txt, and OpenTafl's notation specification
for records of rules and positions. Commands are not acknowledged; what cannot be done is answered `error 0 WHY`, and
`error -1 WHY` where the game cannot go on.
"""

import contextlib
import re
from collections.abc import Callable

from azjax.core.errors import InputError
from azjax.evaluation.protocols import BRANDUB_RULES, SIDES, position_record
from azjax.games.game import Game
from azjax.games.registry import options_of
from azjax.play.clock import Clock
from azjax.play.lines import LONGEST, whole_number
from azjax.play.ongoing_game import OngoingGame

# What the notation takes for granted of entries that a record leaves out.
_DEFAULTS = {
    **{"esc": "c", "surf": "y", "atkf": "y", "tfr": "d", "ka": "y", "ks": "s", "kj": "n", "spd": "-1"},
    **{"cor": "default", "cen": "default", "afor": "", "dfor": ""},
    **{"corh": "tTK", "cenh": "t", "cenhe": "tTK", "corp": "K", "cenp": "tTK", "cors": "K", "cens": "K"},
    **{"corre": "tTK", "cenre": "tTK", "sw": "n", "swf": "y", "efe": "n", "linc": "n", "ber": "n"},
}
_PIECES = ("corh", "cenh", "cenhe", "corp", "cenp", "cors", "cens", "corre", "cenre")
# The name, and entries of pieces and squares that Brandub does not have.
_WITHOUT_MEANING = re.compile(r"name|[ncmg]j|[ad]for(h|p|s|re)")
# On these our rules and OpenTafl's differ anyway: it draws at the third repetition, we at the second.
_FREE_OPTIONS = {"rules", "history", "repetition", "no_moves", "max_plies"}
_LEAST_SECONDS = 0.01


class _Critical(Exception):
    """Why the game cannot go on."""


class OpenTaflEngine:
    """Answers commands, one at a time.

    Args:
      ongoing: the game, and who plays it.

    Raises:
      ValueError: the game is not Brandub, or by other rules.
    """

    greeting = "hello\n"

    def __init__(self, ongoing: OngoingGame) -> None:
        _check_game(ongoing.game)
        self._ongoing, self._game = ongoing, ongoing.game
        self.has_ended = False
        self._is_placed = False  # the position was set up, which does not tell who is to move
        self._proposed = ""  # our last move, which the host may refuse
        self._refused = ""  # the one that it did
        self._verbs: dict[str, Callable[[list[str]], str]] = {
            "hello": lambda _: "",
            "start": lambda _: "",  # of older versions
            "rules": self._begin,
            "position": self._place,
            "side": self._take_side,
            "clock": self._tell_time,
            "play": self._play,
            "move": self._confirm,
            "error": self._take_back,
            "opponent-move": self._hear,
            "analyze": self._analyse,
            "finish": self._finish,
            "goodbye": lambda _: self._leave(),
        }

    def answer(self, line: str) -> str:
        """What is said to a line, a line or nothing."""
        words = line.split()
        if not words:
            return ""
        verb, *rest = words
        try:
            if len(line) > LONGEST:
                raise InputError(f"a line has at most {LONGEST} characters")
            if verb not in self._verbs:
                raise InputError(f"unknown command {verb[:40]!r}")
            said = self._verbs[verb](rest)
        except _Critical as error:
            said = f"error -1 {error}"
        except ValueError as error:
            said = f"error 0 {error}"
        # The protocol is one of ASCII, and an answer is one line.
        said = " ".join(said.encode("ascii", "replace").decode().split())
        return f"{said}\n" if said else ""

    @property
    def _record(self) -> str:
        return position_record(self._game.to_text(self._ongoing.state))

    def _begin(self, words: list[str]) -> str:
        if _meaning(words) != _meaning(BRANDUB_RULES.split()):
            raise _Critical(f"this engine plays by the rules {BRANDUB_RULES}")
        self._start_anew()
        return ""

    def _start_anew(self) -> None:
        self._ongoing.begin()
        self._ongoing.clocks = [None, None]
        self._is_placed, self._proposed, self._refused = False, "", ""

    def _place(self, words: list[str]) -> str:
        (record,) = _arguments(words, "position RECORD")
        self._set_up(record, 0)
        return ""

    def _set_up(self, record: str, mover: int) -> None:
        """Begins at a position with a side to move, or the other one where that cannot be."""
        if not re.fullmatch("/.*/", record):
            raise InputError(f"a position begins and ends with a slash, got {record!r}")
        rows = "/".join(reversed(record[1:-1].split("/")))
        try:
            start = self._game.from_text(f"{rows} {'ad'[mover]}")
        except ValueError:
            start = self._game.from_text(f"{rows} {'da'[mover]}")
        self._ongoing.begin(start)
        self._is_placed, self._proposed, self._refused = True, "", ""

    def _take_side(self, words: list[str]) -> str:
        side = _side(words, "side attackers|defenders")
        # With a position it tells who is to move, otherwise who we are, which `play` tells too.
        if self._can_turn:
            self._set_up(self._record, side)
        return ""

    @property
    def _can_turn(self) -> bool:
        return self._is_placed and len(self._ongoing.states) == 1

    def _tell_time(self, words: list[str]) -> str:
        form = "clock ATTACKER_MILLIS[*] DEFENDER_MILLIS[*] OVERTIME_SECONDS ATTACKER_OVERTIMES DEFENDER_OVERTIMES"
        *left, seconds, attackers, defenders = _arguments(words, form)
        period, *overtimes = (whole_number(word) for word in (seconds, attackers, defenders))
        self._ongoing.clocks = [
            Clock(
                whole_number(millis.removesuffix("*")) / 1000,
                moves=int(millis.endswith("*")),
                period=period if count else 0,
            )
            for millis, count in zip(left, overtimes, strict=True)
        ]
        self._ongoing.prepare()
        return ""

    def _play(self, words: list[str]) -> str:
        side = _side(words, "play attackers|defenders")
        self._go_on()
        if self._can_turn and self._ongoing.mover != side:
            self._set_up(self._record, side)
        if self._ongoing.is_over:
            raise _Critical("the game is over")
        if self._ongoing.mover != side:
            raise _Critical(f"it is the turn of the {SIDES[self._ongoing.mover]}")
        move = self._ongoing.choose()
        if move == self._refused:
            # Without this both would say the same for ever.
            self._ongoing.undo()
            raise _Critical(f"{move} is refused, and legal here")
        self._proposed = move
        return f"move {move}"

    def _go_on(self) -> None:
        """The host tells when a game is over: what is a draw here may go on there."""
        if self._ongoing.is_over:
            self._set_up(self._record, self._ongoing.mover)

    def _confirm(self, words: list[str]) -> str:
        (record,) = _arguments(words, "move RECORD")
        self._proposed = self._refused = ""
        self._compare(record, "our move")
        return ""

    def _take_back(self, words: list[str]) -> str:
        _arguments(words, "error CODE")
        # The move before it is told once more, which changes nothing.
        if self._proposed:
            self._ongoing.undo()
            self._proposed, self._refused = "", self._proposed
        return ""

    def _hear(self, words: list[str]) -> str:
        moves, record = _arguments(words, "opponent-move MOVES RECORD")
        self._proposed = ""
        # A move that is not legal may be told once more, after an error of ours: the board is there already.
        with contextlib.suppress(ValueError):
            for move in moves.split("|"):
                self._play_theirs(move)
        self._compare(record, moves)
        return ""

    def _play_theirs(self, move: str) -> None:
        self._go_on()
        try:
            self._ongoing.play(move)
        except ValueError:
            if not self._can_turn:
                raise
            self._set_up(self._record, 1 - self._ongoing.mover)
            self._ongoing.play(move)

    def _compare(self, record: str, moves: str) -> None:
        """Goes on at the host's board where that is another one, and says so."""
        ours = self._record
        if record != ours:
            self._set_up(record, self._ongoing.mover)
            raise InputError(f"after {moves} the board is {ours} here; goes on at {record}")

    def _analyse(self, words: list[str]) -> str:
        number, seconds = map(whole_number, _arguments(words, "analyze NUMBER SECONDS"))
        self._go_on()
        if self._ongoing.is_over:
            raise InputError("the game is over")
        found = self._ongoing.analyse(max(seconds, _LEAST_SECONDS))[: max(number, 1)]
        # As OpenTafl's own engine tells them: above 0 is good for the attackers.
        sign = (1, -1)[self._ongoing.mover]
        return f"analysis {len(found)} " + " ".join(f"{move} {sign * value + 0.0:.3f}" for move, value in found)

    def _finish(self, words: list[str]) -> str:
        _arguments(words, "finish CODE")
        self._start_anew()
        return ""

    def _leave(self) -> str:
        self.has_ended = True
        return ""


def _check_game(game: Game) -> None:
    if game.name != "brandub" or options_of(game)["rules"] != "brandub" or options_of(game).keys() - _FREE_OPTIONS:
        raise InputError(f"opentafl is for brandub by its default rules, not for {game}")


def _meaning(words: list[str]) -> dict[str, str]:
    """The entries of a rules record, with those that it leaves out, as far as they matter for Brandub."""
    entries = dict(_DEFAULTS)
    for word in words:
        key, _, value = word.partition(":")
        if key == "starti":
            key, value = "start", "/".join(reversed(value.split("/")))
        if key in _PIECES:
            value = "".join(piece for piece in "tTK" if piece in value)
        if not _WITHOUT_MEANING.fullmatch(key):
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
