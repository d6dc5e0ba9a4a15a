"""Santorini without god powers, on 2x2 to 5x5 boards with one or two workers a side.

A turn moves a worker to a free neighbor, at most one level up and not onto a dome, then builds one level on a free
neighbor of the square moved to; the fourth level is a dome. Stepping onto level 3 wins, a side to move without an
action loses. Action = worker * 64 + move direction * 8 + build direction: workers are numbered in row-major order,
directions run row-major over the eight neighbors. With `placement` the workers are placed first, and action
64 * workers + square places the next one.

Text: heights row-major, then the workers of the side to move as row and column digits in row-major order, then the
opponent's; `--` is a worker not placed yet. The side to move follows from the number of blocks. Moves are
from-to^build, `b2-c3^b3`; a placement is its square, `c3`.

The rules are in `santorini_rules.py`; here is what the game adds to the contract.
"""

import dataclasses
import functools
import itertools
import math
import string
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Int32, UInt32

from azjax.core.bits import Word, count_bits
from azjax.core.errors import InputError
from azjax.games.game import rewards_of_winner
from azjax.games.protocols import MAX_POSITION_NUMBERS, CellGame, NumberedGame, TextGame
from azjax.games.registry import register
from azjax.games.santorini_board import DIRECTIONS, DOME
from azjax.games.santorini_rules import MOVES, PlainSantorini, SantoriniState

_UNPLACED = "--"


class Setup(NamedTuple):
    """A position on the host: heights 0 to 4, and the workers' squares of the side to move and of the other."""

    heights: Int[np.ndarray, "squares"]
    own: list[int]
    other: list[int]


@dataclasses.dataclass(frozen=True)
class Santorini(
    PlainSantorini,
    TextGame[SantoriniState],
    CellGame[SantoriniState],
    NumberedGame[SantoriniState],
):
    """Santorini; for its options see `PlainSantorini`."""

    player_names: ClassVar[tuple[str, str]] = ("Orange", "Purple")
    piece_names: ClassVar[tuple[str, ...]] = (
        *("ground", "1 floor", "2 floors", "3 floors", "dome"),
        *("nobody", "orange", "purple"),
    )
    piece_letters: ClassVar[tuple[str, str]] = ("X", "O")

    def how_to_play(self) -> str:
        placed = "First Orange places its workers, then Purple. " if self.placement else ""
        return placed + (
            "Orange begins. In each turn a worker moves to a neighboring square, diagonally too, which must be free, "
            "not under a dome, and at most one floor higher; it may go down any number of floors. Then the same "
            "worker builds a floor on a free square next to it; the fourth is a dome, which nobody can enter. Whoever "
            "steps onto the third floor wins. A side that cannot move and build loses."
        )

    def examples(self) -> tuple[tuple[str, str], ...]:
        """Orange's worker beside a floor that it can climb and one that it cannot; then on the third floor."""
        if self.size < 3:
            return ()
        climbing, won = np.zeros((2, self.size, self.size), int)
        climbing[0, :2] = 1, 2
        won[0, :2], won[1, 1] = (3, 2), 1
        last = self.size - 1
        climbing[1, last] = won[1, last] = 1  # the number of floors tells who is to move
        orange, purple = [(1, 0), (last, last)], [(last, 0), (last, last - 1)]
        highest = [(0, 0), orange[1]]
        one, two, top = (self.grid.name(square) for square in (0, 1, 0))

        def text(heights: Int[np.ndarray, "size size"], *sides: list[tuple[int, int]]) -> str:
            workers = [f"{row}{column}" for side in sides for row, column in sorted(side[: self.workers])]
            return "".join(map(str, heights.ravel().tolist())) + "".join(workers)

        return (
            (
                text(climbing, orange, purple),
                f"Orange can climb to {one}, one floor up, but not to {two}, two floors up.",
            ),
            (text(won, purple, highest), f"Orange stands on the third floor, on {top}, and wins."),
        )

    def move_notation(self) -> str:
        placed = " A worker is placed by its square alone." if self.placement else ""
        return (
            "A move is the square that the worker leaves, a hyphen, the one that it reaches, ^, and the one to build "
            "on." + placed
        )

    # Position numbers: heights in base 5, then the set of the side to move's workers and the opponent's, by its index.

    @functools.cached_property
    def _worker_sets(self) -> UInt32[np.ndarray, "sets"]:
        """Colexicographic: the set of the squares a < b has the index b (b - 1) / 2 + a."""
        sets = itertools.combinations(range(self.num_squares), self.workers)
        return np.array([self.grid.word(list(each)) for each in sorted(sets, key=lambda each: each[::-1])], np.uint32)

    @property
    def num_position_numbers(self) -> int:
        numbers = 5**self.num_squares * math.comb(self.num_squares, self.workers) ** 2
        return 0 if self.placement or numbers > MAX_POSITION_NUMBERS else numbers

    def position_number(self, state: SantoriniState) -> UInt32[Array, ""]:
        self._refuse_numbers()
        number: Array = jnp.uint32(0)
        levels = (state.at_least_1, state.at_least_2, state.at_least_3, state.domes)
        for bit in self.grid.bits:
            height = sum((level >> bit & jnp.uint32(1) for level in levels), jnp.uint32(0))
            number = number * jnp.uint32(5) + height
        for side in (state.own, state.other):
            first, *rest = (self.grid.number(worker) for worker in self._workers(side))
            index = first + sum(second * (second - jnp.uint32(1)) // jnp.uint32(2) for second in rest)
            number = number * jnp.uint32(len(self._worker_sets)) + index
        return number

    def from_position_number(self, number: UInt32[Array, ""]) -> SantoriniState:
        self._refuse_numbers()
        number = jnp.asarray(number, jnp.uint32)
        sides: list[Word] = []
        for _ in range(2):
            number, index = _divmod(number, len(self._worker_sets))
            sides.insert(0, jnp.asarray(self._worker_sets)[index])
        levels = [jnp.uint32(0)] * DOME
        for bit in self.grid.bits[::-1]:
            number, height = _divmod(number, 5)
            levels = [
                level | (height >= jnp.uint32(floor)).astype(jnp.uint32) << bit
                for floor, level in enumerate(levels, start=1)
            ]
        blocks = sum((count_bits(level) for level in levels), jnp.int32(0))
        state = self._with_end(self._position((*levels, *sides), blocks & 1))
        # Nobody shares a square, stands on a dome, or goes on from the third floor.
        own, other = sides
        alone = count_bits(own | other) == 2 * self.workers
        impossible = ~alone | ((own & levels[2]) | (other & levels[3]) != 0)
        return dataclasses.replace(state, terminated=state.terminated | impossible)

    def _refuse_numbers(self) -> None:
        if not self.num_position_numbers:
            raise InputError(f"santorini does not number positions: 32 bits do not hold those of {self}")

    # Text.

    def to_text(self, state: SantoriniState) -> str:
        heights = "".join(map(str, self.heights(state)))
        return heights + self._write_workers(state.own) + self._write_workers(state.other)

    def _write_workers(self, word: Word) -> str:
        pairs = ["{}{}".format(*divmod(square, self.size)) for square in self.grid.squares(word)]
        return "".join(pairs + [_UNPLACED] * (self.workers - len(pairs)))

    def from_text(self, text: str) -> SantoriniState:
        setup = self._read(text)
        # Every ply builds a block, but that player 0 places all workers first.
        placed = len(setup.own) == self.workers
        player = setup.heights.sum() % 2 if placed else len(setup.other) == self.workers
        state: SantoriniState = _set_up(self, self._boards(setup), np.int32(player))
        return state

    def _read(self, text: str) -> Setup:
        grid, squares_end = self.grid, self.num_squares
        length = squares_end + 4 * self.workers
        if len(text) != length:
            raise InputError(
                f"santorini: a position has {length} characters, {squares_end} heights and "
                f"{2 * self.workers} workers of two digits, got {len(text)}: {text!r}"
            )
        for index, symbol in enumerate(text[:squares_end]):
            if symbol not in "01234":
                raise InputError(f"santorini: character {index + 1} of {text!r} is {symbol!r}; a height is 0 to 4")
        heights = np.array([int(symbol) for symbol in text[:squares_end]])
        workers: list[int] = []
        for index in range(squares_end, length, 2):
            square = self._read_worker(text, index)
            if square is None:
                continue
            where = f"character {index + 1} of {text!r}: a worker stands on {grid.name(square)},"
            if square in workers:
                raise InputError(f"santorini: {where} where another one stands")
            if heights[square] == DOME:
                raise InputError(f"santorini: {where} which is a dome")
            workers.append(square)
        half = squares_end + 2 * self.workers
        num_own = self.workers - text[squares_end:half].count(_UNPLACED)
        setup = Setup(heights, workers[:num_own], workers[num_own:])
        for start in (squares_end, half):
            side = [text[index : index + 2] for index in range(start, start + 2 * self.workers, 2)]
            if side != sorted(side, key=lambda worker: (worker == _UNPLACED, worker)):
                last = f", with {_UNPLACED} last" if self.placement else ""
                raise InputError(f"santorini: workers {' '.join(side)} of {text!r} are not in row-major order{last}")
        self._refuse_impossible(text, setup)
        return setup

    def _read_worker(self, text: str, index: int) -> int | None:
        """The square of the worker at `text[index : index + 2]`; None if it is not placed yet."""
        pair = text[index : index + 2]
        if self.placement and pair == _UNPLACED:
            return None
        for offset, symbol in enumerate(pair):
            if symbol not in string.digits[: self.size]:
                unplaced = f", or {_UNPLACED} for a worker not placed yet" if self.placement else ""
                raise InputError(
                    f"santorini: character {index + offset + 1} of {text!r} is {symbol!r}; "
                    f"a worker's row and column are 0 to {self.size - 1}{unplaced}"
                )
        return int(pair[0]) * self.size + int(pair[1])

    def _refuse_impossible(self, text: str, setup: Setup) -> None:
        heights, own, other = setup
        if len(own) == len(other) == self.workers:
            self._refuse_winners(text, setup)
        elif len(own) == self.workers or len(other) not in (0, self.workers):
            raise InputError(
                f"santorini: {text!r} has {len(own)} workers of the side to move and {len(other)} of the other; "
                f"a side places all of its workers in turn"
            )
        elif heights.any():
            raise InputError(f"santorini: {text!r} has blocks before all workers are placed")

    def _refuse_winners(self, text: str, setup: Setup) -> None:
        """Refuses workers on height 3 that cannot have stepped there with the last move."""
        heights, own, other = setup
        for square in own:
            if heights[square] == DOME - 1:
                name = self.grid.name(square)
                raise InputError(f"santorini: {text!r} goes on after the side to move had won, with a worker on {name}")
        winners = [square for square in other if heights[square] == DOME - 1]
        if len(winners) > 1:
            names = " and ".join(map(self.grid.name, winners))
            raise InputError(f"santorini: {text!r} goes on after a win, with workers on {names}")
        for square in winners:
            around = [near for near in self.grid.next_to(square) if near not in own + other]
            # The square left had height 2, and 3 if the move built on it; otherwise the move built on another.
            built_on = [near for near in around if heights[near] >= 1]
            if not any(heights[near] == 3 or (heights[near] == 2 and len(built_on) > 1) for near in around):
                name = self.grid.name(square)
                raise InputError(f"santorini: no last move of {text!r} steps onto height 3 on {name}")

    def action_to_text(self, state: SantoriniState, action: int) -> str:
        squares = [self.grid.name(square) for square in self.action_squares(state, action)]
        return squares[0] if len(squares) == 1 else "{}-{}^{}".format(*squares)

    def action_squares(self, state: SantoriniState, action: int) -> tuple[int, ...]:
        """From, to and the square built on; the square alone of a worker that is placed."""
        worker, directions = divmod(int(action), MOVES)
        if worker >= self.workers:
            return (int(action) - MOVES * self.workers,)
        start = self.grid.squares(state.own)[worker]
        squares = [divmod(start, self.size)]
        for direction in divmod(directions, len(DIRECTIONS)):
            row, column = squares[-1]
            squares.append((row + DIRECTIONS[direction][0], column + DIRECTIONS[direction][1]))
        return tuple(row * self.size + column for row, column in squares)

    def ending(self, state: SantoriniState) -> str:
        winner, loser = self.player_names[:: 1 if state.rewards[0] > 0 else -1]
        climbed = (self.heights(state) == DOME - 1) & (self.owners(state) > 0)
        return f"{winner} climbs to the top" if climbed.any() else f"{loser} cannot move"

    def draw(self, state: SantoriniState) -> str:
        """Heights, 4 a dome, with the workers X of Orange and O of Purple."""
        symbols = (" ", *self.piece_letters)
        pairs = zip(self.heights(state), self.owners(state), strict=True)
        cells = [f"{height}{symbols[owner]}" for height, owner in pairs]
        lines = [
            f"{self.size - row}  " + " ".join(cells[row * self.size : (row + 1) * self.size])
            for row in range(self.size)
        ]
        return "\n".join(line.rstrip() for line in [*lines, "   " + "  ".join(string.ascii_lowercase[: self.size])])

    def with_piece(self, state: SantoriniState, square: int, piece: int) -> SantoriniState:
        """A side's worker beyond its number comes from where the first of its others, row-major, stands."""
        heights, owners = self.heights(state), self.owners(state)
        if piece <= DOME:
            heights[square] = piece
        else:
            owners[square] = owner = piece - DOME - 1
            others = np.flatnonzero((owners == owner) & (np.arange(self.num_squares) != square))
            if owner and len(others) == self.workers:
                owners[others[0]] = 0
        sides = [np.flatnonzero(owners == owner).tolist() for owner in (1, 2)]
        placed = all(len(side) == self.workers for side in sides)
        player = int(heights.sum()) % 2 if placed else int(len(sides[0]) == self.workers)
        return self._position(self._boards(Setup(heights, sides[player], sides[1 - player])), jnp.int32(player))

    def with_mover(self, state: SantoriniState, player: int) -> SantoriniState:
        """The same state: the number of blocks, or of workers while they are placed, decides who moves."""
        del player
        return state

    def _boards(self, setup: Setup) -> UInt32[np.ndarray, "6"]:
        """The sets of squares in the order of the state's fields."""
        levels = [self.grid.word(np.flatnonzero(setup.heights >= floor).tolist()) for floor in range(1, DOME + 1)]
        return np.array([*levels, self.grid.word(setup.own), self.grid.word(setup.other)], np.uint32)

    def cells(self, state: SantoriniState) -> Int32[Array, "squares"]:
        levels = (state.at_least_1, state.at_least_2, state.at_least_3, state.domes)
        *floors, own, other = self.grid.unpack(jnp.stack([*levels, state.own, state.other])).astype(jnp.int32)
        first, second = (jnp.where(state.current_player == player, own, other) for player in (0, 1))
        cells: Array = 3 * sum(floors) + first + 2 * second
        return cells

    def squares_of_actions(self, state: SantoriniState) -> Int32[Array, "A 3"]:
        workers = jnp.nonzero(self.grid.unpack(state.own[None])[0], size=self.workers, fill_value=-1)[0].astype(
            jnp.int32
        )
        steps = np.array([row * self.size + column for row, column in DIRECTIONS], np.int32)
        move, build = np.divmod(np.arange(MOVES), len(DIRECTIONS))
        reached = workers[:, None] + steps[move][None]
        squares = jnp.stack(
            [jnp.broadcast_to(workers[:, None], reached.shape), reached, reached + steps[build][None]], axis=-1
        )
        placing = np.full((self.num_squares if self.placement else 0, 3), -1, np.int32)
        placing[:, 0] = np.arange(len(placing))
        return jnp.concatenate([squares.reshape(-1, 3), placing])

    def owners(self, state: SantoriniState) -> Int[np.ndarray, "squares"]:
        """0 no worker, 1 one of player 0, 2 one of player 1."""
        owners = np.zeros(self.num_squares, int)
        for player, workers in ((state.current_player, state.own), (1 - state.current_player, state.other)):
            owners[self.grid.squares(workers)] = int(player) + 1
        return owners

    def heights(self, state: SantoriniState) -> Int[np.ndarray, "squares"]:
        heights = np.zeros(self.num_squares, int)
        for level in (state.at_least_1, state.at_least_2, state.at_least_3, state.domes):
            heights[self.grid.squares(level)] += 1
        return heights


@functools.partial(jax.jit, static_argnums=0)
def _set_up(game: Santorini, boards: UInt32[Array, "6"], player: Int32[Array, ""]) -> SantoriniState:
    """A position of these boards, with the end and the result that they decide."""
    position = game._with_end(game._position(boards, player))
    rewards = rewards_of_winner(position.terminated, 1 - player)
    state: SantoriniState = dataclasses.replace(position, rewards=rewards)
    return state


def _divmod(number: UInt32[Array, ""], divisor: int) -> tuple[UInt32[Array, ""], UInt32[Array, ""]]:
    quotient = number // jnp.uint32(divisor)
    return quotient, number - quotient * jnp.uint32(divisor)


@register("santorini")
def santorini(size: int = 3, workers: int = 1, placement: bool = False) -> Santorini:
    """Santorini on size x size with one or two workers a side, placed by the players or on known squares.

    Args:
      size: rows and columns, 2 to 5.
      workers: of each side, 1 or 2; on 2x2 1.
      placement: the players place their workers.
    """
    return Santorini(size, workers, placement)
