"""Tafl: attackers around a king who wants to reach a corner. `brandub` is the 7x7 game.

Player 0 attacks and moves first. Defenders win with the king on a corner, attackers by capturing him. `tafl_board.py`
has the moves and the numbers of actions, `tafl_rules.py` all else that the contract of a game wants.

Text: the rows from the top with `/` between, `t` attacker, `T` defender, `K` king, a number for so many empty squares;
a blank; `a` or `d` for the side to move. Moves are `d1-d3`.
"""

import dataclasses
import re
import string
from typing import Any, ClassVar, Literal

import jax.numpy as jnp
import numpy as np

from azjax.core.bitboard import any_of, both
from azjax.core.errors import InputError
from azjax.games.protocols import BoardGame, ConfiguredGame, EditableGame, TextGame, square_name
from azjax.games.registry import register
from azjax.games.tafl_board import SYMBOLS
from azjax.games.tafl_rules import PlainTafl, TaflRules, TaflState

RULES = {
    "brandub": TaflRules(),
    # Those of the Brandub notebook, whose test for repetition never fires.
    "seed000": TaflRules(capture="trapped", attackers_gone="ignored", repetition="never"),
}


@dataclasses.dataclass(frozen=True)
class Tafl(PlainTafl, TextGame[TaflState], BoardGame[TaflState], EditableGame[TaflState], ConfiguredGame):
    """Tafl as people play it; for its attributes see `PlainTafl`."""

    player_names: ClassVar[tuple[str, str]] = ("the attackers", "the defenders")
    piece_names: ClassVar[tuple[str, ...]] = ("nothing", "attacker", "defender", "king")
    piece_letters: ClassVar[tuple[str, str]] = ("t", "TK")

    @property
    def options(self) -> dict[str, Any]:
        name = next((name for name, rules in RULES.items() if rules == self.rules), "brandub")
        fields = {field.name: getattr(self.rules, field.name) for field in dataclasses.fields(self.rules)}
        named = dataclasses.asdict(RULES[name])
        changed = {field: value for field, value in fields.items() if value != named[field]}
        return {"rules": name, "history": self.history, **changed}

    # Text.

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
        result = 1.0 if not any_of(board.king) else -1.0 if any_of(both(board.king, self.grid.corners)) else 0.0
        if self.rules.attackers_gone == "defenders_win" and not any_of(board.attackers):
            result = -1.0
        over = result != 0
        if not over and not self.grid.can_move(board, jnp.bool_(side == "a")):
            over = True
            if self.rules.no_moves == "loss":
                result = -1.0 if side == "a" else 1.0
        return dataclasses.replace(
            state, terminated=jnp.bool_(over), rewards=jnp.array([result, -result], jnp.float32) + 0.0
        )

    def _refuse_impossible(self, cells: np.ndarray, side: str, text: str) -> None:
        middle, edge = self.size // 2, (0, self.size - 1)
        for piece, people, most in zip((1, 2, 3), ("attackers", "defenders", "kings"), self._start_counts, strict=True):
            if (cells == piece).sum() > most:
                raise InputError(
                    f"{self.name}: {text!r} has {(cells == piece).sum()} {people}, at most {most} are possible"
                )
        for row, column in (*((r, c) for r in edge for c in edge), (middle, middle)):
            if cells[row, column] in (1, 2):
                square = "castle" if row == middle else "corner"
                name = square_name(self.size, row, column)
                raise InputError(
                    f"{self.name}: {SYMBOLS[cells[row, column]]} stands on {name} in {text!r}, and the king alone may "
                    f"stand on the {square}"
                )
        king, attackers = (cells == 3).any(), (cells == 1).any()
        escaped = any(cells[row, column] == 3 for row in edge for column in edge)
        # Where the mover can lose its own pieces, what is missing does not tell who moved last.
        active = self.rules.capture == "active"
        for impossible, why in (
            (not king and not attackers, "has neither king nor attackers"),
            (active and not king and side == "a", "has no king, so the attackers moved last, and d is to move"),
            (escaped and side == "d", "has the king on a corner, so the defenders moved last, and a is to move"),
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
        if any_of(both(board.king, self.grid.corners)):
            return "the king escapes"
        if result < 0 and not any_of(board.attackers):
            return "the attackers are gone"
        if not self.grid.can_move(board, state.current_player == 0):
            return f"{self.player_names[int(state.current_player)]} cannot move"
        return "the limit of plies" if state.ply >= self.max_plies else "repetition"

    def draw(self, state: TaflState) -> str:
        rows = np.asarray(self.cells(state)).reshape(self.size, self.size)
        middle = self.size // 2
        empty = np.full(rows.shape, ".")
        empty[middle, middle] = empty[0, 0] = empty[0, -1] = empty[-1, 0] = empty[-1, -1] = "x"
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


@register("brandub")
def brandub(
    rules: Literal["brandub", "seed000"] = "brandub",
    history: int = 3,
    capture: Literal["active", "trapped"] | None = None,
    king: Literal["by_castle", "by_two"] | None = None,
    castle_hostile: Literal["when_empty", "never"] | None = None,
    attackers_gone: Literal["defenders_win", "ignored"] | None = None,
    repetition: Literal["draw", "never"] | None = None,
    repetitions: int | None = None,
    no_moves: Literal["draw", "loss"] | None = None,
    max_plies: int | None = None,
) -> Tafl:
    """Brandub, 7x7. `rules` names a set of rules; the other options change one of them each."""
    if rules not in RULES:
        raise InputError(f"brandub: rules must be one of {', '.join(RULES)}, got {rules!r}")
    changes: dict[str, Any] = {
        "capture": capture,
        "king": king,
        "castle_hostile": castle_hostile,
        "attackers_gone": attackers_gone,
        "repetition": repetition,
        "repetitions": repetitions,
        "no_moves": no_moves,
        "max_plies": max_plies,
    }
    given = {field: value for field, value in changes.items() if value is not None}
    return Tafl(dataclasses.replace(RULES[rules], **given), history)
