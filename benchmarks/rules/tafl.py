"""Rules of Brandub, and of larger games of its family, in plain Python on lists of cells.

Cells are 0 (empty), 1 (attacker), 2 (defender) or 3 (king), row-major from the top left; squares are pairs
(row, column). Attackers are player 0.
"""

import dataclasses
import functools
import random
import re
from collections.abc import Sequence

SIZE = 7
EMPTY, ATTACKER, DEFENDER, KING = range(4)
SYMBOLS = {ATTACKER: "t", DEFENDER: "T", KING: "K"}
START = "3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3 a"
DOWN, UP, RIGHT, LEFT = DIRECTIONS = ((1, 0), (-1, 0), (0, 1), (0, -1))
RESULTS = {"king_captured": 1.0, "encircled": 1.0, "king_escaped": -1.0, "attackers_gone": -1.0}

OWNERS = (None, 0, 1, 1)

Square = tuple[int, int]
Board = tuple[int, ...]


def owner(piece: int) -> int | None:
    """The player, 0 or 1, of a piece; None for an empty square."""
    return OWNERS[piece]


def beside(square: Square, direction: Square, distance: int = 1) -> Square:
    return square[0] + direction[0] * distance, square[1] + direction[1] * distance


def squares_of(action: int, size: int = SIZE) -> tuple[Square, Square]:
    """The start and the target square of an action; the target may be off the board."""
    start, way = divmod(action, 4 * (size - 1))
    direction, distance = divmod(way, size - 1)
    return divmod(start, size), beside(divmod(start, size), DIRECTIONS[direction], distance + 1)


def move_text(action: int, size: int = SIZE) -> str:
    return "-".join("abcdefghijk"[column] + str(size - row) for row, column in squares_of(action, size))


def action_of(move: str, size: int = SIZE) -> int:
    """The action of a move such as `d1-d3`."""
    (row, column), (to_row, to_column) = (
        (size - int(square[1:]), "abcdefghijk".index(square[0])) for square in move.split("-")
    )
    down, right = to_row - row, to_column - column
    way = (0 if down > 0 else 1) if down else (2 if right > 0 else 3)
    return (size * row + column) * 4 * (size - 1) + way * (size - 1) + abs(down + right) - 1


PIECES = ((ATTACKER,), (DEFENDER, KING))


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
    """The options of `azjax.games`' Brandub, with the same names and values, and the `start` of a game."""

    capture: str = "active"
    king: str = "by_castle"
    king_captures: str = "armed"
    escape: str = "corners"
    castle: str = "nobody"
    castle_hostile: str = "when_empty"
    longest_move: int = 25
    encirclement: str = "ignored"
    attackers_gone: str = "defenders_win"
    repetition: str = "draw"
    repetitions: int = 2
    no_moves: str = "draw"
    max_plies: int = 512
    start_text: str = START

    # The board.

    @functools.cached_property
    def size(self) -> int:
        return self.start_text.count("/") + 1

    @functools.cached_property
    def middle(self) -> Square:
        return self.size // 2, self.size // 2

    @functools.cached_property
    def corners(self) -> tuple[Square, ...]:
        """The corners, where the king escapes to them."""
        ends = (0, self.size - 1)
        return tuple((row, column) for row in ends for column in ends) if self.escape == "corners" else ()

    def on_edge(self, square: Square) -> bool:
        return bool({0, self.size - 1} & {*square})

    def on_board(self, square: Square) -> bool:
        return 0 <= square[0] < self.size and 0 <= square[1] < self.size

    def at(self, board: Sequence[int], square: Square) -> int:
        return board[self.size * square[0] + square[1]]

    def put(self, board: list[int], square: Square, piece: int) -> None:
        board[self.size * square[0] + square[1]] = piece

    @functools.cached_property
    def rays(self) -> list[list[list[tuple[int, int, bool, bool]]]]:
        """By square and direction: (cell, action, may a pawn stop, may the king) of each cell on the way."""
        rays, size = [], self.size
        for square in range(size**2):
            ways = []
            for way, direction in enumerate(DIRECTIONS):
                ray = []
                for index in range(min(self.longest_move, size - 1)):
                    to = beside(divmod(square, size), direction, index + 1)
                    if self.on_board(to):
                        king = to != self.middle or self.castle in ("king", "anyone")
                        pawn = to not in self.corners and (to != self.middle or self.castle == "anyone")
                        action = square * 4 * (size - 1) + way * (size - 1) + index
                        ray.append((size * to[0] + to[1], action, pawn, king))
                ways.append(ray)
            rays.append(ways)
        return rays

    def moves(self, board: Board, player: int) -> tuple[int, ...]:
        """The legal actions of a player, ascending."""
        return _moves(self, board, player)

    def legal_actions(self, position: Position) -> list[int]:
        """The legal actions, ascending."""
        return [] if position.terminal else list(self.moves(position.board, position.player))

    def step(self, position: Position, action: int) -> Position:
        if position.terminal or action not in self.moves(position.board, position.player):
            return dataclasses.replace(position, rewards=(0.0, 0.0))
        origin, to = squares_of(action, self.size)
        board = list(position.board)
        self.put(board, to, self.at(board, origin))
        self.put(board, origin, EMPTY)
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
            if self.on_board(beside(mover, direction)) and self._closed_on(board, mover, direction)
        ]
        for square in taken:
            self.put(board, square, EMPTY)

    def _closed_on(self, board: list[int], mover: Square, direction: Square) -> bool:
        victim, far = beside(mover, direction), beside(mover, direction, 2)
        friend = owner(self.at(board, mover))
        if owner(self.at(board, victim)) != 1 - friend or not self._captures(self.at(board, mover)):
            return False
        everywhere = self._needs_four(board, victim)
        around = [beside(victim, way) for way in DIRECTIONS] if everywhere else [far]
        return all(self.on_board(square) and self._closes(board, square, victim, friend) for square in around)

    def _captures(self, piece: int) -> bool:
        return piece != KING or self.king_captures == "armed"

    def _closes(self, board: Sequence[int], square: Square, victim: Square, friend: int) -> bool:
        piece = self.at(board, square)
        return (owner(piece) == friend and self._captures(piece)) or self._hostile(board, square, victim)

    def _needs_four(self, board: Sequence[int], victim: Square) -> bool:
        """Whether the victim is a king on or next to the castle, which two attackers cannot capture."""
        if self.at(board, victim) != KING or self.king == "by_two":
            return False
        strong = [self.middle, *(beside(self.middle, way) for way in DIRECTIONS)]
        return self.king == "by_four" or victim in strong

    def _hostile(self, board: Sequence[int], square: Square, victim: Square) -> bool:
        if square == self.middle and self.at(board, square) == EMPTY:
            if self.castle_hostile == "when_empty":
                return True
            # Three attackers capture a king next to the castle, whether or not the castle is hostile to others.
            return self.king == "by_castle" and self._needs_four(board, victim)
        # As in the notebook, the king on a corner and the corner itself are two evils, which cancel.
        return square in self.corners and (self.capture == "trapped" or self.at(board, square) == EMPTY)

    def _remove_trapped(self, board: list[int], mover: Square) -> None:
        """Removes trapped pieces one after the other: the mover, then its neighbors above, below, left and right."""
        for square in (mover, *(beside(mover, way) for way in (UP, DOWN, LEFT, RIGHT))):
            if self.on_board(square) and self.at(board, square) != EMPTY and self._trapped(board, square):
                self.put(board, square, EMPTY)

    def _trapped(self, board: list[int], victim: Square) -> bool:
        def bad(way: Square) -> bool:
            square = beside(victim, way)
            if not self.on_board(square):
                return False
            piece = self.at(board, square)
            enemy = owner(piece) == 1 - owner(self.at(board, victim)) and self._captures(piece)
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
        king = divmod(board.index(KING), self.size)
        if king in self.corners or (self.escape == "edge" and self.on_edge(king)):
            return "king_escaped"
        if self.encirclement == "attackers_win" and self._is_encircled(board):
            return "encircled"
        if self.attackers_gone == "defenders_win" and ATTACKER not in board:
            return "attackers_gone"
        earlier = position.earlier[: position.since_capture]
        if self.repetition == "draw" and earlier.count((board, position.player)) >= self.repetitions - 1:
            return "repetition"
        if not self.moves(board, position.player):
            return "no_moves"
        if position.ply >= self.max_plies:
            return "max_plies"
        return None

    def _is_encircled(self, board: Board) -> bool:
        """Whether no path of squares without attackers leads from a defender to the edge."""
        seen = {divmod(cell, self.size) for cell, piece in enumerate(board) if piece in (DEFENDER, KING)}
        waiting = list(seen)
        while waiting:
            square = waiting.pop()
            if self.on_edge(square):
                return False
            around = {beside(square, way) for way in DIRECTIONS} - seen
            free = [square for square in around if self.at(board, square) != ATTACKER]
            seen |= {*free}
            waiting += free
        return True

    # Conversion of positions.

    def start(self) -> Position:
        return self.position(self.start_text)

    def set_up(self, board: Sequence[int], player: int) -> Position:
        """A position with an empty history; the board decides whether the game is over."""
        return self._judged(Position(tuple(board), player))

    def position(self, text: str) -> Position:
        """The position of a well-formed `text`, with an empty history."""
        placement, side = text.split(" ")
        cells = []
        for symbol in re.findall(r"[0-9]+|[tTK]", placement):
            cells += [EMPTY] * int(symbol) if symbol.isdigit() else [" tTK".index(symbol)]
        return self.set_up(cells, "ad".index(side))

    def text(self, position: Position) -> str:
        rows = []
        for start in range(0, self.size**2, self.size):
            row = "".join(SYMBOLS.get(cell, "_") for cell in position.board[start : start + self.size])
            rows.append(re.sub("_+", lambda run: str(len(run[0])), row))
        return "/".join(rows) + " " + "ad"[position.player]

    def planes(self, position: Position, history: int = 3) -> list[list[list[float]]]:
        """The observation [row][column][plane] with `history` boards."""
        boards = [position.board, *(board for board, _ in position.earlier)][:history]
        boards += [(EMPTY,) * self.size**2] * (history - len(boards))
        pieces = ((ATTACKER, None), (DEFENDER, KING))
        shown = pieces[position.player] + pieces[1 - position.player]
        cells = [
            [float(board[cell] == piece) for board in boards for piece in shown] + [float(position.player == 0)]
            for cell in range(self.size**2)
        ]
        return [cells[start : start + self.size] for start in range(0, self.size**2, self.size)]

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
        most_attackers, most_defenders = self.start_text.count("t"), self.start_text.count("T")
        squares = [divmod(cell, self.size) for cell in range(self.size**2)]
        open_squares = [square for square in squares if square not in self.corners]
        while True:
            board = [EMPTY] * self.size**2
            inside = [square for square in open_squares if self.escape == "corners" or not self.on_edge(square)]
            king = generator.choice(inside)
            self.put(board, king, KING)
            closed = () if self.castle == "anyone" else (self.middle,)
            free = [square for square in open_squares if square not in (king, *closed)]
            generator.shuffle(free)
            for piece, most in ((ATTACKER, most_attackers), (DEFENDER, most_defenders)):
                for _ in range(generator.randint(piece == ATTACKER, most)):
                    self.put(board, free.pop(), piece)
            position = self.set_up(board, generator.randrange(2))
            if not position.terminal:
                return position


@functools.lru_cache(maxsize=1000)
def _moves(rules: BrandubRules, board: Board, player: int) -> tuple[int, ...]:
    found, own = [], PIECES[player]
    for square, piece in enumerate(board):
        if piece not in own:
            continue
        for ray in rules.rays[square]:
            for cell, action, pawn, king in ray:
                if board[cell]:
                    break
                if king if piece == KING else pawn:
                    found.append(action)
    return tuple(found)


DEFAULT = BrandubRules()
SEED000 = BrandubRules(capture="trapped", attackers_gone="ignored", repetition="never")
