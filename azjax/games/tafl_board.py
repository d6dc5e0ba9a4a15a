"""The board of tafl games: the pieces on it, and how they may move.

Pieces move like rooks, on some boards fewer squares. All may cross the empty castle (the center); the rules say who may
stop there. Where the king escapes to a corner, he alone enters one. Action = square * D + direction * (size - 1) +
distance - 1 with D = 4 * (size - 1) and square = size * row + column; directions are 0 down, 1 up, 2 right, 3 left.

Axis letters: `A` actions, `K` slots of the table of legal actions.
"""

import dataclasses
import functools
import re
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, Int32, UInt32

from azjax.core import bitboard
from azjax.core.bitboard import Bits, any_of, both, choose, only_if, shift, single, toggle, union, without
from azjax.core.bits import WORD, nth_bit, scale_bits
from azjax.core.errors import InputError
from azjax.core.xla import batch_last, materialize

SYMBOLS = ".tTK"
"""The characters of an empty square, an attacker, a defender and the king."""

MAX_SIZE = 17
"""Rows of a board: the moves of a piece along its column, or along its row, are bits of one word."""

_Flags = Bool[Array | np.ndarray | np.bool_, "..."]


class Board(NamedTuple):
    """Sets of squares; the king is none of the defenders."""

    attackers: Bits
    defenders: Bits
    king: Bits

    @property
    def occupied(self) -> Bits:
        return union(*self)


@dataclasses.dataclass(frozen=True)
class Grid:
    """A square board of odd size. `attacking` tells whether the attackers are to move.

    Attributes:
      size: squares of a side.
      escape: where the king escapes to; pawns do not enter the corners if he escapes to them.
      castle_is_for: who may stop on the castle.
      longest_move: squares of a move, at most.
    """

    size: int
    escape: Literal["corners", "edge"] = "corners"
    castle_is_for: Literal["nobody", "king", "anyone"] = "nobody"
    longest_move: int = MAX_SIZE

    @property
    def reach(self) -> int:
        return self.size - 1

    @property
    def stride(self) -> int:
        return self.size + 1

    @property
    def words(self) -> int:
        return bitboard.num_words(self.size * self.stride)

    @property
    def steps(self) -> tuple[int, int, int, int]:
        """The change of the bit number by one step in each direction."""
        return self.stride, -self.stride, 1, -1

    @functools.cached_property
    def bits(self) -> Int[np.ndarray, "size size"]:
        """The bit of each square."""
        side = np.arange(self.size)
        return side[:, None] * self.stride + side

    def constant(self, squares: Iterable[tuple[int, ...]]) -> Bits:
        return bitboard.constant((self.bits[square] for square in squares), self.words)

    @functools.cached_property
    def all(self) -> Bits:
        return self.constant(np.ndindex(self.size, self.size))

    @functools.cached_property
    def castle(self) -> Bits:
        return self.constant([(self.size // 2, self.size // 2)])

    @functools.cached_property
    def corners(self) -> Bits:
        return self.constant((row, column) for row in (0, self.reach) for column in (0, self.reach))

    @functools.cached_property
    def edge(self) -> Bits:
        return self.constant(square for square in np.ndindex(self.size, self.size) if {0, self.reach} & {*square})

    @functools.cached_property
    def goal_squares(self) -> Bool[np.ndarray, "size size"]:
        """Where the king has escaped."""
        goals = np.zeros((self.size, self.size), bool)
        if self.escape == "edge":
            goals[:: self.reach] = goals[:, :: self.reach] = True
        else:
            goals[:: self.reach, :: self.reach] = True
        return goals

    @functools.cached_property
    def goals(self) -> Bits:
        return self._set_of(self.goal_squares)

    @functools.cached_property
    def closed_squares(self) -> Bool[np.ndarray, "2 size size"]:
        """Where a pawn, and where the king, may not stop."""
        closed = np.zeros((2, self.size, self.size), bool)
        if self.escape == "corners":
            closed[0, :: self.reach, :: self.reach] = True
        middle = self.size // 2
        closed[:, middle, middle] = self.castle_is_for != "anyone", self.castle_is_for == "nobody"
        return closed

    @functools.cached_property
    def closed_to_pawns(self) -> Bits:
        return self._set_of(self.closed_squares[0])

    @functools.cached_property
    def closed_to_king(self) -> Bits:
        return self._set_of(self.closed_squares[1])

    def _set_of(self, squares: Bool[np.ndarray, "size size"]) -> Bits:
        return bitboard.constant(self.bits[squares].tolist(), self.words)

    @functools.cached_property
    def by_the_castle(self) -> Bits:
        """The castle and its four neighbors."""
        middle = self.size // 2
        return self.constant(
            [(middle, middle), *((middle + r, middle + c) for r, c in ((1, 0), (-1, 0), (0, 1), (0, -1)))]
        )

    def read_rows(self, text: str, game: str) -> Int[np.ndarray, "size size"]:
        """The cells of the rows of a text: 0 empty, 1 attacker, 2 defender, 3 king.

        Raises:
          InputError: malformed rows, told with the name of the `game`; the position may be impossible.
        """
        rows = text.split("/")
        if len(rows) != self.size:
            raise InputError(f"{game}: a position has {self.size} rows with / between, got {len(rows)}: {text!r}")
        cells = np.zeros((self.size, self.size), int)
        index = 0
        for number, row in enumerate(rows, start=1):
            column = 0
            for symbol in re.findall("(?s)[0-9]+|." if self.size > 9 else "(?s).", row):
                if symbol in SYMBOLS[1:]:
                    if column < self.size:
                        cells[number - 1, column] = SYMBOLS.index(symbol)
                    column += 1
                elif re.fullmatch("[1-9][0-9]?", symbol):
                    column += int(symbol)
                else:
                    raise InputError(
                        f"{game}: character {index + 1} of {text!r} is {symbol!r}; allowed: t, T, K and 1..{self.size}"
                    )
                index += len(symbol)
            if column != self.size:
                raise InputError(f"{game}: row {number} of {text!r} has {column} squares instead of {self.size}")
            index += 1
        return cells

    def read_move(
        self, board: Board, attacking: _Flags, action: Int32[Array, ""]
    ) -> tuple[Bits, Bits, Bool[Array, ""]]:
        """The squares, one bit each, that an action leaves and reaches, and whether it is legal."""
        reach, size, words = self.reach, self.size, self.words
        in_range = (action >= 0) & (action < self.size**2 * 4 * reach)
        square, way = divide(jnp.where(in_range, action, 0), 4 * reach)
        row, column = divide(square, size)
        direction, distance = divide(way, reach)
        distance = distance + 1
        signed = jnp.where(direction & 1 == 0, distance, -distance)
        vertical = direction < 2
        new_row = row + jnp.where(vertical, signed, 0)
        new_column = column + jnp.where(vertical, 0, signed)
        on_board = (new_row >= 0) & (new_row < size) & (new_column >= 0) & (new_column < size)
        bit, new_bit = row * self.stride + column, new_row * self.stride + new_column
        source, target = single(bit, words), single(new_bit, words)

        low, high = jnp.minimum(bit, new_bit), jnp.maximum(bit, new_bit)
        between = toggle(bitboard.below(high + 1, words), bitboard.below(low, words))
        a_column = bitboard.constant(self.bits[:, 0].tolist(), words)
        # Left of a column shifted by its number there is nothing in the first row.
        column_bits = _shift_less_than_word(a_column, column)
        line = tuple(jnp.where(vertical, word, np.uint32(0xFFFFFFFF)) for word in column_bits)
        path = without(both(between, line), source)
        own = choose(attacking, board.attackers, union(board.defenders, board.king))
        is_king = any_of(both(source, board.king))
        closed = choose(is_king, self.closed_to_king, self.closed_to_pawns)
        allowed = ~any_of(both(target, closed)) & (distance <= self.longest_move)
        legal = any_of(both(source, own)) & ~any_of(both(path, board.occupied)) & allowed
        return source, target, legal & in_range & on_board

    def can_move(self, board: Board, attacking: _Flags) -> Bool[Array, ""]:
        """Whether the side to move has a legal action."""
        pawns = choose(attacking, board.attackers, board.defenders)
        king = only_if(~attacking, board.king)
        free = without(self.all, board.occupied)
        found = []
        for step in self.steps:
            pawn_to, king_to = both(shift(pawns, step), free), both(shift(king, step), free)
            found += [without(pawn_to, self.closed_to_pawns), without(king_to, self.closed_to_king)]
            if self.longest_move > 1 and self.castle_is_for != "anyone":
                found.append(both(shift(both(union(pawn_to, king_to), self.castle), step), free))
        return any_of(union(*found))

    def destinations(self, board: Board, attacking: _Flags) -> tuple[Bits, list[Bits]]:
        """The mover's pieces, and the squares that some of them may go to, by direction."""
        free = without(self.all, board.occupied)
        pawns = choose(attacking, board.attackers, board.defenders)
        king = only_if(~attacking, board.king)
        longest = min(self.longest_move, self.reach)
        reached = [
            union(
                without(bitboard.slide(pawns, free, step, longest), self.closed_to_pawns),
                without(bitboard.slide(king, free, step, longest), self.closed_to_king),
            )
            for step in self.steps
        ]
        return union(pawns, king), reached

    def sample(self, board: Board, attacking: _Flags, bits: UInt32[Array, ""]) -> Int32[Array, ""]:
        """A legal action drawn uniformly by random `bits`; 0 if there is none."""
        own, destinations = self.destinations(board, attacking)
        words = [word for squares in destinations for word in squares]
        counts = [jax.lax.population_count(word).astype(jnp.int32) for word in words]
        total = sum(counts[1:], start=counts[0])
        # In each direction one piece alone reaches a square, so a move is a direction and a square.
        index = scale_bits(bits, total)
        chosen, base, step, direction = words[0], jnp.int32(0), jnp.int32(0), jnp.int32(0)
        before = jnp.int32(0)
        skipped = jnp.int32(0)
        for number, (word, count) in enumerate(zip(words, counts, strict=True)):
            here = index >= before
            way, index_of_word = divmod(number, self.words)
            chosen = jnp.where(here, word, chosen)
            base = jnp.where(here, index_of_word * WORD, base)
            step = jnp.where(here, self.steps[way], step)
            direction = jnp.where(here, way, direction)
            skipped = jnp.where(here, before, skipped)
            before = before + count
        target = base + nth_bit(chosen, index - skipped)
        distance, source = jnp.int32(self.reach), target
        for steps_back in range(self.reach, 0, -1):
            bit = target - step * steps_back
            # Nearer pieces override farther ones.
            found = bitboard.has(own, bit)
            distance = jnp.where(found, steps_back, distance)
            source = jnp.where(found, bit, source)
        square = source - divide(source, self.stride)[0]
        action = square * (4 * self.reach) + direction * self.reach + distance - 1
        return jnp.where(total > 0, action, 0)

    def ways(
        self, occupied: Bits, row: Int32[Array | np.ndarray, "..."], column: Int32[Array | np.ndarray, "..."]
    ) -> tuple[UInt32[Array, "..."], UInt32[Array, "..."]]:
        """How far the squares of these rows and columns are free around them.

        Returns:
          words for down and up, and for right and left: bit d - 1 is set if the d squares next to it in the first
          direction are free, and bit size - 2 + d for the second direction.
        """
        size = self.size

        def free(line: Sequence[Array], index: Int[Array | np.ndarray, "..."]) -> Array:
            bits: Array = jnp.uint32(1 << size)
            for number, there in enumerate(line):
                bits = bits | jnp.where(there, np.uint32(1 << number), np.uint32(0))
            beyond = bits >> (index + 1).astype(jnp.uint32)
            # The bits below the lowest one.
            return (beyond & (np.uint32(0) - beyond)) - np.uint32(1)

        def both_ways(line: list[Array], index: Int[Array | np.ndarray, "..."]) -> Array:
            return free(line, index) | free(line[::-1], self.reach - index) << np.uint32(self.reach)

        in_column = [bitboard.has(occupied, number * self.stride + column) for number in range(size)]
        in_row = [bitboard.has(occupied, row * self.stride + number) for number in range(size)]
        return both_ways(in_column, row), both_ways(in_row, column)

    @functools.cached_property
    def landings(self) -> UInt32[np.ndarray, "2 2 squares"]:
        """The `ways` of a pawn and of a king that end where they may stand."""
        size, reach = self.size, self.reach
        landings = np.zeros((2, 2, size * size), np.uint32)
        for row, column, direction, distance in np.ndindex(size, size, 4, reach):
            down, right = ((1, 0), (-1, 0), (0, 1), (0, -1))[direction]
            to = (row + down * (distance + 1), column + right * (distance + 1))
            way = np.uint32(1 << (direction % 2 * reach + distance))
            if distance < self.longest_move and all(0 <= place < size for place in to):
                landings[~self.closed_squares[:, *to], direction // 2, row * size + column] |= way
        return landings

    def mask(self, board: Board, attacking: _Flags) -> Bool[Array, "A"]:
        """The legal actions."""
        size, reach = self.size, self.reach
        row, column = (x.ravel().astype(np.int32) for x in np.indices((size, size)))
        pawns = choose(attacking, board.attackers, board.defenders)
        king = only_if(~attacking, board.king)
        bits = row * self.stride + column
        is_pawn, is_king = bitboard.has(pawns, bits), bitboard.has(king, bits)
        nothing = np.uint32(0)
        vertical, horizontal = materialize(
            tuple(
                ways & (jnp.where(is_pawn, of_pawn, nothing) | jnp.where(is_king, of_king, nothing))
                for ways, of_pawn, of_king in zip(self.ways(board.occupied, row, column), *self.landings, strict=True)
            )
        )
        way = np.arange(4 * reach, dtype=np.uint32)[None]
        chosen = jnp.where(way < 2 * reach, vertical[:, None], horizontal[:, None])
        return materialize(chosen >> (way % (2 * reach)) & np.uint32(1) == 1).reshape(-1)

    def slots(self, board: Board, attacking: _Flags, most_pieces: int) -> tuple[Int32[Array, "K"], Bool[Array, "K"]]:
        """The compact table of legal actions.

        A slot is a column or a row, one of the other squares of it, and the piece (`most_pieces`) that goes there.
        """
        table: tuple[Array, Array] = batch_last(functools.partial(self._slots, most_pieces=most_pieces))(
            board, attacking
        )
        return table

    def _slots(
        self, board: Board, attacking: _Flags, most_pieces: int
    ) -> tuple[Int32[Array, "K ..."], Bool[Array, "K ..."]]:
        """`slots` of boards whose words have more axes, which come last in the result."""
        size, reach, batch = self.size, self.reach, attacking.shape

        def axis(numbers: np.ndarray) -> np.ndarray:  # before those of the batch
            return numbers.reshape(*numbers.shape, *[1] * len(batch))

        board, attacking = jax.tree.map(lambda leaf: leaf[None], (board, attacking))
        own = choose(attacking, board.attackers, union(board.defenders, board.king))
        piece = axis(np.arange(most_pieces, dtype=np.int32))
        exists = piece < bitboard.count(own)
        exists, bits = materialize((exists, jnp.where(exists, bitboard.nth(own, jnp.asarray(piece)), 0)))
        row, column = divide(bits, self.stride)
        square = row * size + column
        landings = jnp.asarray(self.landings).at[:, :, square].get(mode="promise_in_bounds")
        may_land = jnp.where(bitboard.has(board.king, bits)[None], landings[1], landings[0])
        ways = jnp.where(exists[None], jnp.stack(self.ways(board.occupied, row, column)) & may_land, np.uint32(0))
        ways, row, column = materialize((ways, row, column))

        vertical = axis(np.array([True, False])[:, None, None])
        slot = axis(np.arange(reach, dtype=np.int32)[None, :, None])
        row, column = row[None, None], column[None, None]
        # Down or right as far as the edge, then up or left.
        forward = reach - jnp.where(vertical, row, column)
        way = jnp.where(slot < forward, slot, slot - forward + reach)
        valid = (ways[:, None] >> way.astype(jnp.uint32)) & np.uint32(1) == 1
        action = (row * size + column) * (4 * reach) + jnp.where(vertical, way, way + 2 * reach)
        # Before the reshape, which takes divisions for each element if it is fused with something.
        valid, action = materialize((valid, jnp.where(valid, action, 0)))
        return action.reshape(-1, *batch), valid.reshape(-1, *batch)

    @functools.cached_property
    def symmetry_tables(self) -> tuple[Int32[np.ndarray, "8 A"], Int32[np.ndarray, "8 squares"]]:
        """For each symmetry, where each action goes, and which square comes from where."""
        size, reach = self.size, self.reach
        squares = np.arange(size * size, dtype=np.int32).reshape(size, size)
        permutations, inverses = [], []
        deltas = np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])
        for transpose in (False, True):
            for rows, columns in ((1, 1), (-1, 1), (1, -1), (-1, -1)):
                board = squares[::rows, ::columns]
                turned = deltas * [rows, columns]
                inverse = (board.T if transpose else board).ravel()
                turned = turned[:, ::-1] if transpose else turned
                direction = np.array([np.flatnonzero((deltas == delta).all(1))[0] for delta in turned])
                goes_to = np.argsort(inverse)
                ways = direction[:, None] * reach + np.arange(reach)
                permutations.append((goes_to[:, None] * (4 * reach) + ways.ravel()).ravel())
                inverses.append(inverse)
        return np.stack(permutations).astype(np.int32), np.stack(inverses)


def divide(number: Int32[Array, "..."], by: int) -> tuple[Int32[Array, "..."], Int32[Array, "..."]]:
    """Quotient and remainder of numbers that are not negative."""
    quotient = (number.astype(jnp.uint32) // np.uint32(by)).astype(jnp.int32)
    return quotient, number - quotient * by


def _shift_less_than_word(bits: Bits, distance: Int32[Array, ""]) -> Bits:
    """Every bit moved up by `distance`, 0..31."""
    distance = distance.astype(jnp.uint32)
    carried = tuple(
        # In two steps, since a shift by a whole word is not defined.
        (word >> np.uint32(1)) >> (np.uint32(WORD - 1) - distance)
        for word in bits
    )
    return tuple(
        (word << distance) | (carried[number - 1] if number else np.uint32(0)) for number, word in enumerate(bits)
    )
