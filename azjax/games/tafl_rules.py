"""The rules of tafl as array functions; see `tafl.py`, and `tafl_board.py` for the moves.

Axis letters: `A` actions, `K` slots of the table of legal actions.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float32, Int, Int32, PRNGKeyArray, UInt32

from azjax.core import bitboard
from azjax.core.bitboard import Bits, any_of, both, choose, only_if, shift, toggle, union, without
from azjax.core.bits import hash_words
from azjax.core.errors import InputError
from azjax.core.pytree import pytree_dataclass, replace_fields, static_field
from azjax.core.whole_numbers import set_whole
from azjax.core.xla import materialize
from azjax.games.game import Game
from azjax.games.protocols import RepetitionGame
from azjax.games.repetition import History, new_history
from azjax.games.tafl_board import MAX_SIZE, Board, Grid
from azjax.games.tafl_options import TaflRules

BRANDUB_START = "3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3"
MAX_HISTORY = 64


@pytree_dataclass
class TaflState:
    """A position.

    Attributes:
      board: the pieces.
      earlier: the boards before it, newest first, as the observation shows them; empty before the start.
      ply: moves since the start, or since `from_text`.
      key: the halves of the position's key; None if the rules ignore repetition.
      past: the positions since the last capture; None in a position without history.
    """

    game: "PlainTafl" = static_field(kw_only=True, repr=False)
    board: Board
    earlier: tuple[Board, ...]
    ply: Int32[Array, "*B"]
    key: tuple[UInt32[Array, "*B"], UInt32[Array, "*B"]] | None
    past: History | None
    current_player: Int32[Array, "*B"]
    terminated: Bool[Array, "*B"]
    rewards: Float32[Array, "*B 2"]


@dataclasses.dataclass(frozen=True)
class PlainTafl(Game[TaflState], RepetitionGame[TaflState]):
    """Tafl as array functions: the contract of a game, and repetition.

    Repetition is found by a 64-bit hash of board and side to move. Two positions that differ share it with odds of
    2^-64, and positions are compared with those since the last capture: over a million games of 150 plies, even if
    none had a capture (11,175 pairs a game), the odds of one wrong draw are 6e-10.

    Attributes:
      rules: see `TaflRules`.
      history: boards in an observation, 1..64.
      start: the rows of the start position; square, of odd size.
      name: the registered name.
    """

    rules: TaflRules = dataclasses.field(default_factory=TaflRules)
    history: int = 3
    start: str = BRANDUB_START
    name: str = "brandub"

    def __post_init__(self) -> None:
        set_whole(self, self.name, "history", range(1, MAX_HISTORY + 1))
        if not (self.size % 2 and 3 <= self.size <= MAX_SIZE):
            raise InputError(f"{self.name}: a board has an odd number of rows, 3..{MAX_SIZE}, got {self.size}")

    @functools.cached_property
    def grid(self) -> Grid:
        """The board and the moves on it."""
        return Grid(self.size, self.rules.escape, self.rules.castle, self.rules.longest_move)

    @functools.cached_property
    def size(self) -> int:
        """Squares of a side."""
        return self.start.count("/") + 1

    @property
    def num_actions(self) -> int:
        return self.size**2 * 4 * self.grid.reach

    @functools.cached_property
    def _most_pieces(self) -> int:
        """P: pieces are captured and never return."""
        return max(self.start.count("t"), self.start.count("T") + 1)

    @property
    def max_legal_actions(self) -> int:
        # On an empty board each piece has size - 1 squares in its row and as many in its column.
        # As many are in the table of them, whatever the longest move.
        return self._most_pieces * 2 * self.grid.reach

    @property
    def max_plies(self) -> int:
        return self.rules.max_plies

    @property
    def repetitions(self) -> int:  # type: ignore[override]
        return self.rules.repetitions

    @property
    def observation_shape(self) -> tuple[int, ...]:
        return (self.size, self.size, 4 * self.history + 1)

    # Play.

    def init(self, key: PRNGKeyArray) -> TaflState:
        del key
        return self._first(self.grid.read_rows(self.start, self.name), jnp.int32(0))

    def _first(self, cells: Int[np.ndarray, "size size"], player: Int32[Array, ""]) -> TaflState:
        sets = [bitboard.constant(self.grid.bits[cells == piece].tolist(), self.grid.words) for piece in (1, 2, 3)]
        return self.first(Board(*(tuple(jnp.asarray(word) for word in words) for words in sets)), player)

    def first(self, board: Board, player: Int32[Array, ""]) -> TaflState:
        """An unfinished position with an empty history."""
        nowhere = Board(*(bitboard.empty(self.grid.words) for _ in range(3)))
        repeats, key = self.rules.repetition == "draw", self._key(board, player)
        return TaflState(
            game=self,
            board=board,
            earlier=(nowhere,) * (self.history - 1),
            ply=jnp.int32(0),
            key=key if repeats else None,
            past=new_history(self.max_plies, jnp.stack(key)) if repeats else None,
            current_player=player,
            terminated=jnp.bool_(False),
            rewards=jnp.zeros(2, jnp.float32),
        )

    def step(self, state: TaflState, action: Int[ArrayLike, ""]) -> TaflState:
        attacking = state.current_player == 0
        source, target, legal = self.grid.read_move(state.board, attacking, jnp.asarray(action, jnp.int32))
        legal &= ~state.terminated
        legal, source, target = materialize((legal, only_if(legal, source), only_if(legal, target)))
        moved = self.moved(state.board, union(source, target), attacking)
        capture = self._capture_active if self.rules.capture == "active" else self._capture_trapped
        board = capture(moved, target, attacking)
        captured = any_of(toggle(board.occupied, moved.occupied))
        captured, board = materialize((captured, board))

        player = jnp.where(legal, 1 - state.current_player, state.current_player)
        ply = state.ply + legal.astype(jnp.int32)
        past, repeats = state.past, jnp.bool_(False)
        key = None if state.key is None else self._key(board, player)
        if past is not None and key is not None:
            # A captured piece does not return, and so no position before a capture.
            past = past.restart(jnp.stack(key), captured)
            repeats, past = past.visit(jnp.stack(key), legal & ~captured, self.repetitions)
            repeats &= legal & ~captured

        attackers_win = ~any_of(board.king)
        defenders_win = any_of(both(board.king, self.grid.goals))
        if self.rules.attackers_gone == "defenders_win":
            defenders_win |= ~any_of(board.attackers) & ~attackers_win
        if self.rules.encirclement == "attackers_win":
            attackers_win |= ~defenders_win & self.encircled(board)
        stuck, repeats = materialize((~self.grid.can_move(board, player == 0), repeats))
        drawn = repeats | (ply >= self.max_plies)
        if self.rules.no_moves == "loss":
            decided = attackers_win | defenders_win | repeats
            attackers_win |= ~decided & stuck & (player == 1)
            defenders_win |= ~decided & stuck & (player == 0)
        else:
            drawn |= stuck
        ended = materialize(state.terminated | (legal & (attackers_win | defenders_win | drawn)))
        result = jnp.where(attackers_win, 1.0, 0.0) - jnp.where(defenders_win, 1.0, 0.0)
        rewards = jnp.where(legal, result, 0.0) * np.array([1.0, -1.0], np.float32)
        return TaflState(
            game=self,
            board=board,
            earlier=jax.tree.map(
                lambda new, old: jnp.where(legal, new, old),
                (state.board, *state.earlier)[: len(state.earlier)],
                state.earlier,
            ),
            ply=ply,
            key=key,
            past=past,
            current_player=player,
            terminated=ended,
            rewards=rewards.astype(jnp.float32) + 0.0,
        )

    def moved(self, board: Board, change: Bits, attacking: Bool[Array, ""]) -> Board:
        """The board after the piece on one of the two squares of `change` went to the other."""
        is_king = any_of(both(change, board.king))
        return Board(
            attackers=toggle(board.attackers, only_if(attacking, change)),
            defenders=toggle(board.defenders, only_if(~attacking & ~is_king, change)),
            king=toggle(board.king, only_if(~attacking & is_king, change)),
        )

    def _hostile(self, board: Board) -> Bits:
        """The corners to which the king escapes, empty or not, and the castle if it is empty and hostile."""
        hostile = bitboard.empty(self.grid.words)
        if self.rules.escape == "corners":
            hostile = self.grid.corners
        if self.rules.castle_hostile == "when_empty":
            hostile = union(hostile, self._empty_castle(board))
        return hostile

    def _empty_castle(self, board: Board) -> Bits:
        """The castle, if nobody stands on it; pawns do only where it is for anyone."""
        return without(self.grid.castle, board.occupied if self.rules.castle == "anyone" else board.king)

    def _near(self, board: Board) -> Bits:
        """The king where he is captured by all his neighbors; otherwise nothing."""
        if self.rules.king == "by_two":
            return bitboard.empty(self.grid.words)
        return both(board.king, self.grid.by_the_castle) if self.rules.king == "by_castle" else board.king

    def _surrounded(self, board: Board, near: Bits, closed: Bits) -> Bool[Array, ""]:
        """Whether `closed`, with the empty castle where it counts, has every neighbor of the king `near`."""
        castle = self._empty_castle(board)
        neighbors = union(*(shift(near, step) for step in self.grid.steps))
        if self.rules.king == "by_castle":
            return any_of(near) & ~any_of(without(without(neighbors, closed), castle))
        inside = any_of(without(near, self.grid.edge))
        if self.rules.castle_hostile == "when_empty":
            closed = union(closed, castle)
        return inside & ~any_of(without(neighbors, closed))

    def _capture_active(self, board: Board, target: Bits, attacking: Bool[Array, ""]) -> Board:
        near = self._near(board)
        prey = choose(attacking, union(board.defenders, without(board.king, near)), board.attackers)
        armed = self.rules.king_captures == "armed"
        own = choose(attacking, board.attackers, union(board.defenders, board.king) if armed else board.defenders)
        closers = union(own, without(self._hostile(board), board.occupied))
        captured = bitboard.empty(self.grid.words)
        for step in self.grid.steps:
            closed = both(shift(both(shift(target, step), prey), step), closers)
            captured = union(captured, shift(closed, -step))
        if not armed:
            captured = only_if(~any_of(both(target, board.king)), captured)
        beside = any_of(both(union(*(shift(near, step) for step in self.grid.steps)), target))
        taken = only_if(attacking & beside & self._surrounded(board, near, board.attackers), near)
        lost = materialize(union(captured, taken))
        return Board(*(without(pieces, lost) for pieces in board))

    def _capture_trapped(self, board: Board, target: Bits, attacking: Bool[Array, ""]) -> Board:
        del attacking
        down, up, right, left = self.grid.steps
        for step in (0, up, down, left, right):
            square = both(shift(target, step), self.grid.all)
            attacker, is_king = any_of(both(square, board.attackers)), any_of(both(square, board.king))
            armed = self.rules.king_captures == "armed"
            enemies = choose(
                attacker,
                union(board.defenders, board.king) if armed else board.defenders,
                only_if(any_of(both(square, board.occupied)), board.attackers),
            )
            bad = toggle(enemies, self._hostile(board))
            down_bad, up_bad, right_bad, left_bad = (any_of(both(shift(square, step), bad)) for step in self.grid.steps)
            near = self._near(board)
            surrounded = self._surrounded(board, near, bad)
            on_a_line = (down_bad & up_bad) | (right_bad & left_bad)
            captured = jnp.where(is_king & any_of(near), surrounded, on_a_line)
            board = Board(*(without(pieces, only_if(captured, square)) for pieces in board))
        return board

    def encircled(self, board: Board) -> Bool[Array, ""]:
        """Whether attackers cut the king and all defenders off the edge."""
        inside = without(self.grid.all, board.attackers)
        enclosed = union(board.defenders, board.king)

        def grow(area: Bits) -> Bits:
            return both(inside, union(area, *(shift(area, step) for step in self.grid.steps)))

        def body(carry: tuple[Bits, Bool[Array, ""]]) -> tuple[Bits, Bool[Array, ""]]:
            area, _ = carry
            grown = grow(grow(area))
            free = any_of(both(grown, enclosed))
            return grown, any_of(toggle(grown, area)) & ~free

        begins = any_of(enclosed)  # in the type of the loop under `jax.shard_map`
        from_outside, _ = jax.lax.while_loop(lambda carry: carry[1], body, (both(inside, self.grid.edge), begins))
        return ~any_of(both(from_outside, enclosed))

    # Repetition.

    def _key(self, board: Board, player: Int32[Array, "..."]) -> tuple[UInt32[Array, ""], UInt32[Array, ""]]:
        words = [word for pieces in board for word in pieces]
        return hash_words([*words, player.astype(jnp.uint32)])

    def position_key(self, state: TaflState) -> UInt32[Array, "2"]:
        return jnp.stack(self._key(state.board, state.current_player) if state.key is None else state.key)

    def without_history(self, state: TaflState) -> TaflState:
        return replace_fields(state, past=None)

    def with_empty_history(self, state: TaflState) -> TaflState:
        past = None if state.key is None else new_history(self.max_plies, self.position_key(state))
        return replace_fields(state, past=past)

    def earlier_positions(self, state: TaflState) -> History | None:
        return state.past

    def repeated(self, state: TaflState) -> TaflState:
        return dataclasses.replace(state, terminated=jnp.ones_like(state.terminated))

    def with_max_plies(self, max_plies: int) -> "PlainTafl":
        return dataclasses.replace(self, rules=dataclasses.replace(self.rules, max_plies=max_plies))

    def next_game(self, key: PRNGKeyArray, state: TaflState) -> TaflState:
        fresh, past = self.init(key), state.past
        following = jax.tree.map(
            lambda new, old: jnp.where(state.terminated, new, old),
            self.without_history(fresh),
            self.without_history(state),
        )
        if past is not None:
            past = past.restart(self.position_key(fresh), state.terminated)
        renewed: TaflState = dataclasses.replace(following, past=past)
        return renewed

    # Legal actions. After the end there are none, of a board without pieces.

    def _in_play(self, state: TaflState) -> tuple[Board, Bool[Array | np.ndarray | np.bool_, ""]]:
        return Board(*(only_if(~state.terminated, pieces) for pieces in state.board)), state.current_player == 0

    def sample_legal_action(self, state: TaflState, bits: UInt32[Array, ""]) -> Int32[Array, ""]:
        return self.grid.sample(*self._in_play(state), bits)

    def legal_action_mask(self, state: TaflState) -> Bool[Array, "A"]:
        return self.grid.mask(*self._in_play(state))

    def legal_slots(self, state: TaflState) -> tuple[Int32[Array, "K"], Bool[Array, "K"]]:
        return self.grid.slots(*self._in_play(state), self._most_pieces)

    # Views.

    def cells(self, state: TaflState) -> Int32[Array, "squares"]:
        """0 empty, 1 attacker, 2 defender, 3 king, row-major from the top left."""
        pieces = bitboard.unpack(state.board, self.grid.bits.ravel())
        return jnp.sum(pieces * np.array([[1, 2, 3]], np.int32), axis=1, dtype=jnp.int32)

    def observe(self, state: TaflState) -> Float32[Array, "size size planes"]:
        """For each board, newest first: mover's pawns and king, the other's pawns and king; last, 1 for attackers.

        Older boards are from the view of the present mover (Silver et al. 2017, Methods, "Neural network
        architecture").
        """
        attacking = state.current_player == 0
        empty = bitboard.empty(self.grid.words)
        planes = []
        for board in (state.board, *state.earlier):
            planes += [
                choose(attacking, board.attackers, board.defenders),
                choose(attacking, empty, board.king),
                choose(attacking, board.defenders, board.attackers),
                choose(attacking, board.king, empty),
            ]
        planes.append(only_if(attacking, self.grid.all))
        views = materialize(bitboard.unpack(planes, self.grid.bits.ravel()))
        return views.reshape(self.observation_shape).astype(jnp.float32)

    def symmetries(self, state: TaflState) -> tuple[TaflState, Int32[Array, "8 A"]]:
        permutation, inverse = self.grid.symmetry_tables
        flat = self.grid.bits.ravel()

        def turn(bits: Bits) -> Bits:
            squares = bitboard.unpack((bits,), flat)[:, 0]
            return jax.vmap(lambda cells: bitboard.pack(cells, flat, self.grid.words))(squares[inverse])

        def turn_board(board: Board) -> Board:
            return Board(*(turn(pieces) for pieces in board))

        images = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (8, *leaf.shape)), state)
        board = turn_board(state.board)
        images = dataclasses.replace(
            images,
            board=board,
            earlier=tuple(turn_board(earlier) for earlier in state.earlier),
            key=None if state.key is None else jax.vmap(self._key)(board, images.current_player),
        )
        return images, jnp.asarray(permutation)
