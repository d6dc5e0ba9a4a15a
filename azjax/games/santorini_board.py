"""The board of Santorini: sets of squares as one uint32 word.

Square (row, column) is bit `row * (size + 1) + column`. The spare bit at the end of each row is never set, so that no
shift wraps around an edge. On the host a square is its row-major number.
"""

import dataclasses
import functools
import itertools
from collections.abc import Iterable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Int32, UInt32

from azjax.core.bits import Word, count_bits
from azjax.games.protocols import square_name

DIRECTIONS = ((-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1))
DOME = 4


@dataclasses.dataclass(frozen=True)
class Grid:
    """A square board with `size` rows and columns."""

    size: int

    @property
    def num_squares(self) -> int:
        return self.size**2

    @functools.cached_property
    def bits(self) -> UInt32[np.ndarray, "squares"]:
        """The bit of each square."""
        squares = np.arange(self.num_squares, dtype=np.uint32)
        return squares + squares // np.uint32(self.size)

    @functools.cached_property
    def all(self) -> np.uint32:
        return np.uint32(self.word(range(self.num_squares)))

    @functools.cached_property
    def shifts(self) -> tuple[UInt32[np.ndarray, "8"], UInt32[np.ndarray, "8"]]:
        """How far to shift a word left, and then right, to go in each direction."""
        offsets = np.array([row * (self.size + 1) + column for row, column in DIRECTIONS])
        return np.maximum(offsets, 0).astype(np.uint32), np.maximum(-offsets, 0).astype(np.uint32)

    def neighbor(self, square: Word, direction: Int32[Array, "..."]) -> UInt32[Array, "..."]:
        """The square in a direction, 0..7, perhaps off the board."""
        left, right = (sum(int(shift) << (4 * index) for index, shift in enumerate(shifts)) for shifts in self.shifts)
        # Hexadecimal digits of a word: a table without a gather, which is slow.
        digit = direction.astype(jnp.uint32) * jnp.uint32(4)
        left_digit, right_digit = (jnp.uint32(table) >> digit & jnp.uint32(15) for table in (left, right))
        neighbor: Array = (square << left_digit) >> right_digit
        return neighbor

    def around(self, squares: Word) -> UInt32[Array, "..."]:
        """The squares themselves and all next to them, some perhaps off the board."""
        one, row = jnp.uint32(1), jnp.uint32(self.size + 1)
        across = squares | squares << one | squares >> one
        around: Array = across | across << row | across >> row
        return around

    def square(self, number: Int32[Array, ""]) -> UInt32[Array, ""]:
        """The square of a row-major number; empty if there is no such square."""
        bit = jnp.uint32(1) << (number + number // self.size).astype(jnp.uint32)
        return jnp.where((number >= 0) & (number < self.num_squares), bit, jnp.uint32(0))

    def number(self, square: Word) -> UInt32[Array, ""]:
        """The row-major number of one square."""
        bit = count_bits(square - jnp.uint32(1)).astype(jnp.uint32)
        number: Array = bit - bit // jnp.uint32(self.size + 1)
        return number

    def unpack(self, words: UInt32[Array, "n"]) -> UInt32[Array, "n squares"]:
        """0 or 1 for each square of each word."""
        unpacked: Array = words[:, None] >> self.bits[None] & jnp.uint32(1)
        return unpacked

    @functools.cached_property
    def symmetries(self) -> tuple[Int[np.ndarray, "8 squares"], Int[np.ndarray, "8 directions"]]:
        """For each symmetry, identity first, where each square and each direction goes."""
        squares, directions = [], []
        for transpose, flip_rows, flip_columns in itertools.product((1, -1), repeat=3):

            def turn(row: int, column: int) -> tuple[int, int]:
                turned = (row * flip_rows, column * flip_columns)
                return turned if transpose == 1 else turned[::-1]

            # Twice the distance from the middle of the board is a whole number.
            middle = self.size - 1
            turned = [turn(2 * row - middle, 2 * column - middle) for row, column in np.ndindex(self.size, self.size)]
            squares.append([(row + middle) // 2 * self.size + (column + middle) // 2 for row, column in turned])
            directions.append([DIRECTIONS.index(turn(*step)) for step in DIRECTIONS])
        return np.array(squares), np.array(directions)

    # On the host.

    def word(self, squares: Iterable[int]) -> int:
        """The set of these squares."""
        return sum(1 << int(self.bits[square]) for square in squares)

    def squares(self, word: Word) -> list[int]:
        """The squares of a set, ascending."""
        return [square for square, bit in enumerate(self.bits.tolist()) if int(word) >> bit & 1]

    def next_to(self, square: int) -> list[int]:
        row, column = divmod(square, self.size)
        near = [(row + down, column + right) for down, right in DIRECTIONS]
        return [r * self.size + c for r, c in near if 0 <= r < self.size and 0 <= c < self.size]

    def name(self, square: int) -> str:
        return square_name(self.size, *divmod(square, self.size))
