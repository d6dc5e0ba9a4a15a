"""What games of the tafl family differ in, beside the board and the start."""

import dataclasses
from typing import Literal, get_args

from azjax.core.errors import InputError
from azjax.core.whole_numbers import set_whole

_LONGEST_MOVE = 25

# The values of the options in words.
_CASTLE = {
    "nobody": "Nobody stops on the square in the middle, the castle, from which the king begins.",
    "king": "The king alone may stop on the square in the middle, the castle.",
    "anyone": "Anyone may stop on the square in the middle, the castle, from which the king begins.",
}
_CAPTURE = {
    "active": "A pawn is captured when a piece of the other side moves so that the pawn stands between two enemies.",
    "trapped": "A pawn between two enemies is captured, also when it moved there itself.",
}
_KING = {
    "by_castle": "The king is captured by four attackers on the castle, by three beside it, and by two elsewhere.",
    "by_four": "The king is captured by enemies on all four sides, so never on the edge.",
    "by_two": "The king is captured as a pawn is.",
}
_OCCURRENCES = {2: "second", 3: "third", 4: "fourth"}


@dataclasses.dataclass(frozen=True)
class TaflRules:
    """What tafl players disagree on.

    The first of these decides the result: the king is captured, he escapes, the attackers are gone, encirclement, the
    repetition of a position, a side without moves, the limit of plies.

    Attributes:
      capture: "active": the piece that moved captures the enemies beside it that stand between it and a friend or a
        hostile square, all at once. "trapped": after a move the mover, then the piece above, below, to the left and
        to the right of it, of either side and each on the board as it then is, is removed if both its neighbors on
        a line are bad: an enemy stands there, or the square is hostile, but not both.
      king: "by_castle": he is captured by four on the castle, by the three others beside it, by two elsewhere.
        "by_four": by four everywhere, one of which may be a hostile castle; not on the edge. "by_two": by two
        everywhere, as a pawn.
      king_captures: "armed": the king takes part in captures. "unarmed": he neither captures nor closes a line.
      escape: the king escapes to the "corners", or to any square of the "edge".
      castle: "nobody" stops on the castle, or the "king" may return, or it is for "anyone".
      castle_hostile: "when_empty": the empty castle closes a line as an enemy does. "never": it does not. Empty
        corners do, where the king escapes to them.
      longest_move: squares of a move, at most; 1 to 25.
      encirclement: "attackers_win": when no path of squares without attackers leads from a defender or the king to the
        edge. "ignored": it decides nothing.
      attackers_gone: "defenders_win", or "ignored".
      repetition: "draw": when a position (board and side to move) comes again in a game; or "never".
      repetitions: the occurrence that draws, 2 to 4; of no effect without `repetition`.
      no_moves: a side to move that has none: "draw", or "loss" for it.
      max_plies: the game is a draw after this many plies, 1 to 65535.
    """

    capture: Literal["active", "trapped"] = "active"
    king: Literal["by_castle", "by_four", "by_two"] = "by_castle"
    king_captures: Literal["armed", "unarmed"] = "armed"
    escape: Literal["corners", "edge"] = "corners"
    castle: Literal["nobody", "king", "anyone"] = "nobody"
    castle_hostile: Literal["when_empty", "never"] = "when_empty"
    longest_move: int = _LONGEST_MOVE
    encirclement: Literal["attackers_win", "ignored"] = "ignored"
    attackers_gone: Literal["defenders_win", "ignored"] = "defenders_win"
    repetition: Literal["draw", "never"] = "draw"
    repetitions: int = 2
    no_moves: Literal["draw", "loss"] = "draw"
    max_plies: int = 512

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value, allowed = getattr(self, field.name), get_args(field.type)
            if allowed and value not in allowed:
                raise InputError(f"tafl rules: {field.name} must be one of {', '.join(allowed)}, got {value!r}")
        set_whole(self, "tafl rules", "repetitions", range(2, 5))
        set_whole(self, "tafl rules", "longest_move", range(1, _LONGEST_MOVE + 1))
        set_whole(self, "tafl rules", "max_plies", range(1, 1 << 16))
        if self.repetition == "never":
            object.__setattr__(self, "repetitions", TaflRules.repetitions)  # of no effect: equal rules are equal

    def in_words(self, size: int) -> str:
        """The rules for people, on a board of this many rows."""
        corners, crossed = self.escape == "corners", self.longest_move > 1 and self.castle != "anyone"
        goal = "a corner" if corners else "the edge"
        sentences = [
            f"The attackers begin. They win by capturing the king, the defenders by bringing him to {goal}.",
            f"All pieces but the king are pawns. Pieces move {self._distance(size)}.",
            _CASTLE[self.castle] * (self.castle != "anyone" or self.king == "by_castle" or self._castle_closes),
            "All may cross it." * crossed,
            "The king alone may enter a corner." * corners,
            _CAPTURE[self.capture],
            self._hostile_squares(),
            _KING[self.king],
            "The empty castle may be one of them." * (self.king == "by_four" and self._castle_closes),
            "The king takes no part in captures." * (self.king_captures == "unarmed"),
            "The attackers win, too, when no path is left from the defenders to the edge."
            * (self.encirclement == "attackers_win"),
            "The defenders win, too, when no attackers are left." * (self.attackers_gone == "defenders_win"),
            f"A position that occurs a {_OCCURRENCES[self.repetitions]} time is a draw." * (self.repetition == "draw"),
            f"After {self.max_plies} plies the game is a draw.",
            "A side that cannot move loses."
            if self.no_moves == "loss"
            else "When a side cannot move, the game is a draw.",
        ]
        return " ".join(filter(None, sentences))

    @property
    def _castle_closes(self) -> bool:
        return self.castle_hostile == "when_empty"

    def _distance(self, size: int) -> str:
        if self.longest_move == 1:
            return "to the next square up, down, left or right, if it is free"
        squares = "any number of" if self.longest_move >= size - 1 else f"up to {self.longest_move}"
        return f"{squares} free squares in a straight line"

    def _hostile_squares(self) -> str:
        corner, castle = self.escape == "corners", self._castle_closes
        if corner and castle:
            return "Empty corners and the empty castle count as enemies."
        return "Empty corners count as enemies." * corner + "The empty castle counts as an enemy." * castle
