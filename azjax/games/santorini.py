"""Santorini without god powers, on 2x2 to 5x5 boards with one or two workers a side.

A turn moves a worker to a free neighbour, at most one level up and not onto a dome, then builds one level on a free
neighbour of the square moved to; the fourth level is a dome. Stepping onto level 3 wins, a side to move without an
action loses. Action = worker * 64 + move direction * 8 + build direction: workers are numbered in row-major order,
directions run row-major over the eight neighbours. With `placement` the workers are placed first, and action
64 * workers + square places the next one.

Text: heights row-major, then the workers of the side to move as row and column digits in row-major order, then the
opponent's; `--` is a worker not placed yet. Whose turn it is follows from the number of blocks. Moves are written
from-to^build, `b2-c3^b3`; a placement is its square, `c3`.

Sets of squares are uint32 words. Square (row, column) is bit `row * (size + 1) + column`; the spare bit at the end of
each row is never set, so that a shifted word cannot wrap around the edge. All rules are shifts, masks and bit counts
of scalars, which compile to vector instructions over a batch. Axis letters: `A` actions, `K` slots, `S` symmetries.
"""

import dataclasses
import functools
import itertools
import string
from collections.abc import Iterable
from typing import Any, ClassVar

import chex
import jax
import jax.numpy as jnp
import numpy as np

from azjax.core.bits import scale_bits
from azjax.core.errors import InputError
from azjax.core.pytree import pytree_dataclass, static_field
from azjax.core.xla import materialize
from azjax.games.game import Game
from azjax.games.protocols import BoardGame, EditableGame, NumberedGame, TextGame, square_name
from azjax.games.registry import register

MIN_SIZE, MAX_SIZE, MAX_WORKERS = 2, 5, 2
DIRECTIONS = ((-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1))
_MOVES = 64  # actions of one worker
_DOME = 4
_UNPLACED = "--"
# By size and workers: the start, and the most legal actions of a position. Blocks only take actions away, so that the
# most is that of an empty board, found by trying all squares of the workers.
_STARTS = {
    (2, 1): ("00000011", 4),
    (3, 1): ("0000000000022", 27),
    (3, 2): ("00000000000022022", 28),
    (4, 1): ("00000000000000000033", 46),
    (4, 2): ("000000000000000000033033", 66),
    (5, 1): ("00000000000000000000000001133", 63),
    (5, 2): ("000000000000000000000000011133133", 100),
}


@pytree_dataclass
class SantoriniState:
    """Attributes: see `azjax.games.game.State`; the others are sets of squares, uint32 [].

    at_least_1, at_least_2, at_least_3: squares of that height or more.
    domes: squares of height 4.
    own: workers of the player to move.
    other: workers of the opponent.
    """

    game: Game = static_field(kw_only=True, repr=False)
    at_least_1: chex.Array
    at_least_2: chex.Array
    at_least_3: chex.Array
    domes: chex.Array
    own: chex.Array
    other: chex.Array
    current_player: chex.Array
    terminated: chex.Array
    rewards: chex.Array


@dataclasses.dataclass(frozen=True)
class Santorini(
    Game[SantoriniState],
    TextGame[SantoriniState],
    BoardGame[SantoriniState],
    EditableGame[SantoriniState],
    NumberedGame[SantoriniState],
):
    """Santorini without god powers.

    Attributes:
      size: rows and columns, 2..5.
      workers: of each side, 1 or 2; two need size 3.
      placement: the players place their workers first, player 0 both of them; on 5x5 with two workers alone.
    """

    size: int = 3
    workers: int = 1
    placement: bool = False

    name = "santorini"
    player_names: ClassVar[tuple[str, str]] = ("X", "O")
    piece_names: ClassVar[tuple[str, ...]] = ("ground", "1 floor", "2 floors", "3 floors", "dome", "nobody", "X", "O")
    piece_letters: ClassVar[tuple[str, str]] = ("X", "O")

    def __post_init__(self) -> None:
        if not (isinstance(self.size, int) and MIN_SIZE <= self.size <= MAX_SIZE):
            raise InputError(f"santorini: size must be {MIN_SIZE}..{MAX_SIZE}, got {self.size}")
        if not (isinstance(self.workers, int) and 1 <= self.workers <= MAX_WORKERS):
            raise InputError(f"santorini: workers must be 1..{MAX_WORKERS}, got {self.workers}")
        if (self.size, self.workers) not in _STARTS:
            raise InputError(f"santorini: workers must be 1 on {self.size}x{self.size}, got {self.workers}")
        if not isinstance(self.placement, bool):
            raise InputError(f"santorini: placement must be True or False, got {self.placement!r}")
        if self.placement and (self.size, self.workers) != (5, 2):
            raise InputError(
                f"santorini: placement needs size 5 and workers 2, got size {self.size} and workers {self.workers}"
            )

    @property
    def num_squares(self) -> int:
        """Squares are numbered row-major from the top left."""
        return self.size**2

    @property
    def num_actions(self) -> int:
        return _MOVES * self.workers + (self.num_squares if self.placement else 0)

    @property
    def max_legal_actions(self) -> int:
        return _STARTS[self.size, self.workers][1]

    @property
    def max_plies(self) -> int:
        # Every ply builds a block. At the end no worker stands on more than 2 blocks, but for a winner on 3, and then
        # the square that it left, of height 2, has at most 3.
        return 4 * self.num_squares - 4 * self.workers + (2 * self.workers if self.placement else 0)

    @property
    def observation_shape(self) -> tuple[int, ...]:
        return (self.size, self.size, 7)

    def init(self, key: chex.PRNGKey) -> SantoriniState:
        del key
        none = np.uint32(0)
        own, other = (none, none) if self.placement else self._start
        return self._position((none, none, none, none, own, other), jnp.int32(0))

    def _position(self, boards: Iterable[Any], player: chex.Array) -> SantoriniState:
        """An unfinished position: four levels and the workers of both sides, in the order of the state's fields."""
        at_least_1, at_least_2, at_least_3, domes, own, other = (jnp.asarray(board, jnp.uint32) for board in boards)
        return SantoriniState(
            game=self,
            at_least_1=at_least_1,
            at_least_2=at_least_2,
            at_least_3=at_least_3,
            domes=domes,
            own=own,
            other=other,
            current_player=player,
            terminated=jnp.bool_(False),
            rewards=jnp.zeros(2, jnp.float32),
        )

    def step(self, state: SantoriniState, action: chex.Array) -> SantoriniState:
        action = jnp.asarray(action, jnp.int32)
        nothing = jnp.uint32(0)
        free = self._free(state)
        playing = ~state.terminated & (action >= 0)
        moving = playing & (action < _MOVES * self.workers)
        if self.placement:
            placing = self._placing(state)
            moving &= ~placing
        workers = self._workers(state.own)
        start = workers[0] if self.workers == 1 else jnp.where(action < _MOVES, *workers)
        target = self._neighbour(start, action >> 3 & 7) & self._reachable(state, start, free)
        block = self._neighbour(target, action & 7) & (free | start)
        moved, start, target, block = materialize((moving & (block != 0), start, target, block))
        block = jnp.where(moved, block, nothing)
        won = (target & state.at_least_3) != 0
        own = jnp.where(moved, state.own ^ start ^ target, state.own)
        passes = moved
        if self.placement:
            placed = jnp.where(playing & placing, self._square(action - _MOVES * self.workers) & free, nothing)
            own |= placed
            passes |= (placed != 0) & ~self._placing(dataclasses.replace(state, own=own))
        following = SantoriniState(
            game=self,
            at_least_1=state.at_least_1 | block,
            at_least_2=state.at_least_2 | block & state.at_least_1,
            at_least_3=state.at_least_3 | block & state.at_least_2,
            domes=state.domes | block & state.at_least_3,
            own=jnp.where(passes, state.other, own),
            other=jnp.where(passes, own, state.other),
            current_player=jnp.where(passes, 1 - state.current_player, state.current_player),
            terminated=state.terminated,
            rewards=state.rewards,
        )
        ended = materialize(moved & (won | ~self._can_move(following)))
        return dataclasses.replace(
            following,
            terminated=state.terminated | ended,
            rewards=_rewards(ended, state.current_player),
        )

    def legal_action_mask(self, state: SantoriniState) -> chex.Array:
        free = self._free(state)
        workers = self._workers(state.own)
        start = jnp.stack(workers)[:, None, None]
        reachable = jnp.stack([self._reachable(state, worker, free) for worker in workers])[:, None, None]
        left, right = (shift.reshape(1, 1, 8) for shift in self._shifts)
        target = (start << left.reshape(1, 8, 1)) >> right.reshape(1, 8, 1) & reachable
        block = (target << left) >> right & (free | start)
        moves = (block != 0).reshape(-1) & ~state.terminated
        if not self.placement:
            return moves
        placing = self._placing(state)
        squares = self._unpack(free[None])[0] == 1
        return jnp.concatenate([moves & ~placing, squares & placing & ~state.terminated])

    def legal_slots(self, state: SantoriniState) -> tuple[chex.Array, chex.Array]:
        groups = materialize(self._group_sizes(state))
        ranks = jnp.arange(self.max_legal_actions, dtype=jnp.int32)
        return self._action_of_rank(state, groups, ranks), ranks < _sum(groups)

    def sample_legal_action(self, state: SantoriniState, bits: chex.Array) -> chex.Array:
        groups = self._group_sizes(state)
        return self._action_of_rank(state, groups, scale_bits(bits, _sum(groups)))

    def _group_sizes(self, state: SantoriniState) -> list[chex.Array]:
        """int32 []: the number of legal actions by worker and direction of the move, and of placements at the end."""
        free = self._free(state)
        sizes = []
        for worker in self._workers(state.own):
            reachable = self._reachable(state, worker, free)
            for left, right in zip(*self._shifts, strict=True):
                target = (worker << left) >> right & reachable
                sizes.append(_count(self._around(target) & (free | worker) & ~target))
        if self.placement:
            placing = self._placing(state)
            sizes = [*(jnp.where(placing, 0, size) for size in sizes), jnp.where(placing, _count(free), 0)]
        return [jnp.where(state.terminated, 0, size) for size in sizes]

    def _action_of_rank(self, state: SantoriniState, group_sizes: list[chex.Array], rank: chex.Array) -> chex.Array:
        """int32 [...]: the legal action with `rank` smaller ones, int32 [...]; 0 where there are too few."""
        group, place = _find_interval(group_sizes, rank)
        group, place = materialize((group, place))
        free = self._free(state)
        workers = self._workers(state.own)
        start = workers[0] if self.workers == 1 else jnp.where(group < len(DIRECTIONS), *workers)
        target = self._neighbour(start, group & 7)
        blocks = ((target << left) >> right & (free | start) for left, right in zip(*self._shifts, strict=True))
        build, _ = _find_interval([(block != 0).astype(jnp.int32) for block in blocks], place)
        action = group * 8 + build
        if self.placement:
            squares = [(free >> bit & jnp.uint32(1)).astype(jnp.int32) for bit in self._bits]
            square, _ = _find_interval(squares, place)
            action = jnp.where(group == 8 * self.workers, _MOVES * self.workers + square, action)
        return materialize(jnp.where(rank < _sum(group_sizes), action, 0))

    def observe(self, state: SantoriniState) -> chex.Array:
        """Planes: own workers, the opponent's, then heights 0 to 4. Unplaced workers are seen to be missing."""
        board = jnp.uint32(self._board)
        levels = [board, state.at_least_1, state.at_least_2, state.at_least_3, state.domes, jnp.uint32(0)]
        heights = [level & ~above for level, above in itertools.pairwise(levels)]
        planes = self._unpack(jnp.stack([state.own, state.other, *heights])).astype(jnp.float32)
        return planes.T.reshape(self.observation_shape)

    def symmetries(self, state: SantoriniState) -> tuple[SantoriniState, chex.Array]:
        turned_bits, permutation = self._symmetry_tables
        num_symmetries = len(turned_bits)

        def turn(words: chex.Array) -> chex.Array:
            """uint32 [n] -> [n, S]."""
            return jnp.sum(self._unpack(words)[:, None] << turned_bits[None], axis=-1, dtype=jnp.uint32)

        boards = (state.at_least_1, state.at_least_2, state.at_least_3, state.domes, state.own, state.other)
        states = dataclasses.replace(
            self._position(turn(jnp.stack(boards)), jnp.broadcast_to(state.current_player, num_symmetries)),
            terminated=jnp.broadcast_to(state.terminated, num_symmetries),
            rewards=jnp.broadcast_to(state.rewards, (num_symmetries, 2)),
        )
        if self.workers == 1:
            return states, jnp.asarray(permutation)
        # The workers change numbers where the first comes to stand behind the second.
        first, second = turn(jnp.stack(self._workers(state.own)))
        swapped = (second != 0) & (first > second)
        flip = jnp.where(np.arange(self.num_actions) < _MOVES * self.workers, _MOVES, 0)
        return states, permutation ^ jnp.where(swapped[:, None], flip[None], 0)

    # Sets of squares.

    @functools.cached_property
    def _bits(self) -> np.ndarray:
        """uint32 [squares]: the bit of each square."""
        squares = np.arange(self.num_squares, dtype=np.uint32)
        return squares + squares // np.uint32(self.size)

    @functools.cached_property
    def _board(self) -> np.uint32:
        """All squares."""
        return np.bitwise_or.reduce(np.uint32(1) << self._bits)

    @functools.cached_property
    def _shifts(self) -> tuple[np.ndarray, np.ndarray]:
        """uint32 [8] twice: how far left, then right, to shift a word to go in each direction."""
        offsets = np.array([row * (self.size + 1) + column for row, column in DIRECTIONS])
        return np.maximum(offsets, 0).astype(np.uint32), np.maximum(-offsets, 0).astype(np.uint32)

    def _neighbour(self, square: chex.Array, direction: chex.Array) -> chex.Array:
        """The square in direction int32 [], 0..7, perhaps off the board."""
        left, right = (sum(int(shift) << (4 * place) for place, shift in enumerate(shifts)) for shifts in self._shifts)
        # Hexadecimal digits of a word: a table without a gather, which is slow.
        digit = direction.astype(jnp.uint32) * jnp.uint32(4)
        return (square << (jnp.uint32(left) >> digit & jnp.uint32(15))) >> (jnp.uint32(right) >> digit & jnp.uint32(15))

    def _around(self, squares: chex.Array) -> chex.Array:
        """The squares themselves and all next to them, some perhaps off the board."""
        one, row = jnp.uint32(1), jnp.uint32(self.size + 1)
        across = squares | squares << one | squares >> one
        return across | across << row | across >> row

    def _square(self, number: chex.Array) -> chex.Array:
        """The square of a row-major number int32 []; none where it is no square."""
        bit = jnp.uint32(1) << (number + number // self.size).astype(jnp.uint32)
        return jnp.where((number >= 0) & (number < self.num_squares), bit, jnp.uint32(0))

    def _number(self, square: chex.Array) -> chex.Array:
        """uint32 []: the row-major number of one square."""
        bit = _count(square - jnp.uint32(1)).astype(jnp.uint32)
        return bit - bit // jnp.uint32(self.size + 1)

    def _unpack(self, words: chex.Array) -> chex.Array:
        """uint32 [n] -> uint32 [n, squares], 0 or 1."""
        return words[:, None] >> self._bits[None] & jnp.uint32(1)

    # Rules.

    def _workers(self, own: chex.Array) -> list[chex.Array]:
        """The workers of one side, one word each, in row-major order."""
        if self.workers == 1:
            return [own]
        first = own & (~own + jnp.uint32(1))
        return [first, own ^ first]

    def _placing(self, state: SantoriniState) -> chex.Array:
        """bool []: the player to move has workers to place."""
        return _count(state.own) < self.workers

    def _free(self, state: SantoriniState) -> chex.Array:
        """Squares without a worker or a dome."""
        return jnp.uint32(self._board) & ~(state.own | state.other | state.domes)

    def _reachable(self, state: SantoriniState, worker: chex.Array, free: chex.Array) -> chex.Array:
        """Free squares at most one level above a worker, near or far."""
        too_high = jnp.where(
            (worker & state.at_least_2) != 0,
            state.domes,
            jnp.where((worker & state.at_least_1) != 0, state.at_least_3, state.at_least_2),
        )
        return free & ~too_high

    def _can_move(self, state: SantoriniState) -> chex.Array:
        """bool []: the player to move has a move. It has a build too, since the square just left can be built on."""
        targets = (
            self._around(state.own) & ~state.at_least_2
            | self._around(state.own & state.at_least_1) & ~state.at_least_3
            | self._around(state.own & state.at_least_2)
        )
        return (targets & self._free(state)) != 0

    def _with_end(self, state: SantoriniState) -> SantoriniState:
        """The position, terminated if its board alone ends the game."""
        won = (state.other & state.at_least_3) != 0
        ended = won | ~self._can_move(state)
        return dataclasses.replace(state, terminated=ended & ~self._placing(state) if self.placement else ended)

    @functools.cached_property
    def _start(self) -> tuple[int, int]:
        """The workers of player 0 and of player 1."""
        squares = _STARTS[self.size, self.workers][0][self.num_squares :]
        bits = [
            1 << (int(row) * (self.size + 1) + int(column))
            for row, column in zip(squares[::2], squares[1::2], strict=True)
        ]
        return sum(bits[: self.workers]), sum(bits[self.workers :])

    @functools.cached_property
    def _symmetry_tables(self) -> tuple[np.ndarray, np.ndarray]:
        """uint32 [S, squares]: the bit where each square goes; int32 [S, A]: where each action goes. Identity first.

        Workers keep their numbers in the second table.
        """
        bits, permutations = [], []
        for transpose, flip_rows, flip_columns in itertools.product((1, -1), repeat=3):

            def turn(row: int, column: int) -> tuple[int, int]:
                turned = (row * flip_rows, column * flip_columns)
                return turned if transpose == 1 else turned[::-1]

            # Twice the distance from the middle of the board is a whole number.
            middle = self.size - 1
            turned = [turn(2 * row - middle, 2 * column - middle) for row, column in np.ndindex(self.size, self.size)]
            squares = np.array([(row + middle) // 2 * self.size + (column + middle) // 2 for row, column in turned])
            direction = np.array([DIRECTIONS.index(turn(*step)) for step in DIRECTIONS])
            moves = (direction[:, None] * 8 + direction[None]).reshape(-1)
            bits.append(self._bits[squares])
            permutation = [moves + _MOVES * worker for worker in range(self.workers)]
            permutation += [squares + _MOVES * self.workers] if self.placement else []
            permutations.append(np.concatenate(permutation).astype(np.int32))
        return np.stack(bits), np.stack(permutations)

    # Position numbers: heights in base 5, then the squares of the side to move's workers and of the opponent's.

    @property
    def num_position_numbers(self) -> int:  # type: ignore[override]
        numbers = 5**self.num_squares * self.num_squares ** (2 * self.workers)
        return 0 if self.placement or numbers > 2**32 else numbers

    def position_number(self, state: SantoriniState) -> chex.Array:
        if not self.num_position_numbers:
            return super().position_number(state)
        number = jnp.uint32(0)
        levels = (state.at_least_1, state.at_least_2, state.at_least_3, state.domes)
        for bit in self._bits:
            height = sum((level >> bit & jnp.uint32(1) for level in levels), jnp.uint32(0))
            number = number * jnp.uint32(5) + height
        for worker in (*self._workers(state.own), *self._workers(state.other)):
            number = number * jnp.uint32(self.num_squares) + self._number(worker)
        return number

    def from_position_number(self, number: chex.Array) -> SantoriniState:
        if not self.num_position_numbers:
            return super().from_position_number(number)
        number = jnp.asarray(number, jnp.uint32)
        sides = [jnp.uint32(0), jnp.uint32(0)]
        for side in (1, 0):
            for _ in range(self.workers):
                number, square = _divmod(number, self.num_squares)
                sides[side] |= self._square(square.astype(jnp.int32))
        levels = [jnp.uint32(0)] * _DOME
        for bit in self._bits[::-1]:
            number, height = _divmod(number, 5)
            levels = [
                level | (height >= jnp.uint32(floor)).astype(jnp.uint32) << bit
                for floor, level in enumerate(levels, start=1)
            ]
        blocks = sum((_count(level) for level in levels), jnp.int32(0))
        return self._with_end(self._position((*levels, *sides), blocks & 1))

    # Text.

    def to_text(self, state: SantoriniState) -> str:
        heights = "".join(map(str, self.heights(state)))
        return heights + self._workers_text(state.own) + self._workers_text(state.other)

    def _workers_text(self, side: chex.Array) -> str:
        pairs = [f"{square // self.size}{square % self.size}" for square in self._squares(side)]
        return "".join(pairs + [_UNPLACED] * (self.workers - len(pairs)))

    def from_text(self, text: str) -> SantoriniState:
        heights, (own, other) = self._read(text)
        # Every ply builds a block, but that player 0 places all workers first.
        player = heights.sum() % 2 if len(own) == self.workers else len(other) == self.workers
        return _set_up(self, self._boards(heights, own, other), np.int32(player))

    def _boards(self, heights: np.ndarray, own: Any, other: Any) -> np.ndarray:
        """uint32 [6]: sets of squares, in the order of the state's, of heights int [squares] and workers' squares."""
        levels = [self._word(np.flatnonzero(heights >= floor)) for floor in range(1, _DOME + 1)]
        return np.array([*levels, self._word(own), self._word(other)], np.uint32)

    def _read(self, text: str) -> tuple[np.ndarray, tuple[list[int], list[int]]]:
        """Heights int [squares], and the squares of both sides' workers, the side to move first."""
        length = self.num_squares + 4 * self.workers
        if len(text) != length:
            raise InputError(
                f"santorini: a position has {length} characters, {self.num_squares} heights and "
                f"{2 * self.workers} workers of two digits, got {len(text)}: {text!r}"
            )
        for index, symbol in enumerate(text[: self.num_squares]):
            if symbol not in "01234":
                raise InputError(f"santorini: character {index + 1} of {text!r} is {symbol!r}; a height is 0 to 4")
        heights = np.array([int(symbol) for symbol in text[: self.num_squares]])
        squares: list[int] = []
        for index in range(self.num_squares, length, 2):
            square = self._read_worker(text, index)
            if square is None:
                continue
            where = f"character {index + 1} of {text!r}: a worker stands on {self._name(square)},"
            if square in squares:
                raise InputError(f"santorini: {where} where another one stands")
            if heights[square] == _DOME:
                raise InputError(f"santorini: {where} which is a dome")
            squares.append(square)
        half = self.num_squares + 2 * self.workers
        num_own = self.workers - text[self.num_squares : half].count(_UNPLACED)
        own, other = squares[:num_own], squares[num_own:]
        for start in (self.num_squares, half):
            side = [text[index : index + 2] for index in range(start, start + 2 * self.workers, 2)]
            if side != sorted(side, key=lambda worker: (worker == _UNPLACED, worker)):
                last = f", with {_UNPLACED} last" if self.placement else ""
                raise InputError(f"santorini: workers {' '.join(side)} of {text!r} are not in row-major order{last}")
        if len(own) == len(other) == self.workers:
            self._check_steps_onto_3(text, heights, own, other)
        elif len(own) == self.workers or len(other) not in (0, self.workers):
            raise InputError(
                f"santorini: {text!r} has {len(own)} workers of the side to move and {len(other)} of the other; "
                f"a side places all of its workers in turn"
            )
        elif heights.any():
            raise InputError(f"santorini: {text!r} has blocks before all workers are placed")
        return heights, (own, other)

    def _read_worker(self, text: str, index: int) -> int | None:
        """The square of the worker at `text[index : index + 2]`; None if it is not placed yet."""
        pair = text[index : index + 2]
        if self.placement and pair == _UNPLACED:
            return None
        allowed = string.digits[: self.size]
        for offset, symbol in enumerate(pair):
            if symbol not in allowed:
                unplaced = f", or {_UNPLACED} for a worker not placed yet" if self.placement else ""
                raise InputError(
                    f"santorini: character {index + offset + 1} of {text!r} is {symbol!r}; "
                    f"a worker's row and column are 0 to {self.size - 1}{unplaced}"
                )
        return int(pair[0]) * self.size + int(pair[1])

    def _check_steps_onto_3(self, text: str, heights: np.ndarray, own: list[int], other: list[int]) -> None:
        """Refuses workers on height 3 that cannot have stepped there with the last move."""
        for square in own:
            if heights[square] == _DOME - 1:
                raise InputError(
                    f"santorini: {text!r} goes on after the side to move had won, with a worker on {self._name(square)}"
                )
        winners = [square for square in other if heights[square] == _DOME - 1]
        if len(winners) > 1:
            raise InputError(f"santorini: {text!r} goes on after a win, with workers on {self._names(winners)}")
        for square in winners:
            around = [near for near in self._next_to(square) if near not in own + other]
            # The square left had height 2, and 3 if it was built on; else another was.
            built_on = [near for near in around if heights[near] >= 1]
            if not any(heights[near] == 3 or (heights[near] == 2 and len(built_on) > 1) for near in around):
                raise InputError(f"santorini: no last move of {text!r} steps onto height 3 on {self._name(square)}")

    def action_to_text(self, state: SantoriniState, action: int) -> str:
        squares = [self._name(square) for square in self.action_squares(state, action)]
        return squares[0] if len(squares) == 1 else "{}-{}^{}".format(*squares)

    def action_squares(self, state: SantoriniState, action: int) -> tuple[int, ...]:
        """From, to and the square built on; the square alone of a worker that is placed."""
        worker, directions = divmod(int(action), _MOVES)
        if worker >= self.workers:
            return (int(action) - _MOVES * self.workers,)
        start = self._squares(state.own)[worker]
        squares = [divmod(start, self.size)]
        for direction in divmod(directions, len(DIRECTIONS)):
            row, column = squares[-1]
            squares.append((row + DIRECTIONS[direction][0], column + DIRECTIONS[direction][1]))
        return tuple(row * self.size + column for row, column in squares)

    def draw(self, state: SantoriniState) -> str:
        """Heights, 4 a dome, with the workers X of player 0 and O of player 1."""
        symbols = (" ", *self.player_names)
        pairs = zip(self.heights(state), self.owners(state), strict=True)
        cells = [f"{height}{symbols[owner]}" for height, owner in pairs]
        lines = [
            f"{self.size - row}  " + " ".join(cells[row * self.size : (row + 1) * self.size])
            for row in range(self.size)
        ]
        return "\n".join(line.rstrip() for line in [*lines, "   " + "  ".join(string.ascii_lowercase[: self.size])])

    def with_piece(self, state: SantoriniState, square: int, piece: int) -> SantoriniState:
        """A side's worker beyond its number comes from where the first of its others, row-major, stands."""
        heights, owners = np.array(self.heights(state)), self.owners(state)
        if piece <= _DOME:
            heights[square] = piece
        else:
            owners[square] = owner = piece - _DOME - 1
            others = np.flatnonzero((owners == owner) & (np.arange(self.num_squares) != square))
            if owner and len(others) == self.workers:
                owners[others[0]] = 0
        sides = [np.flatnonzero(owners == owner) for owner in (1, 2)]
        placed = all(len(side) == self.workers for side in sides)
        player = int(heights.sum()) % 2 if placed else int(len(sides[0]) == self.workers)
        return self._position(self._boards(heights, sides[player], sides[1 - player]), jnp.int32(player))

    def owners(self, state: SantoriniState) -> np.ndarray:
        """int [squares]; 0 no worker, 1 one of player 0, 2 one of player 1."""
        owners = np.zeros(self.num_squares, int)
        for player, workers in ((state.current_player, state.own), (1 - state.current_player, state.other)):
            owners[self._squares(workers)] = int(player) + 1
        return owners

    def heights(self, state: SantoriniState) -> list[int]:
        levels = [self._squares(level) for level in (state.at_least_1, state.at_least_2, state.at_least_3, state.domes)]
        return [sum(square in level for level in levels) for square in range(self.num_squares)]

    def _squares(self, squares: chex.Array) -> list[int]:
        """The squares of a set, row-major."""
        word = int(squares)
        return [square for square, bit in enumerate(self._bits.tolist()) if word >> bit & 1]

    def _word(self, squares: Any) -> int:
        return sum(1 << int(self._bits[square]) for square in squares)

    def _next_to(self, square: int) -> list[int]:
        row, column = divmod(square, self.size)
        near = [(row + down, column + right) for down, right in DIRECTIONS]
        return [r * self.size + c for r, c in near if 0 <= r < self.size and 0 <= c < self.size]

    def _name(self, square: int) -> str:
        return square_name(self.size, *divmod(square, self.size))

    def _names(self, squares: list[int]) -> str:
        return " and ".join(map(self._name, squares))


@functools.partial(jax.jit, static_argnums=0)
def _set_up(game: Santorini, boards: chex.Array, player: chex.Array) -> SantoriniState:
    """A position from its boards uint32 [6], with the end and the result that they decide."""
    state = game._with_end(game._position(boards, player))
    return dataclasses.replace(state, rewards=_rewards(state.terminated, 1 - player))


def _count(squares: chex.Array) -> chex.Array:
    """int32 []: the size of a set."""
    return jax.lax.population_count(squares).astype(jnp.int32)


def _sum(numbers: list[chex.Array]) -> chex.Array:
    return sum(numbers[1:], numbers[0])


def _find_interval(lengths: list[chex.Array], index: chex.Array) -> tuple[chex.Array, chex.Array]:
    """int32 [] twice: which of the intervals laid end to end holds `index`, and its place in that interval."""
    interval, place = jnp.int32(0), index
    for length in lengths:
        index = index - length
        behind = index >= 0
        interval += behind.astype(jnp.int32)
        place = jnp.where(behind, index, place)
    return interval, place


def _divmod(number: chex.Array, divisor: int) -> tuple[chex.Array, chex.Array]:
    quotient = number // jnp.uint32(divisor)
    return quotient, number - quotient * jnp.uint32(divisor)


def _rewards(ended: chex.Array, winner: chex.Array) -> chex.Array:
    """float32 [2]: +1 for the winner and -1 for the other, zero where the game goes on."""
    sign = 1.0 - 2.0 * jnp.abs(jnp.arange(2) - winner).astype(jnp.float32)
    return jnp.where(ended, sign, 0.0)


@register("santorini")
def santorini(size: int = 3, workers: int = 1, placement: bool = False) -> Santorini:
    """Santorini on size x size with one or two workers a side, placed by the players or on known squares."""
    return Santorini(size, workers, placement)
