"""Endings of tafl: all positions with few pieces, numbered up to the symmetries of the board.

A position without captures can come back, so that its value is not found ply by ply but by retrograde analysis
(`azjax/evaluation/retrograde.py`). A number has these digits, from the first: how many defenders and attackers, the
side to move, the king's square, the defender's square, and the set of attackers (its rank in the combinatorial number
system: Knuth, The Art of Computer Programming 4A, 7.2.1.3). The king's square stands for its images under the eight
symmetries. On an axis of the board he is his own image, and there a position and its mirror image have two numbers.

Axis letters: `K` slots of the table of moves.
"""

import dataclasses
import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int32, UInt32

from azjax.core import bitboard
from azjax.core.bitboard import any_of, both, single, union
from azjax.core.errors import InputError
from azjax.core.xla import materialize
from azjax.games.endings import Endings, EndingsPart
from azjax.games.tafl_board import Board, Grid
from azjax.games.tafl_rules import PlainTafl, TaflState

_MOST_PIECES, _MOST_DEFENDERS = 6, 1


class _Tables(NamedTuple):
    """What the digits of a number mean.

    Attributes:
      symmetry: by bit of the king, the first symmetry that takes him to a square of `king_bits`.
      king: by bit of the king, the index of that square.
      images: how many squares are symmetric to each of them.
      king_bits: one square of each class of symmetric ones, on which an unfinished game may have the king.
      pawn: by symmetry times the number of bits, plus bit: the index of the image in `pawn_bits`.
      pawn_bits: the squares where pawns may stand.
      ranks: by number of attackers before it and by its square, what an attacker adds to the rank; the last column is
        for none.
    """

    symmetry: Int32[np.ndarray, "bits"]
    king: Int32[np.ndarray, "bits"]
    images: tuple[int, ...]
    king_bits: Int32[np.ndarray, "kings"]
    pawn: Int32[np.ndarray, "images_and_bits"]
    pawn_bits: Int32[np.ndarray, "pawns"]
    ranks: UInt32[np.ndarray, "attackers pawns_and_one"]


@dataclasses.dataclass(frozen=True)
class TaflEndings(Endings[TaflState]):
    """The endings with the king, at most one defender, and at least one attacker.

    Repetitions and the limit of plies play no part in them. A win here takes the winner nearer to the end with each
    move, so that none of his positions comes twice: it is a win under any rule of repetition, unless a position on
    the way occurred in the game before, and unless the limit of plies comes first.

    Attributes:
      game: the rules.
      pieces: defenders and attackers together, at most; 1 to 6.

    Raises:
      InputError: rules without an end when the attackers are gone, or too many pieces.
    """

    game: PlainTafl
    pieces: int

    def __post_init__(self) -> None:
        name = self.game.name
        if self.game.rules.attackers_gone != "defenders_win":
            raise InputError(f"{name}: endings are for rules by which the defenders win when the attackers are gone")
        if not (isinstance(self.pieces, int) and 1 <= self.pieces <= _MOST_PIECES):
            raise InputError(f"{name}: endings have 1 to {_MOST_PIECES} pieces beside the king, got {self.pieces!r}")
        if self.num_position_numbers > 2**31:
            raise InputError(f"{name}: endings with {self.pieces} pieces beside the king have too many positions")

    @functools.cached_property
    def _materials(self) -> list[tuple[int, int]]:
        """Defenders and attackers; captures lead to earlier ones."""
        return [
            (defenders, pawns - defenders)
            for pawns in range(1, self.pieces + 1)
            for defenders in range(_MOST_DEFENDERS + 1)
            if pawns > defenders
        ]

    @functools.cached_property
    def parts(self) -> tuple[EndingsPart, ...]:
        parts, first = [], 0
        for group, (defenders, attackers) in enumerate(self._materials):
            size = len(self._tables.king_bits) * self._num_sets(defenders) * self._num_sets(attackers)
            enemies = "one attacker" if attackers == 1 else f"{attackers} attackers"
            name = f"king, one defender and {enemies}" if defenders else f"king and {enemies}"
            for player, pieces in ((0, attackers), (1, defenders + 1)):
                parts.append(EndingsPart(name, player, group, first, first + size, pieces, self._tables.images))
                first += size
        return tuple(parts)

    @property
    def num_position_numbers(self) -> int:
        return self.parts[-1].stop

    def _num_sets(self, pawns: int) -> int:
        return math.comb(len(self._tables.pawn_bits), pawns)

    @functools.cached_property
    def _rules(self) -> PlainTafl:
        """The game without history."""
        rules = dataclasses.replace(self.game.rules, repetition="never")
        return PlainTafl(rules, 1, self.game.start, self.game.name)

    def has_values_of(self, other: Endings[TaflState]) -> bool:
        def played(endings: TaflEndings) -> tuple[PlainTafl, int]:
            rules = dataclasses.replace(endings._rules.rules, repetitions=2, max_plies=1)
            return dataclasses.replace(endings._rules, rules=rules), endings.pieces

        return isinstance(other, TaflEndings) and played(self) == played(other)

    @functools.cached_property
    def _retreats(self) -> Grid:
        """The moves backwards: they are those forwards, but the king may come from the castle, where he starts."""
        grid = self.game.grid
        return dataclasses.replace(grid, castle_is_for="king") if grid.castle_is_for == "nobody" else grid

    @functools.cached_property
    def _tables(self) -> _Tables:
        grid = self.game.grid
        bits, num_bits = grid.bits.ravel(), grid.size * grid.stride
        goes_to = np.argsort(grid.symmetry_tables[1], axis=1)
        pawns = np.flatnonzero(~grid.closed_squares[0].ravel())
        kings = np.flatnonzero(~grid.goal_squares.ravel())
        first_image = goes_to[:, kings].min(axis=0)
        king_squares = np.unique(first_image)
        symmetry, king = np.zeros((2, num_bits), np.int32)
        symmetry[bits[kings]] = goes_to[:, kings].argmin(axis=0)
        king[bits[kings]] = np.searchsorted(king_squares, first_image)
        pawn = np.zeros((len(goes_to), num_bits), np.int32)
        pawn[:, bits] = np.searchsorted(pawns, goes_to).clip(max=len(pawns) - 1)
        ranks = [[math.comb(square, before + 1) for square in range(len(pawns))] for before in range(self.pieces)]
        return _Tables(
            symmetry=symmetry,
            king=king,
            images=tuple(np.unique_counts(first_image).counts.tolist()),
            king_bits=bits[king_squares].astype(np.int32),
            pawn=pawn.ravel(),
            pawn_bits=bits[pawns].astype(np.int32),
            ranks=np.pad(np.array(ranks, np.uint32), ((0, 0), (0, 1))),
        )

    # Numbers.

    def position_number(self, state: TaflState) -> UInt32[Array, ""]:
        board, tables = state.board, self._tables
        none = len(tables.pawn_bits)
        king, _ = bitboard.pop_lowest(board.king)
        image = functools.partial(_image, jnp.asarray(tables.symmetry)[king] * len(tables.king), tables.pawn)
        defender, _ = bitboard.pop_lowest(board.defenders)
        squares, attackers = [], board.attackers
        for _ in range(self.pieces):
            exists = any_of(attackers)
            bit, attackers = bitboard.pop_lowest(attackers)
            squares.append(jnp.where(exists, image(bit), none))
        rank = jnp.uint32(0)
        for before, square in enumerate(_sorted(squares)):
            rank = rank + jnp.asarray(tables.ranks)[before, square]

        num_attackers, num_defenders = bitboard.count(board.attackers), bitboard.count(board.defenders)
        number = jnp.uint32(self.num_position_numbers)
        for (defenders, count), part in zip(self._materials, self.parts[::2], strict=True):
            digits = state.current_player.astype(jnp.uint32) * np.uint32(len(tables.king_bits))
            digits = digits + jnp.asarray(tables.king)[king].astype(jnp.uint32)
            if defenders:
                digits = digits * np.uint32(none) + image(defender).astype(jnp.uint32)
            digits = np.uint32(part.first) + digits * np.uint32(self._num_sets(count)) + rank
            number = jnp.where((num_attackers == count) & (num_defenders == defenders), digits, number)
        finished = ~any_of(board.king) | any_of(both(board.king, self.game.grid.goals))
        return jnp.where(finished, jnp.uint32(self.num_position_numbers), number)

    def from_position_number(self, number: UInt32[Array, ""]) -> TaflState:
        tables, words = self._tables, self.game.grid.words
        first, sets, attackers_of, defenders_of = (
            np.array(column, np.uint32)
            for column in zip(
                *(
                    (part.first, self._num_sets(attackers), attackers, defenders)
                    for (defenders, attackers), part in zip(self._materials, self.parts[::2], strict=True)
                ),
                strict=True,
            )
        )
        group = jnp.sum(number >= first, dtype=jnp.int32) - 1
        digits = number - jnp.asarray(first)[group]
        digits, rank = jnp.divmod(digits, jnp.asarray(sets)[group])
        num_attackers, has_defender = jnp.asarray(attackers_of)[group], jnp.asarray(defenders_of)[group] > 0
        without_defender = digits
        digits, defender = jnp.divmod(digits, jnp.uint32(len(tables.pawn_bits)))
        digits = jnp.where(has_defender, digits, without_defender)
        player, king = jnp.divmod(digits, jnp.uint32(len(tables.king_bits)))

        pawn_bits = jnp.asarray(tables.pawn_bits)
        attackers = bitboard.empty(words)
        for before in reversed(range(self.pieces)):
            here = before < num_attackers.astype(jnp.int32)
            square = jnp.sum(tables.ranks[before, :-1] <= rank, dtype=jnp.int32) - 1
            rank = jnp.where(here, rank - jnp.asarray(tables.ranks)[before, square], rank)
            attackers = union(attackers, bitboard.only_if(here, single(pawn_bits[square], words)))
        defenders = bitboard.only_if(has_defender, single(pawn_bits[defender.astype(jnp.int32)], words))
        board = Board(attackers, defenders, single(jnp.asarray(tables.king_bits)[king.astype(jnp.int32)], words))
        return self._state(board, player.astype(jnp.int32))

    def _state(self, board: Board, player: Int32[Array, ""]) -> TaflState:
        """The position; terminated if two pieces share a square, or the game is over."""
        shared = union(both(board.attackers, union(board.defenders, board.king)), both(board.defenders, board.king))
        over = any_of(shared) | ~self.game.grid.can_move(board, player == 0)
        if self.game.rules.encirclement == "attackers_win":
            over |= self.game.encircled(board)
        return TaflState(
            game=self._rules,
            board=board,
            earlier=(),
            ply=jnp.int32(0),
            key=None,
            past=None,
            current_player=player,
            terminated=over,
            rewards=jnp.zeros(2, jnp.float32),
        )

    def as_first_position(self, state: TaflState) -> TaflState:
        return self.game.first(state.board, state.current_player)

    def image_numbers(self, number: UInt32[Array, ""]) -> UInt32[Array, "8"]:
        state = self.from_position_number(number)
        images, _ = self._rules.symmetries(state)
        return jax.vmap(self.position_number)(images)

    # Moves.

    def legal_slots(self, state: TaflState, pieces: int) -> tuple[Int32[Array, "K"], Bool[Array, "K"]]:
        board = Board(*(bitboard.only_if(~state.terminated, squares) for squares in state.board))
        return self.game.grid.slots(board, state.current_player == 0, pieces)

    def step(self, state: TaflState, action: Int32[Array, ""]) -> TaflState:
        return self._rules.step(state, action)

    def predecessors(self, state: TaflState, pieces: int) -> UInt32[Array, "K"]:
        mover = 1 - state.current_player
        actions, valid = self._retreats.slots(state.board, mover == 0, pieces)

        def number(action: Int32[Array, ""]) -> UInt32[Array, ""]:
            source, target, _ = self._retreats.read_move(state.board, mover == 0, action)
            source, target = materialize((source, target))
            board = self._rules.moved(state.board, union(source, target), mover == 0)
            return self.position_number(self._state(board, mover))

        return jnp.where(valid, jax.vmap(number)(actions), jnp.uint32(self.num_position_numbers))


def _image(base: Int32[Array, "..."], pawn: Int32[np.ndarray, "images_and_bits"], bit: Int32[Array, "..."]) -> Array:
    return jnp.asarray(pawn)[base + bit]


def _sorted(numbers: list[Int32[Array, "..."]]) -> list[Int32[Array, "..."]]:
    """Ascending, by a network of comparisons: sorting neighbors, at even and at odd places in turn."""
    for turn in range(len(numbers)):
        for left in range(turn % 2, len(numbers) - 1, 2):
            pair = numbers[left], numbers[left + 1]
            numbers[left], numbers[left + 1] = jnp.minimum(*pair), jnp.maximum(*pair)
    return numbers
