"""The clock of one side: main time, and after it byo-yomi, so many seconds for so many moves again and again."""

import dataclasses

_MOVES_TO_GO = 20  # that main time is shared among: late moves get less of it, but never none
_USED = 0.9  # of a share; the rest goes to the way there and back
_LEAST = 0.01  # seconds


@dataclasses.dataclass(frozen=True)
class Clock:
    """Time that is left.

    Attributes:
      seconds: of main time, or of the period of byo-yomi that runs.
      moves: to make in this period; 0 in main time.
      period: seconds of a period of byo-yomi; 0 where there is none.
      period_moves: moves of a period.
    """

    seconds: float
    moves: int = 0
    period: float = 0.0
    period_moves: int = 1

    def budget(self) -> float:
        """Seconds to think of the next move, above 0."""
        if self.moves:
            share = self.seconds / self.moves
        else:
            # A move that outlasts main time has its part of the first period too.
            share = max(self.seconds / _MOVES_TO_GO, self.period / self.period_moves)
        return max(_USED * share, _LEAST)

    def after(self, spent: float) -> "Clock":
        """The clock after a move that took so many seconds."""
        seconds, moves = self.seconds - spent, self.moves
        if not moves and seconds <= 0 and self.period:
            seconds, moves = seconds + self.period, self.period_moves
        if moves == 1:
            seconds, moves = self.period, self.period_moves
        elif moves:
            moves -= 1
        return dataclasses.replace(self, seconds=max(seconds, 0.0), moves=moves)
