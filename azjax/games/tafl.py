"""Tafl: attackers around a king who wants to escape.

Player 0 attacks and moves first. Defenders win with the king on a corner, or in some games on the edge, attackers by
capturing him. `tafl_board.py` has the moves and the numbers of actions, `tafl_options.py` what the games differ in,
`tafl_rules.py` all else that the contract of a game wants.

- `brandub`, 7x7, the game of the notebooks that azjax began with.
- `ard_ri`, 7x7: pieces step to the next square (Dragonheels Lair, "Rules of the game Ard Ri").
- `tablut`, 9x9: OpenTafl's Tablut without its Linnaean capture.
- `tawlbwrdd`, 11x11 without special squares: OpenTafl's Tawlbwrdd.
- `hnefatafl`, 11x11: the Fetlar rules (Fetlar Hnefatafl Panel 2007) with draws by the third occurrence of a position.

Text: the rows from the top with `/` between, `t` attacker, `T` defender, `K` king, a number for
that many empty squares; a blank; `a` or `d` for the side to move. Moves are `d1-d3`.
"""

import dataclasses
import inspect
import re
import string
import typing
from typing import Any, ClassVar, Literal

import jax.numpy as jnp
import numpy as np

from azjax.core.bitboard import any_of, both
from azjax.core.errors import InputError
from azjax.games.endings import EndingsGame
from azjax.games.protocols import CellGame, ConfiguredGame, TextGame, square_name
from azjax.games.registry import register
from azjax.games.tafl_board import SYMBOLS
from azjax.games.tafl_endings import TaflEndings
from azjax.games.tafl_options import TaflRules
from azjax.games.tafl_rules import BRANDUB_START, MAX_HISTORY, PlainTafl, TaflState

RULES = {
    "brandub": TaflRules(),
    "seed000": TaflRules(capture="trapped", attackers_gone="ignored", repetition="never"),
    "ard_ri": TaflRules(
        king="by_four", escape="edge", castle="king", castle_hostile="never", longest_move=1, no_moves="loss"
    ),
    "tablut": TaflRules(escape="edge", repetitions=3, no_moves="loss"),
    "tawlbwrdd": TaflRules(
        king="by_two", escape="edge", castle="anyone", castle_hostile="never", repetitions=3, no_moves="loss"
    ),
    "hnefatafl": TaflRules(king="by_four", castle="king", encirclement="attackers_win", repetitions=3, no_moves="loss"),
}
STARTS = {
    "brandub": BRANDUB_START,
    "ard_ri": "2ttt2/3t3/t1TTT1t/ttTKTtt/t1TTT1t/3t3/2ttt2",
    "tablut": "3ttt3/4t4/4T4/t3T3t/ttTTKTTtt/t3T3t/4T4/4t4/3ttt3",
    "tawlbwrdd": "4ttt4/4t1t4/5t5/5T5/tt2TTT2tt/t1tTTKTTt1t/tt2TTT2tt/5T5/5t5/4t1t4/4ttt4",
    "hnefatafl": "3ttttt3/5t5/11/t4T4t/t3TTT3t/tt1TTKTT1tt/t3TTT3t/t4T4t/11/5t5/3ttttt3",
}


@dataclasses.dataclass(frozen=True)
class Tafl(
    PlainTafl,
    TextGame[TaflState],
    CellGame[TaflState],
    EndingsGame[TaflState],
    ConfiguredGame,
):
    """Tafl as people play it; for its attributes see `PlainTafl`."""

    player_names: ClassVar[tuple[str, str]] = ("the attackers", "the defenders")
    piece_names: ClassVar[tuple[str, ...]] = ("nothing", "attacker", "defender", "king")
    piece_letters: ClassVar[tuple[str, str]] = ("t", "TK")

    @property
    def options(self) -> dict[str, Any]:
        named: dict[str, Any] = {}
        if self.name == "brandub":
            named["rules"] = "seed000" if self.rules == RULES["seed000"] else "brandub"
        usual = dataclasses.asdict(RULES[named.get("rules", self.name)])
        changed = {field: value for field, value in dataclasses.asdict(self.rules).items() if value != usual[field]}
        return {**named, "history": self.history, **changed}

    # Text.

    def how_to_play(self) -> str:
        return self.rules.in_words(self.size)

    def examples(self) -> tuple[tuple[str, str], ...]:
        middle, size = self.size // 2, self.size

        def text(side: str, *pieces: tuple[int, int, str]) -> str:
            rows = [["."] * size for _ in range(size)]
            for row, column, piece in pieces:
                rows[row][column] = piece
            lines = (re.sub(r"\.+", lambda run: str(len(run[0])), "".join(row)) for row in rows)
            return f"{'/'.join(lines)} {side}"

        names = [square_name(size, row, column) for row, column in ((2, middle + 1), (1, middle + 1), (1, middle))]
        escaped = (0, 0) if self.rules.escape == "corners" else (0, middle)
        defender, attacker = (middle, middle + 1, "T"), (size - 1, middle, "t")
        capture = (1, middle - 1, "t"), (1, middle, "T"), (2, middle + 1, "t"), (middle, middle, "K")
        return (
            (text("a", *capture), "The attackers can capture: {}-{} encloses the defender on {}.".format(*names)),
            (
                text("a", (*escaped, "K"), defender, attacker),
                f"The king has reached {square_name(size, *escaped)}: the defenders win.",
            ),
        )

    def move_notation(self) -> str:
        return "A move is the square that the piece leaves, a hyphen, and the square that it reaches."

    def to_text(self, state: TaflState) -> str:
        cells = np.asarray(self.cells(state)).reshape(self.size, self.size)
        rows = ("".join(SYMBOLS[cell] for cell in row) for row in cells)
        rows = (re.sub(r"\.+", lambda run: str(len(run[0])), row) for row in rows)
        return "/".join(rows) + " " + "ad"[int(state.current_player)]

    def from_text(self, text: str) -> TaflState:
        rows, blank, side = text.partition(" ")
        if not blank or side not in ("a", "d"):
            got = f"{side!r}" if blank else "nothing"
            raise InputError(f"{self.name}: {text!r} must end with a blank and the side to move, a or d; got {got}")
        cells = self.grid.read_rows(rows, self.name)
        self._refuse_impossible(cells, side, text)
        state = self._first(cells, jnp.int32("ad".index(side)))
        board = state.board
        result = 1.0 if not any_of(board.king) else -1.0 if any_of(both(board.king, self.grid.goals)) else 0.0
        if self.rules.attackers_gone == "defenders_win" and not any_of(board.attackers):
            result = -1.0
        if result == 0 and self.rules.encirclement == "attackers_win" and self.encircled(board):
            result = 1.0
        over = result != 0
        if not over and not self.grid.can_move(board, jnp.bool_(side == "a")):
            over = True
            if self.rules.no_moves == "loss":
                result = -1.0 if side == "a" else 1.0
        return dataclasses.replace(
            state, terminated=jnp.bool_(over), rewards=jnp.array([result, -result], jnp.float32) + 0.0
        )

    def _refuse_impossible(self, cells: np.ndarray, side: str, text: str) -> None:
        for piece, people, most in zip((1, 2, 3), ("attackers", "defenders", "kings"), self._start_counts, strict=True):
            if (cells == piece).sum() > most:
                raise InputError(
                    f"{self.name}: {text!r} has {(cells == piece).sum()} {people}, at most {most} are possible"
                )
        for row, column in np.argwhere(self.grid.closed_squares[0] & np.isin(cells, (1, 2))).tolist():
            symbol, where = SYMBOLS[cells[row, column]], square_name(self.size, row, column)
            square = "castle" if row == self.size // 2 else "corner"
            raise InputError(
                f"{self.name}: {symbol} stands on {where} in {text!r}, and the king alone may stand on the {square}"
            )
        king, attackers = (cells == 3).any(), (cells == 1).any()
        goal = "the edge" if self.rules.escape == "edge" else "a corner"
        escaped = (cells[self.grid.goal_squares] == 3).any()
        active = self.rules.capture == "active"
        for impossible, why in (
            (not king and not attackers, "has neither king nor attackers"),
            (active and not king and side == "a", "has no king, so the attackers moved last, and d is to move"),
            (escaped and side == "d", f"has the king on {goal}, so the defenders moved last, and a is to move"),
            (
                active and not attackers and side == "d",
                "has no attackers, so the defenders moved last, and a is to move",
            ),
        ):
            if impossible:
                raise InputError(f"{self.name}: {text!r} {why}")

    @property
    def _start_counts(self) -> tuple[int, int, int]:
        return self.start.count("t"), self.start.count("T"), 1

    def action_squares(self, state: TaflState, action: int) -> tuple[int, ...]:
        del state
        square, way = divmod(int(action), 4 * self.grid.reach)
        direction, distance = divmod(way, self.grid.reach)
        step = (self.size, -self.size, 1, -1)[direction]
        return square, square + step * (distance + 1)

    def action_to_text(self, state: TaflState, action: int) -> str:
        return "-".join(
            square_name(self.size, *divmod(square, self.size)) for square in self.action_squares(state, action)
        )

    def ending(self, state: TaflState) -> str:
        board, result = state.board, float(state.rewards[0])
        if not any_of(board.king):
            return "the king is captured"
        if any_of(both(board.king, self.grid.goals)):
            return "the king escapes"
        if self.rules.encirclement == "attackers_win" and self.encircled(board):
            return "the defenders are encircled"
        if result < 0 and not any_of(board.attackers):
            return "the attackers are gone"
        if not self.grid.can_move(board, state.current_player == 0):
            return f"{self.player_names[int(state.current_player)]} cannot move"
        return "the limit of plies" if state.ply >= self.max_plies else "repetition"

    def endings(self, pieces: int) -> TaflEndings:
        """See `EndingsGame`; the pieces are pawns, of which one at most is a defender."""
        return TaflEndings(self, pieces)

    def draw(self, state: TaflState) -> str:
        rows = np.asarray(self.cells(state)).reshape(self.size, self.size)
        empty = np.where(self.grid.closed_squares[0], "x", ".")
        lines = [
            f"{self.size - number:>2}  "
            + " ".join(SYMBOLS[c] if c else blank for c, blank in zip(row, blanks, strict=True))
            for number, (row, blanks) in enumerate(zip(rows, empty, strict=True))
        ]
        return "\n".join([*lines, "    " + " ".join(string.ascii_lowercase[: self.size])])

    def with_piece(self, state: TaflState, square: int, piece: int) -> TaflState:
        cells = np.array(self.cells(state))
        cells[square] = piece
        return self._first(cells.reshape(self.size, self.size), state.current_player)


_RULES_DOC = (inspect.getdoc(TaflRules) or "").partition("Attributes:")[2]


def _add(name: str, *rule_sets: str) -> None:
    """Registers a game with an option for each field of `TaflRules`; `rules` names a set of them, if there are some."""
    size = STARTS[name].count("/") + 1

    def build(**options: Any) -> Tafl:
        rules, history = options.pop("rules", name), options.pop("history", 3)
        if rules not in (name, *rule_sets):
            raise InputError(f"{name}: rules must be one of {', '.join((name, *rule_sets))}, got {rules!r}")
        changes = {option: value for option, value in options.items() if value is not None}
        changed = dataclasses.replace(RULES[rules], **changes)
        if changed.longest_move >= size - 1:
            # As far as the board goes: equal rules are equal.
            changed = dataclasses.replace(changed, longest_move=TaflRules.longest_move)
        return Tafl(changed, history, STARTS[name], name)

    rules_doc = "  rules: the set of rules; options that are None keep its value.\n" * bool(rule_sets)
    build.__doc__ = (
        f"Tafl on {size}x{size}. Each option changes one of the rules.\n\nArgs:\n{rules_doc}"
        f"  history: boards in an observation, 1..{MAX_HISTORY}.{_RULES_DOC}"
    )
    options: list[tuple[str, Any, Any]] = [("history", int, 3)]
    kinds, usual = typing.get_type_hints(TaflRules), dataclasses.asdict(RULES[name])
    if rule_sets:
        # Without a value, each of the others is that of the set.
        options.insert(0, ("rules", Literal[(name, *rule_sets)], name))
        kinds, usual = {field: kind | None for field, kind in kinds.items()}, dict.fromkeys(usual)
    options += [(field, kinds[field], default) for field, default in usual.items()]
    parameters = [
        inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for option, kind, default in options
    ]
    build.__signature__ = inspect.Signature(parameters, return_annotation=Tafl)  # type: ignore[attr-defined]
    register(name)(build)


_add("brandub", "seed000")
for _name in ("ard_ri", "tablut", "tawlbwrdd", "hnefatafl"):
    _add(_name)
