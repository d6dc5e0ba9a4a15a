"""The clock of one side: main time, then byo-yomi (a period of seconds for a number of moves, over and over)."""

import dataclasses

_MOVES_TO_GO = 20  # that share the main time: later moves get less of it, but never none
_USED_SHARE = 0.9  # of a move's time; the rest covers the transfer of messages
_MIN_SECONDS = 0.01


@dataclasses.dataclass(frozen=True)
class Clock:
    """The time left.

    Attributes:
      seconds: left of main time, or of the current byo-yomi period.
      moves: moves still to be made in this period; 0 in main time.
      period: seconds of a byo-yomi period; 0 for no byo-yomi.
      period_moves: moves of a period.
    """

    seconds: float
    moves: int = 0
    period: float = 0.0
    period_moves: int = 1

    def budget(self) -> float:
        """Seconds for the next move, above 0."""
        if self.moves:
            share = self.seconds / self.moves
        else:
            # A move that outlasts the main time may use its share of the first period too.
            share = max(self.seconds / _MOVES_TO_GO, self.period / self.period_moves)
        return max(_USED_SHARE * share, _MIN_SECONDS)

    def after(self, seconds: float) -> "Clock":
        """The clock after a move that took this many seconds."""
        left, moves = self.seconds - seconds, self.moves
        if not moves and left <= 0 and self.period:
            left, moves = left + self.period, self.period_moves
        if moves == 1:
            left, moves = self.period, self.period_moves
        elif moves:
            moves -= 1
        return dataclasses.replace(self, seconds=max(left, 0.0), moves=moves)
