"""Rules of Brandub in plain Python on lists of cells.

Cells are 0 (empty), 1 (attacker), 2 (defender) or 3 (king), row-major from the top left; squares are pairs
(row, column). Attackers are player 0.
"""

import dataclasses
import functools
import random
from collections.abc import Sequence

SIZE = 7
EMPTY, ATTACKER, DEFENDER, KING = range(4)
SYMBOLS = {ATTACKER: "t", DEFENDER: "T", KING: "K"}
START = "3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3 a"
CASTLE = (3, 3)
CORNERS = ((0, 0), (0, 6), (6, 0), (6, 6))
DOWN, UP, RIGHT, LEFT = DIRECTIONS = ((1, 0), (-1, 0), (0, 1), (0, -1))
RESULTS = {"king_captured": 1.0, "king_escaped": -1.0, "attackers_gone": -1.0}

OWNERS = (None, 0, 1, 1)

Square = tuple[int, int]
Board = tuple[int, ...]


def owner(piece: int) -> int | None:
    """The player, 0 or 1, of a piece; None for an empty square."""
    return OWNERS[piece]


def on_board(square: Square) -> bool:
    return 0 <= square[0] < SIZE and 0 <= square[1] < SIZE


def beside(square: Square, direction: Square, distance: int = 1) -> Square:
    return square[0] + direction[0] * distance, square[1] + direction[1] * distance


def at(board: Sequence[int], square: Square) -> int:
    return board[SIZE * square[0] + square[1]]


def put(board: list[int], square: Square, piece: int) -> None:
    board[SIZE * square[0] + square[1]] = piece


def squares_of(action: int) -> tuple[Square, Square]:
    """The start and the target square of an action; the target may be off the board."""
    start, way = divmod(action, 24)
    return divmod(start, SIZE), beside(divmod(start, SIZE), DIRECTIONS[way // 6], way % 6 + 1)


def move_text(action: int) -> str:
    return "-".join("abcdefg"[column] + str(SIZE - row) for row, column in squares_of(action))


def action_of(move: str) -> int:
    """The action of a move such as `d1-d3`."""
    (row, column), (to_row, to_column) = (
        (SIZE - int(number), "abcdefg".index(letter)) for letter, number in move.split("-")
    )
    down, right = to_row - row, to_column - column
    way = (0 if down > 0 else 1) if down else (2 if right > 0 else 3)
    return (SIZE * row + column) * 24 + way * 6 + abs(down + right) - 1


def _rays() -> list[list[list[tuple[int, int, bool, bool]]]]:
    """By square and direction: (cell, action, castle, corner) of each cell on the way to the edge."""
    rays = []
    for square in range(SIZE * SIZE):
        ways = []
        for way, direction in enumerate(DIRECTIONS):
            targets = [beside(divmod(square, SIZE), direction, distance) for distance in range(1, SIZE)]
            ways.append(
                [
                    (SIZE * to[0] + to[1], square * 24 + way * 6 + index, to == CASTLE, to in CORNERS)
                    for index, to in enumerate(targets)
                    if on_board(to)
                ]
            )
        rays.append(ways)
    return rays


RAYS = _rays()
PIECES = ((ATTACKER,), (DEFENDER, KING))


@functools.lru_cache(maxsize=1000)
def moves(board: Board, player: int) -> tuple[int, ...]:
    """The legal actions of a player, ascending."""
    found, own = [], PIECES[player]
    for square, piece in enumerate(board):
        if piece not in own:
            continue
        for ray in RAYS[square]:
            for cell, action, castle, corner in ray:
                if board[cell]:
                    break
                if not castle and (piece == KING or not corner):
                    found.append(action)
    return tuple(found)


@dataclasses.dataclass(frozen=True)
class Position:
    """A position.

    Attributes:
      board: the cells, row-major.
      player: the player to move, 0 or 1; after the end of the game the player who would move next.
      ply: number of moves since the start or the set-up.
      earlier: earlier boards, the newest first, as (board, player to move).
      since_capture: number of boards of `earlier` since the last capture.
      terminal: the game is over.
      rewards: rewards of the last step, by player.
      reason: the reason for the end of the game; None before the end.
    """

    board: Board
    player: int = 0
    ply: int = 0
    earlier: tuple[tuple[Board, int], ...] = ()
    since_capture: int = 0
    terminal: bool = False
    rewards: tuple[float, float] = (0.0, 0.0)
    reason: str | None = None


@dataclasses.dataclass(frozen=True)
class BrandubRules:
    """The options of `azjax.games`' Brandub, with the same names and values."""

    capture: str = "active"
    king: str = "by_castle"
    castle_hostile: str = "when_empty"
    attackers_gone: str = "defenders_win"
    repetition: str = "draw"
    repetitions: int = 2
    no_moves: str = "draw"
    max_plies: int = 512

    def legal_actions(self, position: Position) -> list[int]:
        """The legal actions, ascending."""
        return [] if position.terminal else list(moves(position.board, position.player))

    def step(self, position: Position, action: int) -> Position:
        if position.terminal or action not in moves(position.board, position.player):
            return dataclasses.replace(position, rewards=(0.0, 0.0))
        origin, to = squares_of(action)
        board = list(position.board)
        put(board, to, at(board, origin))
        put(board, origin, EMPTY)
        if self.capture == "active":
            self._capture_beside(board, to)
        else:
            self._remove_trapped(board, to)
        captured = board.count(EMPTY) > position.board.count(EMPTY)
        return self._judged(
            Position(
                board=tuple(board),
                player=1 - position.player,
                ply=position.ply + 1,
                earlier=((position.board, position.player), *position.earlier),
                since_capture=0 if captured else position.since_capture + 1,
            )
        )

    # Captures.

    def _capture_beside(self, board: list[int], mover: Square) -> None:
        """Removes the captured pieces next to the piece that moved, all at once."""
        taken = [
            beside(mover, direction)
            for direction in DIRECTIONS
            if on_board(beside(mover, direction)) and self._closed_on(board, mover, direction)
        ]
        for square in taken:
            put(board, square, EMPTY)

    def _closed_on(self, board: list[int], mover: Square, direction: Square) -> bool:
        victim, far = beside(mover, direction), beside(mover, direction, 2)
        friend = owner(at(board, mover))
        if owner(at(board, victim)) != 1 - friend:
            return False
        everywhere = self._needs_four(board, victim)
        around = [beside(victim, way) for way in DIRECTIONS] if everywhere else [far]
        return all(
            on_board(square) and (owner(at(board, square)) == friend or self._hostile(board, square, victim))
            for square in around
        )

    def _needs_four(self, board: Sequence[int], victim: Square) -> bool:
        """Whether the victim is a king on or next to the castle, which two attackers cannot capture."""
        strong = [CASTLE, *(beside(CASTLE, way) for way in DIRECTIONS)]
        return self.king == "by_castle" and at(board, victim) == KING and victim in strong

    def _hostile(self, board: Sequence[int], square: Square, victim: Square) -> bool:
        if square == CASTLE and at(board, CASTLE) == EMPTY:
            # Three attackers capture a king next to the castle, whether or not the castle is hostile to others.
            return self.castle_hostile == "when_empty" or self._needs_four(board, victim)
        return square in CORNERS

    def _remove_trapped(self, board: list[int], mover: Square) -> None:
        """Removes trapped pieces one after the other: the mover, then its neighbors above, below, left and right."""
        for square in (mover, *(beside(mover, way) for way in (UP, DOWN, LEFT, RIGHT))):
            if on_board(square) and at(board, square) != EMPTY and self._trapped(board, square):
                put(board, square, EMPTY)

    def _trapped(self, board: list[int], victim: Square) -> bool:
        def bad(way: Square) -> bool:
            square = beside(victim, way)
            if not on_board(square):
                return False
            enemy = owner(at(board, square)) == 1 - owner(at(board, victim))
            return enemy != self._hostile(board, square, victim)  # exactly one of the two

        column, row = bad(UP) and bad(DOWN), bad(LEFT) and bad(RIGHT)
        return (column and row) if self._needs_four(board, victim) else (column or row)

    # Results.

    def _judged(self, position: Position) -> Position:
        reason = self._reason(position)
        if reason is None:
            return position
        result = RESULTS.get(reason, 0.0)
        if reason == "no_moves" and self.no_moves == "loss":
            result = -1.0 if position.player == 0 else 1.0
        return dataclasses.replace(position, terminal=True, rewards=(result, 0.0 - result), reason=reason)

    def _reason(self, position: Position) -> str | None:
        board = position.board
        if KING not in board:
            return "king_captured"
        if any(at(board, corner) == KING for corner in CORNERS):
            return "king_escaped"
        if self.attackers_gone == "defenders_win" and ATTACKER not in board:
            return "attackers_gone"
        earlier = position.earlier[: position.since_capture]
        if self.repetition == "draw" and earlier.count((board, position.player)) >= self.repetitions - 1:
            return "repetition"
        if not moves(board, position.player):
            return "no_moves"
        if position.ply >= self.max_plies:
            return "max_plies"
        return None

    # Conversion of positions.

    def start(self) -> Position:
        return self.position(START)

    def set_up(self, board: Sequence[int], player: int) -> Position:
        """A position with an empty history; the board decides whether the game is over."""
        return self._judged(Position(tuple(board), player))

    def position(self, text: str) -> Position:
        """The position of a well-formed `text`, with an empty history."""
        placement, side = text.split(" ")
        cells = []
        for symbol in placement.replace("/", ""):
            cells += [EMPTY] * int(symbol) if symbol.isdigit() else [" tTK".index(symbol)]
        return self.set_up(cells, "ad".index(side))

    def text(self, position: Position) -> str:
        rows = []
        for start in range(0, SIZE * SIZE, SIZE):
            row = "".join(SYMBOLS.get(cell, "_") for cell in position.board[start : start + SIZE])
            for length in range(SIZE, 0, -1):
                row = row.replace("_" * length, str(length))
            rows.append(row)
        return "/".join(rows) + " " + "ad"[position.player]

    def planes(self, position: Position, history: int = 3) -> list[list[list[float]]]:
        """The observation [row][column][plane] with `history` boards."""
        boards = [position.board, *(board for board, _ in position.earlier)][:history]
        boards += [(EMPTY,) * SIZE**2] * (history - len(boards))
        pieces = ((ATTACKER, None), (DEFENDER, KING))
        shown = pieces[position.player] + pieces[1 - position.player]
        cells = [
            [float(board[cell] == piece) for board in boards for piece in shown] + [float(position.player == 0)]
            for cell in range(SIZE * SIZE)
        ]
        return [cells[start : start + SIZE] for start in range(0, SIZE * SIZE, SIZE)]

    def random_game(
        self, generator: random.Random, position: Position | None = None, plies: int = 512
    ) -> list[tuple[Position, int]]:
        """Pairs (position, action) of a game of at most `plies`, and its last position with action -1."""
        position, played = position or self.start(), []
        while not position.terminal and len(played) < plies:
            action = generator.choice(self.legal_actions(position))
            played.append((position, action))
            position = self.step(position, action)
        return [*played, (position, -1)]

    def random_set_up(self, generator: random.Random) -> Position:
        """An unfinished position with pieces on random squares and the king not on a corner."""
        while True:
            board = [EMPTY] * SIZE**2
            free = [square for square in range(SIZE**2) if divmod(square, SIZE) not in CORNERS]
            generator.shuffle(free)
            board[free.pop()] = KING
            free = [square for square in free if divmod(square, SIZE) != CASTLE]
            for piece, most in ((ATTACKER, 8), (DEFENDER, 4)):
                for _ in range(generator.randint(piece == ATTACKER, most)):
                    board[free.pop()] = piece
            position = self.set_up(board, generator.randrange(2))
            if not position.terminal:
                return position


DEFAULT = BrandubRules()
SEED000 = BrandubRules(capture="trapped", attackers_gone="ignored", repetition="never")
