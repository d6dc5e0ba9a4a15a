"""The rules of Santorini; see `santorini.py`.

All rules are shifts, masks and bit counts of scalars, which compile to vector instructions over a batch. Axis letters:
`A` actions, `K` slots, `S` symmetries.
"""

import dataclasses
import functools
import itertools
from collections.abc import Iterable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float32, Int, Int32, PRNGKeyArray, UInt32

from azjax.core.bits import Word, count_bits, scale_bits
from azjax.core.errors import InputError
from azjax.core.pytree import pytree_dataclass, static_field
from azjax.core.whole_numbers import set_whole
from azjax.core.xla import materialize
from azjax.games.game import Game, rewards_of_winner
from azjax.games.protocols import ActionGroup, LaidOutGame
from azjax.games.santorini_board import DIRECTIONS, Grid

MIN_SIZE, MAX_SIZE, MAX_WORKERS = 2, 5, 2
MOVES = 64  # actions of one worker
# By size and workers: the start, and the most legal actions of a position. Blocks only take actions away, so that it is
# the most of an empty board, found by trying all squares of the workers.
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
    """A position, of sets of squares.

    Attributes:
      at_least_1, at_least_2, at_least_3: squares of that height or more.
      domes: squares of height 4.
      own: workers of the player to move.
      other: workers of the opponent.
    """

    game: "PlainSantorini" = static_field(kw_only=True, repr=False)
    at_least_1: UInt32[Array, "*B"]
    at_least_2: UInt32[Array, "*B"]
    at_least_3: UInt32[Array, "*B"]
    domes: UInt32[Array, "*B"]
    own: UInt32[Array, "*B"]
    other: UInt32[Array, "*B"]
    current_player: Int32[Array, "*B"]
    terminated: Bool[Array, "*B"]
    rewards: Float32[Array, "*B 2"]


@dataclasses.dataclass(frozen=True)
class PlainSantorini(Game[SantoriniState], LaidOutGame):
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

    def __post_init__(self) -> None:
        set_whole(self, "santorini", "size", range(MIN_SIZE, MAX_SIZE + 1))
        set_whole(self, "santorini", "workers", range(1, MAX_WORKERS + 1))
        if (self.size, self.workers) not in _STARTS:
            raise InputError(f"santorini: workers must be 1 on {self.size}x{self.size}, got {self.workers}")
        if not isinstance(self.placement, bool):
            raise InputError(f"santorini: placement must be True or False, got {self.placement!r}")
        if self.placement and (self.size, self.workers) != (5, 2):
            raise InputError(
                f"santorini: placement needs size 5 and workers 2, got size {self.size} and workers {self.workers}"
            )

    @functools.cached_property
    def grid(self) -> Grid:
        return Grid(self.size)

    @property
    def num_squares(self) -> int:
        """Squares are numbered row-major from the top left."""
        return self.size**2

    @property
    def num_actions(self) -> int:
        return MOVES * self.workers + (self.num_squares if self.placement else 0)

    @property
    def action_layout(self) -> tuple[ActionGroup, ...]:
        moves = ActionGroup("piece", MOVES, num_pieces=self.workers, piece_plane=0)
        return (moves, ActionGroup("square", 1)) if self.placement else (moves,)

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

    def init(self, key: PRNGKeyArray) -> SantoriniState:
        del key
        none = np.uint32(0)
        own, other = (none, none) if self.placement else self._start
        return self._position((none, none, none, none, own, other), jnp.int32(0))

    def _position(self, boards: Iterable[ArrayLike], player: Int32[Array, ""]) -> SantoriniState:
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

    def step(self, state: SantoriniState, action: Int[ArrayLike, ""]) -> SantoriniState:
        action = jnp.asarray(action, jnp.int32)
        nothing = jnp.uint32(0)
        free = self._free(state)
        playing = ~state.terminated & (action >= 0)
        moving = playing & (action < MOVES * self.workers)
        placing = self._placing(state) if self.placement else None
        if placing is not None:
            moving &= ~placing
        workers = self._workers(state.own)
        start = workers[0] if self.workers == 1 else jnp.where(action < MOVES, workers[0], workers[1])
        target = self.grid.neighbor(start, action >> 3 & 7) & self._reachable(state, start, free)
        block = self.grid.neighbor(target, action & 7) & (free | start)
        moved, start, target, block = materialize((moving & (block != 0), start, target, block))
        block = jnp.where(moved, block, nothing)
        won = (target & state.at_least_3) != 0
        own = jnp.where(moved, state.own ^ start ^ target, state.own)
        passes = moved
        if placing is not None:
            placed = jnp.where(playing & placing, self.grid.square(action - MOVES * self.workers) & free, nothing)
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
            rewards=rewards_of_winner(ended, state.current_player),
        )

    def legal_action_mask(self, state: SantoriniState) -> Bool[Array, "A"]:
        free = self._free(state)
        workers = self._workers(state.own)
        start = jnp.stack(workers)[:, None, None]
        reachable = jnp.stack([self._reachable(state, worker, free) for worker in workers])[:, None, None]
        left, right = (shift.reshape(1, 1, 8) for shift in self.grid.shifts)
        target = (start << left.reshape(1, 8, 1)) >> right.reshape(1, 8, 1) & reachable
        block = (target << left) >> right & (free | start)
        moves = (block != 0).reshape(-1) & ~state.terminated
        if not self.placement:
            return moves
        placing = self._placing(state)
        squares = self.grid.unpack(free[None])[0] == 1
        return jnp.concatenate([moves & ~placing, squares & placing & ~state.terminated])

    def legal_slots(self, state: SantoriniState) -> tuple[Int32[Array, "K"], Bool[Array, "K"]]:
        groups = materialize(self._group_sizes(state))
        ranks = jnp.arange(self.max_legal_actions, dtype=jnp.int32)
        return self._action_of_rank(state, groups, ranks), ranks < _sum(groups)

    def sample_legal_action(self, state: SantoriniState, bits: UInt32[Array, ""]) -> Int32[Array, ""]:
        groups = self._group_sizes(state)
        return self._action_of_rank(state, groups, scale_bits(bits, _sum(groups)))

    def _group_sizes(self, state: SantoriniState) -> list[Int32[Array, ""]]:
        """The number of legal actions of each worker and direction of the move, and of placements at the end."""
        free = self._free(state)
        sizes = []
        for worker in self._workers(state.own):
            reachable = self._reachable(state, worker, free)
            for left, right in zip(*self.grid.shifts, strict=True):
                target = (worker << left) >> right & reachable
                sizes.append(count_bits(self.grid.around(target) & (free | worker) & ~target))
        if self.placement:
            placing = self._placing(state)
            sizes = [*(jnp.where(placing, 0, size) for size in sizes), jnp.where(placing, count_bits(free), 0)]
        return [jnp.where(state.terminated, 0, size) for size in sizes]

    def _action_of_rank(
        self, state: SantoriniState, group_sizes: list[Int32[Array, ""]], rank: Int32[Array, "..."]
    ) -> Int32[Array, "..."]:
        """The legal action with `rank` smaller ones; 0 if there are too few."""
        group, index = materialize(_find_interval(group_sizes, rank))
        free = self._free(state)
        workers = self._workers(state.own)
        start = workers[0] if self.workers == 1 else jnp.where(group < len(DIRECTIONS), workers[0], workers[1])
        target = self.grid.neighbor(start, group & 7)
        blocks = ((target << left) >> right & (free | start) for left, right in zip(*self.grid.shifts, strict=True))
        build, _ = _find_interval([(block != 0).astype(jnp.int32) for block in blocks], index)
        action = group * 8 + build
        if self.placement:
            squares = [(free >> bit & jnp.uint32(1)).astype(jnp.int32) for bit in self.grid.bits]
            square, _ = _find_interval(squares, index)
            action = jnp.where(group == 8 * self.workers, MOVES * self.workers + square, action)
        return materialize(jnp.where(rank < _sum(group_sizes), action, 0))

    def observe(self, state: SantoriniState) -> Float32[Array, "size size 7"]:
        """Planes: own workers, the opponent's, then heights 0 to 4. Unplaced workers are on no square."""
        board = jnp.uint32(self.grid.all)
        levels = [board, state.at_least_1, state.at_least_2, state.at_least_3, state.domes, jnp.uint32(0)]
        heights = [level & ~above for level, above in itertools.pairwise(levels)]
        planes = self.grid.unpack(jnp.stack([state.own, state.other, *heights])).astype(jnp.float32)
        return planes.T.reshape(self.observation_shape)

    def symmetries(self, state: SantoriniState) -> tuple[SantoriniState, Int32[Array, "S A"]]:
        turned_bits, permutation = self._symmetry_tables
        num_symmetries = len(turned_bits)

        def turn(words: UInt32[Array, "n"]) -> UInt32[Array, "n S"]:
            return jnp.sum(self.grid.unpack(words)[:, None] << turned_bits[None], axis=-1, dtype=jnp.uint32)

        boards = (state.at_least_1, state.at_least_2, state.at_least_3, state.domes, state.own, state.other)
        at_least_1, at_least_2, at_least_3, domes, own, other = turn(jnp.stack(boards))
        states = SantoriniState(
            at_least_1=at_least_1,
            at_least_2=at_least_2,
            at_least_3=at_least_3,
            domes=domes,
            own=own,
            other=other,
            current_player=jnp.broadcast_to(state.current_player, num_symmetries),
            terminated=jnp.broadcast_to(state.terminated, num_symmetries),
            rewards=jnp.broadcast_to(state.rewards, (num_symmetries, 2)),
            game=self,
        )
        if self.workers == 1:
            return states, jnp.asarray(permutation)
        # The workers swap numbers where the first one comes behind the second.
        first, second = turn(jnp.stack(self._workers(state.own)))
        swapped = (second != 0) & (first > second)
        flip = jnp.where(np.arange(self.num_actions) < MOVES * self.workers, MOVES, 0)
        return states, jnp.asarray(permutation) ^ jnp.where(swapped[:, None], flip[None], 0)

    def _workers(self, own: Word) -> list[Word]:
        """The workers of one side, one word each, in row-major order."""
        if self.workers == 1:
            return [own]
        first = own & (~own + jnp.uint32(1))
        return [first, own ^ first]

    def _placing(self, state: SantoriniState) -> Bool[Array, ""]:
        """Whether the player to move has workers to place."""
        return count_bits(state.own) < self.workers

    def _free(self, state: SantoriniState) -> UInt32[Array, ""]:
        """Squares without a worker or a dome."""
        free: Array = jnp.uint32(self.grid.all) & ~(state.own | state.other | state.domes)
        return free

    def _reachable(self, state: SantoriniState, worker: Word, free: UInt32[Array, ""]) -> UInt32[Array, ""]:
        """Free squares at most one level above a worker, near or far."""
        too_high = jnp.where(
            (worker & state.at_least_2) != 0,
            state.domes,
            jnp.where((worker & state.at_least_1) != 0, state.at_least_3, state.at_least_2),
        )
        return free & ~too_high

    def _can_move(self, state: SantoriniState) -> Bool[Array, ""]:
        """Whether the player to move has a move. Then it has a build too, on the square just left."""
        targets = (
            self.grid.around(state.own) & ~state.at_least_2
            | self.grid.around(state.own & state.at_least_1) & ~state.at_least_3
            | self.grid.around(state.own & state.at_least_2)
        )
        return (targets & self._free(state)) != 0

    def _with_end(self, state: SantoriniState) -> SantoriniState:
        """The position, terminated if its board ends the game."""
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
    def _symmetry_tables(self) -> tuple[UInt32[np.ndarray, "S squares"], Int32[np.ndarray, "S A"]]:
        """The bit where each square goes, and the action where each action goes if workers keep their numbers."""
        squares, directions = self.grid.symmetries
        moves = (directions[:, :, None] * 8 + directions[:, None]).reshape(len(squares), MOVES)
        permutation = [moves + MOVES * worker for worker in range(self.workers)]
        permutation += [squares + MOVES * self.workers] if self.placement else []
        return self.grid.bits[squares], np.concatenate(permutation, axis=1).astype(np.int32)


def _sum(numbers: list[Int32[Array, ""]]) -> Int32[Array, ""]:
    return sum(numbers[1:], numbers[0])


def _find_interval(
    lengths: list[Int32[Array, "..."]], index: Int32[Array, "*R"]
) -> tuple[Int32[Array, "*R"], Int32[Array, "*R"]]:
    """Which of the intervals laid end to end contains `index`, and its index in that interval."""
    interval, offset = jnp.int32(0), index
    for length in lengths:
        index = index - length
        behind = index >= 0
        interval += behind.astype(jnp.int32)
        offset = jnp.where(behind, index, offset)
    return interval, offset
