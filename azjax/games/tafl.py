"""Tafl: attackers around a king who wants to reach a corner. `brandub` is the 7x7 game.

Player 0 attacks and moves first. Pieces move like rooks. Nobody lands on the castle (the centre), which may be slid
over when it is empty; the king alone enters a corner. Defenders win with the king on a corner, attackers by capturing
him. `TaflRules` tells the rest.

Action = square * D + direction * (size - 1) + distance - 1 with D = 4 * (size - 1) and square = size * row + column;
directions are 0 down, 1 up, 2 right, 3 left. Text: the rows from the top with `/` between, `t` attacker, `T` defender,
`K` king, a number for so many empty squares; a blank; `a` or `d` for the side to move. Moves are `d1-d3`.

Axis letters: `H` positions of the history, `K` slots, `P` pieces of a side at most.
"""

import dataclasses
import functools
import re
import string
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import chex
import jax
import jax.numpy as jnp
import numpy as np

from azjax.games import bitboard
from azjax.games.bitboard import Bits, any_of, both, choose, only_if, shift, single, toggle, union, without
from azjax.games.fusion import computed_once
from azjax.games.game import Game, register, scale_bits, state_dataclass
from azjax.games.pictures.tafl import draw_tafl
from azjax.games.repetition import History, new_history

BRANDUB_START = "3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3"
_SYMBOLS = ".tTK"


@dataclasses.dataclass(frozen=True)
class TaflRules:
    """What tafl players disagree on. The result is looked for in the order of the last five fields.

    Attributes:
      capture: "active": the piece that moved captures the enemies beside it that stand between it and a friend or a
        hostile square, all at once. "trapped": after a move the mover, then the piece above, below, to the left and
        to the right of it, of either side and each on the board as it then is, is removed if both its neighbours on
        a line are bad: an enemy stands there, or the square is hostile, but not both.
      king: "by_castle": he is captured by four on the castle, by the three others beside it, by two elsewhere.
        "by_two": by two everywhere, as a pawn.
      castle_hostile: "when_empty": the empty castle closes a line as an enemy does. "never": it does not. Empty
        corners always do.
      attackers_gone: "defenders_win", or "ignored".
      repetition: "draw": when a position (board and side to move) comes the second time in a game; or "never".
      no_moves: a side to move that has none: "draw", or "loss" for it.
      max_plies: the game is drawn after so many plies, 1 to 65535.
    """

    capture: Literal["active", "trapped"] = "active"
    king: Literal["by_castle", "by_two"] = "by_castle"
    castle_hostile: Literal["when_empty", "never"] = "when_empty"
    attackers_gone: Literal["defenders_win", "ignored"] = "defenders_win"
    repetition: Literal["draw", "never"] = "draw"
    no_moves: Literal["draw", "loss"] = "draw"
    max_plies: int = 512

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value, allowed = getattr(self, field.name), get_args(field.type)
            if allowed and value not in allowed:
                raise ValueError(f"tafl rules: {field.name} must be one of {', '.join(allowed)}, got {value!r}")
        if not (isinstance(self.max_plies, int) and 1 <= self.max_plies < 1 << 16):
            raise ValueError(f"tafl rules: max_plies must be 1..65535, got {self.max_plies!r}")


RULES = {
    "brandub": TaflRules(),
    # The Brandub notebook's, whose test for repetition never fires.
    "seed000": TaflRules(capture="trapped", attackers_gone="ignored", repetition="never"),
}


class Board(NamedTuple):
    """Who stands where; sets of squares."""

    attackers: Bits
    defenders: Bits  # without the king
    king: Bits

    @property
    def occupied(self) -> Bits:
        return union(*self)


@state_dataclass
class TaflState:
    """Attributes: see `azjax.games.game.State`.

    board: the pieces.
    earlier: the boards before it, newest first, as the observation shows them; empty before the start.
    ply: int32 []; moves since the start, or since `from_text`.
    key: uint32 [] twice, the halves of the position's key; None where positions may come back.
    past: the positions since the last capture; None in a position without history.
    """

    board: Board
    earlier: tuple[Board, ...]
    ply: chex.Array
    key: tuple[chex.Array, chex.Array] | None
    past: History | None
    current_player: chex.Array
    terminated: chex.Array
    rewards: chex.Array


@dataclasses.dataclass(frozen=True)
class Tafl(Game):
    """A tafl game.

    Repetition is found by a 64-bit hash of board and side to move. Two positions of one game that differ share it
    with odds of 2^-64: over a million games of 250 plies, all without a capture, that is one wrong draw with odds
    of 8e-10.

    Attributes:
      rules: see `TaflRules`.
      history: boards in an observation, at least 1.
      start: the rows of the start position; square, of odd size.
      name: the registered name.
    """

    rules: TaflRules = TaflRules()
    history: int = 3
    start: str = BRANDUB_START
    name: str = "brandub"

    player_names: ClassVar[tuple[str, str]] = ("the attackers", "the defenders")

    def __post_init__(self) -> None:
        if not (isinstance(self.history, int) and self.history >= 1):
            raise ValueError(f"{self.name}: history must be at least 1, got {self.history!r}")

    # Numbers of the board.

    @functools.cached_property
    def size(self) -> int:
        """Squares of a side."""
        return self.start.count("/") + 1

    @property
    def _reach(self) -> int:
        return self.size - 1

    @property
    def _stride(self) -> int:
        return self.size + 1

    @property
    def _words(self) -> int:
        return bitboard.num_words(self.size * self._stride)

    @property
    def _steps(self) -> tuple[int, int, int, int]:
        """The change of the bit number by one step in each direction."""
        return self._stride, -self._stride, 1, -1

    @functools.cached_property
    def _bits(self) -> np.ndarray:
        """int [size, size]: the bit of each square."""
        side = np.arange(self.size)
        return side[:, None] * self._stride + side

    def _constant(self, squares: Any) -> Bits:
        return bitboard.constant((self._bits[square] for square in squares), self._words)

    @functools.cached_property
    def _all(self) -> Bits:
        return self._constant(np.ndindex(self.size, self.size))

    @functools.cached_property
    def _castle(self) -> Bits:
        return self._constant([(self.size // 2, self.size // 2)])

    @functools.cached_property
    def _corners(self) -> Bits:
        return self._constant((row, column) for row in (0, self.size - 1) for column in (0, self.size - 1))

    @functools.cached_property
    def _by_the_castle(self) -> Bits:
        """The castle and its four neighbours."""
        middle = self.size // 2
        return self._constant(
            [(middle, middle), *((middle + r, middle + c) for r, c in ((1, 0), (-1, 0), (0, 1), (0, -1)))]
        )

    @property
    def num_actions(self) -> int:
        return self.size**2 * 4 * self._reach

    @functools.cached_property
    def _most_pieces(self) -> int:
        """P: pieces are captured and never return."""
        return max(self.start.count("t"), self.start.count("T") + 1)

    @property
    def max_legal_actions(self) -> int:
        # On an empty board each piece has size - 1 squares in its row and as many in its column.
        return self._most_pieces * 2 * self._reach

    @property
    def max_plies(self) -> int:
        return self.rules.max_plies

    @property
    def observation_shape(self) -> tuple[int, ...]:
        return (self.size, self.size, 4 * self.history + 1)

    @property
    def options(self) -> dict[str, Any]:
        name = next((name for name, rules in RULES.items() if rules == self.rules), "brandub")
        fields = {field.name: getattr(self.rules, field.name) for field in dataclasses.fields(self.rules)}
        named = dataclasses.asdict(RULES[name])
        changed = {field: value for field, value in fields.items() if value != named[field]}
        return {"rules": name, "history": self.history, **changed}

    # Play.

    def init(self, key: chex.PRNGKey) -> TaflState:
        del key
        return self._first(self._read_rows(self.start), jnp.int32(0))

    def _first(self, cells: np.ndarray, player: chex.Array) -> TaflState:
        """A position with an empty history, of `cells` int [size, size]."""
        sets = [bitboard.constant(self._bits[cells == piece].tolist(), self._words) for piece in (1, 2, 3)]
        board = Board(*(tuple(jnp.asarray(word) for word in words) for words in sets))
        nowhere = Board(*(bitboard.empty(self._words) for _ in range(3)))
        repeats, key = self.rules.repetition == "draw", self._key(board, player)
        return TaflState(
            board=board,
            earlier=(nowhere,) * (self.history - 1),
            ply=jnp.int32(0),
            key=key if repeats else None,
            past=new_history(self.max_plies, jnp.stack(key)) if repeats else None,
            current_player=player,
            terminated=jnp.bool_(False),
            rewards=jnp.zeros(2, jnp.float32),
        )

    def step(self, state: TaflState, action: chex.Array) -> TaflState:
        attacking = state.current_player == 0
        source, target, legal = self._read_move(state, jnp.asarray(action, jnp.int32))
        legal, source, target = computed_once((legal, only_if(legal, source), only_if(legal, target)))
        moved = self._move(state.board, union(source, target), attacking)
        capture = self._capture_active if self.rules.capture == "active" else self._capture_trapped
        board = capture(moved, target, attacking)
        captured = any_of(toggle(board.occupied, moved.occupied))
        captured, board = computed_once((captured, board))

        player = jnp.where(legal, 1 - state.current_player, state.current_player)
        ply = state.ply + legal.astype(jnp.int32)
        past, repeats = state.past, jnp.bool_(False)
        key = None if state.key is None else self._key(board, player)
        if past is not None and key is not None:
            # A captured piece does not return, so that no position before a capture does.
            repeats, past = past.restart(jnp.stack(key), captured).visit(jnp.stack(key), legal & ~captured)
            repeats &= legal & ~captured

        attackers_win = ~any_of(board.king)
        defenders_win = any_of(both(board.king, self._corners))
        if self.rules.attackers_gone == "defenders_win":
            defenders_win |= ~any_of(board.attackers) & ~attackers_win
        stuck, repeats = computed_once((~self._can_move(board, player == 0), repeats))
        drawn = repeats | (ply >= self.max_plies)
        if self.rules.no_moves == "loss":
            decided = attackers_win | defenders_win | repeats
            attackers_win |= ~decided & stuck & (player == 1)
            defenders_win |= ~decided & stuck & (player == 0)
        else:
            drawn |= stuck
        ended = computed_once(state.terminated | (legal & (attackers_win | defenders_win | drawn)))
        result = jnp.where(attackers_win, 1.0, 0.0) - jnp.where(defenders_win, 1.0, 0.0)
        rewards = jnp.where(legal, result, 0.0) * np.array([1.0, -1.0], np.float32)
        return TaflState(
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

    def _read_move(self, state: TaflState, action: chex.Array) -> tuple[Bits, Bits, chex.Array]:
        """The squares, one bit each, that an action leaves and reaches, and whether it is legal."""
        reach, size, words = self._reach, self.size, self._words
        in_range = (action >= 0) & (action < self.num_actions)
        square, way = jnp.divmod(jnp.where(in_range, action, 0), 4 * reach)
        row, column = jnp.divmod(square, size)
        direction, distance = jnp.divmod(way, reach)
        distance = distance + 1
        signed = jnp.where(direction % 2 == 0, distance, -distance)
        vertical = direction < 2
        new_row = row + jnp.where(vertical, signed, 0)
        new_column = column + jnp.where(vertical, 0, signed)
        on_board = (new_row >= 0) & (new_row < size) & (new_column >= 0) & (new_column < size)
        bit, new_bit = row * self._stride + column, new_row * self._stride + new_column
        source, target = single(bit, words), single(new_bit, words)

        low, high = jnp.minimum(bit, new_bit), jnp.maximum(bit, new_bit)
        between = toggle(bitboard.below(high + 1, words), bitboard.below(low, words))
        a_column = bitboard.constant(self._bits[:, 0].tolist(), words)
        # Left of a column shifted by its number there is nothing in the first row.
        column_bits = _shift_less_than_word(a_column, column)
        line = tuple(jnp.where(vertical, word, np.uint32(0xFFFFFFFF)) for word in column_bits)
        path = without(both(between, line), source)
        board = state.board
        own = choose(state.current_player == 0, board.attackers, union(board.defenders, board.king))
        is_king = any_of(both(source, board.king))
        allowed = ~any_of(both(target, self._castle)) & (is_king | ~any_of(both(target, self._corners)))
        legal = any_of(both(source, own)) & ~any_of(both(path, board.occupied)) & allowed
        return source, target, legal & in_range & on_board & ~state.terminated

    def _move(self, board: Board, change: Bits, attacking: chex.Array) -> Board:
        """The board after the piece on one of the two squares of `change` went to the other."""
        is_king = any_of(both(change, board.king))
        return Board(
            attackers=toggle(board.attackers, only_if(attacking, change)),
            defenders=toggle(board.defenders, only_if(~attacking & ~is_king, change)),
            king=toggle(board.king, only_if(~attacking & is_king, change)),
        )

    def _hostile(self, board: Board) -> Bits:
        """The corners, and the castle unless the king is on it."""
        if self.rules.castle_hostile == "never":
            return self._corners
        return union(self._corners, without(self._castle, board.king))

    def _near(self, board: Board) -> Bits:
        """The king where he is captured by all his neighbours, on the castle or beside it; otherwise nothing."""
        if self.rules.king == "by_two":
            return bitboard.empty(self._words)
        return both(board.king, self._by_the_castle)

    def _surrounded(self, near: Bits, closed: Bits) -> chex.Array:
        """bool []: every neighbour of the king `near` the castle, but the castle itself, is in `closed`."""
        neighbours = union(*(shift(near, step) for step in self._steps))
        return any_of(near) & ~any_of(without(without(neighbours, closed), self._castle))

    def _capture_active(self, board: Board, target: Bits, attacking: chex.Array) -> Board:
        near = self._near(board)
        prey = choose(attacking, union(board.defenders, without(board.king, near)), board.attackers)
        own = choose(attacking, board.attackers, union(board.defenders, board.king))
        closers = union(own, without(self._hostile(board), board.occupied))
        captured = bitboard.empty(self._words)
        for step in self._steps:
            closed = both(shift(both(shift(target, step), prey), step), closers)
            captured = union(captured, shift(closed, -step))
        beside = any_of(both(union(*(shift(near, step) for step in self._steps)), target))
        taken = only_if(attacking & beside & self._surrounded(near, board.attackers), near)
        lost = computed_once(union(captured, taken))
        return Board(*(without(pieces, lost) for pieces in board))

    def _capture_trapped(self, board: Board, target: Bits, attacking: chex.Array) -> Board:
        del attacking
        down, up, right, left = self._steps
        for step in (0, up, down, left, right):
            square = both(shift(target, step), self._all)
            attacker, is_king = any_of(both(square, board.attackers)), any_of(both(square, board.king))
            enemies = choose(
                attacker,
                union(board.defenders, board.king),
                only_if(any_of(both(square, board.occupied)), board.attackers),
            )
            bad = toggle(enemies, self._hostile(board))
            down_bad, up_bad, right_bad, left_bad = (any_of(both(shift(square, step), bad)) for step in self._steps)
            near = self._near(board)
            surrounded = self._surrounded(near, bad)
            on_a_line = (down_bad & up_bad) | (right_bad & left_bad)
            captured = jnp.where(is_king & any_of(near), surrounded, on_a_line)
            board = Board(*(without(pieces, only_if(captured, square)) for pieces in board))
        return board

    def _can_move(self, board: Board, attacking: chex.Array) -> chex.Array:
        """bool []: the side to move has a legal action."""
        pawns = choose(attacking, board.attackers, board.defenders)
        king = only_if(~attacking, board.king)
        free = without(self._all, board.occupied)
        pawn_free = without(free, self._corners)
        found = []
        for step in self._steps:
            pawn_to = both(shift(pawns, step), pawn_free)
            king_to = both(shift(king, step), free)
            over = both(shift(both(union(pawn_to, king_to), self._castle), step), free)
            found.append(union(without(union(pawn_to, king_to), self._castle), over))
        return any_of(union(*found))

    # Repetition.

    def _key(self, board: Board, player: chex.Array) -> tuple[chex.Array, chex.Array]:
        words = [word for pieces in board for word in pieces]
        return bitboard.hash_words([*words, player.astype(jnp.uint32)])

    def position_key(self, state: TaflState) -> chex.Array:
        return jnp.stack(self._key(state.board, state.current_player) if state.key is None else state.key)

    def without_history(self, state: TaflState) -> TaflState:
        return dataclasses.replace(state, past=None)

    def earlier_positions(self, state: TaflState) -> History | None:
        return state.past

    def repeated(self, state: TaflState) -> TaflState:
        return dataclasses.replace(state, terminated=jnp.ones_like(state.terminated))

    def next_game(self, key: chex.PRNGKey, state: TaflState) -> TaflState:
        fresh, past = self.init(key), state.past
        following = jax.tree.map(
            lambda new, old: jnp.where(state.terminated, new, old),
            self.without_history(fresh),
            self.without_history(state),
        )
        return (
            following
            if past is None
            else dataclasses.replace(following, past=past.restart(self.position_key(fresh), state.terminated))
        )

    # Legal actions.

    def _destinations(self, state: TaflState) -> tuple[Bits, list[Bits]]:
        """The mover's pieces, and the squares that some of them may go to, by direction; none after the end."""
        board, attacking = state.board, state.current_player == 0
        running = ~state.terminated
        free = without(self._all, board.occupied)
        pawns = only_if(running, choose(attacking, board.attackers, board.defenders))
        king = only_if(running & ~attacking, board.king)
        pawn_free = without(free, self._corners)
        reached = [
            union(
                bitboard.slide(pawns, pawn_free, step, self._reach),
                bitboard.slide(king, free, step, self._reach),
            )
            for step in self._steps
        ]
        return union(pawns, king), [without(squares, self._castle) for squares in reached]

    def sample_legal_action(self, state: TaflState, bits: chex.Array) -> chex.Array:
        own, destinations = self._destinations(state)
        words = [word for squares in destinations for word in squares]
        counts = [jax.lax.population_count(word).astype(jnp.int32) for word in words]
        total = sum(counts[1:], start=counts[0])
        # In a direction a square is reached by one piece alone, so that a move is a direction and a square.
        index = scale_bits(bits, total)
        chosen, base, step, direction = words[0], jnp.int32(0), jnp.int32(0), jnp.int32(0)
        before = jnp.int32(0)
        skipped = jnp.int32(0)
        for place, (word, count) in enumerate(zip(words, counts, strict=True)):
            here = index >= before
            way, number = divmod(place, self._words)
            chosen = jnp.where(here, word, chosen)
            base = jnp.where(here, number * bitboard.WORD, base)
            step = jnp.where(here, self._steps[way], step)
            direction = jnp.where(here, way, direction)
            skipped = jnp.where(here, before, skipped)
            before = before + count
        target = base + bitboard.nth_bit(chosen, index - skipped)
        distance, source = jnp.int32(self._reach), target
        for steps_back in range(self._reach, 0, -1):
            bit = target - step * steps_back
            # Nearer pieces overrule farther ones.
            found = bitboard.has(own, bit) & (bit >= 0)
            distance = jnp.where(found, steps_back, distance)
            source = jnp.where(found, bit, source)
        row = source // self._stride
        square = source - row
        action = square * (4 * self._reach) + direction * self._reach + distance - 1
        return jnp.where(total > 0, action, 0)

    def _ways(self, occupied: Bits, row: chex.Array, column: chex.Array) -> tuple[chex.Array, chex.Array]:
        """What the squares [n] of these rows and columns, int32 [n], have free around them.

        Returns:
          uint32 [n] twice: down and up, then right and left; bit d - 1 is set where the d squares next to it are
          free, and bit size - 2 + d in the second direction.
        """
        size = self.size

        def free(line: Sequence[chex.Array], place: chex.Array) -> chex.Array:
            bits = np.uint32(1 << size)
            for number, there in enumerate(line):
                bits = bits | jnp.where(there, np.uint32(1 << number), np.uint32(0))
            beyond = bits >> (place + 1).astype(jnp.uint32)
            # The bits below the lowest one.
            return (beyond & (np.uint32(0) - beyond)) - np.uint32(1)

        def both_ways(line: list[chex.Array], place: chex.Array) -> chex.Array:
            return free(line, place) | free(line[::-1], self._reach - place) << np.uint32(self._reach)

        in_column = [bitboard.has(occupied, number * self._stride + column) for number in range(size)]
        in_row = [bitboard.has(occupied, row * self._stride + number) for number in range(size)]
        return both_ways(in_column, row), both_ways(in_row, column)

    @functools.cached_property
    def _landings(self) -> np.ndarray:
        """uint32 [2, 2, squares]: of a pawn and of a king, the `_ways` that end where they may stand."""
        size, reach, middle = self.size, self._reach, self.size // 2
        landings = np.zeros((2, 2, size * size), np.uint32)
        for row, column, direction, distance in np.ndindex(size, size, 4, reach):
            down, right = ((1, 0), (-1, 0), (0, 1), (0, -1))[direction]
            to = (row + down * (distance + 1), column + right * (distance + 1))
            way = np.uint32(1 << (direction % 2 * reach + distance))
            if to != (middle, middle):
                landings[1, direction // 2, row * size + column] |= way
                if not (to[0] in (0, reach) and to[1] in (0, reach)):
                    landings[0, direction // 2, row * size + column] |= way
        return landings

    def legal_action_mask(self, state: TaflState) -> chex.Array:
        board, attacking = state.board, state.current_player == 0
        size, reach = self.size, self._reach
        row, column = (x.ravel().astype(np.int32) for x in np.indices((size, size)))
        pawns = only_if(~state.terminated, choose(attacking, board.attackers, board.defenders))
        king = only_if(~state.terminated & ~attacking, board.king)
        bits = row * self._stride + column
        is_pawn, is_king = bitboard.has(pawns, bits), bitboard.has(king, bits)
        nothing = np.uint32(0)
        vertical, horizontal = computed_once(
            tuple(
                ways & (jnp.where(is_pawn, of_pawn, nothing) | jnp.where(is_king, of_king, nothing))
                for ways, of_pawn, of_king in zip(self._ways(board.occupied, row, column), *self._landings, strict=True)
            )
        )
        way = np.arange(4 * reach, dtype=np.uint32)[None]
        chosen = jnp.where(way < 2 * reach, vertical[:, None], horizontal[:, None])
        return computed_once(chosen >> (way % (2 * reach)) & np.uint32(1) == 1).reshape(-1)

    def legal_slots(self, state: TaflState) -> tuple[chex.Array, chex.Array]:
        """A slot is a column or a row, one of the other squares of it, and the piece (P of them) that goes there."""
        board, attacking = state.board, state.current_player == 0
        size, reach = self.size, self._reach
        own = only_if(~state.terminated, choose(attacking, board.attackers, union(board.defenders, board.king)))
        bits, exists = bitboard.first_bits(own, self._most_pieces)
        exists, bits = computed_once((exists, jnp.where(exists, bits, 0)))
        row, column = jnp.divmod(bits, self._stride)
        square = row * size + column
        landings = jnp.asarray(self._landings).at[:, :, square].get(mode="promise_in_bounds")
        may_land = jnp.where(bitboard.has(board.king, bits), landings[1], landings[0])
        ways = jnp.where(exists, jnp.stack(self._ways(board.occupied, row, column)) & may_land, np.uint32(0))
        ways, row, column = computed_once((ways, row, column))

        # Pieces last: a vector of them is what the machine computes at a time.
        vertical = np.array([True, False])[:, None, None]
        slot = np.arange(reach, dtype=np.int32)[None, :, None]
        row, column = row[None, None], column[None, None]
        # Down or right as far as the edge, then up or left.
        forward = reach - jnp.where(vertical, row, column)
        way = jnp.where(slot < forward, slot, slot - forward + reach)
        valid = (ways[:, None] >> way.astype(jnp.uint32)) & np.uint32(1) == 1
        action = (row * size + column) * (4 * reach) + jnp.where(vertical, way, way + 2 * reach)
        # Apart from the reshaping, which costs divisions for each element where it is fused with something.
        valid, action = computed_once((valid, jnp.where(valid, action, 0)))
        return action.reshape(-1), valid.reshape(-1)

    # Views.

    def cells(self, state: TaflState) -> chex.Array:
        """int32 [size * size]: 0 empty, 1 attacker, 2 defender, 3 king, row-major from the top left."""
        pieces = bitboard.unpack(state.board, self._bits.ravel())
        return jnp.sum(pieces * np.array([1, 2, 3], np.int32), axis=1, dtype=jnp.int32)

    def observe(self, state: TaflState) -> chex.Array:
        """Of each board, newest first: mover's pawns, mover's king, other's pawns, other's king; then 1 for attackers.

        Older boards are seen by today's mover too (Silver et al. 2017, Methods, "Neural network architecture").
        """
        attacking = state.current_player == 0
        nobody = bitboard.empty(self._words)
        planes = []
        for board in (state.board, *state.earlier):
            planes += [
                choose(attacking, board.attackers, board.defenders),
                choose(attacking, nobody, board.king),
                choose(attacking, board.defenders, board.attackers),
                choose(attacking, board.king, nobody),
            ]
        planes.append(only_if(attacking, self._all))
        views = computed_once(bitboard.unpack(planes, self._bits.ravel()))
        return views.reshape(self.observation_shape).astype(jnp.float32)

    def symmetries(self, state: TaflState) -> tuple[TaflState, chex.Array]:
        permutation, inverse = self._symmetry_tables
        flat = self._bits.ravel()

        def turn(bits: Bits) -> Bits:
            squares = bitboard.unpack((bits,), flat)[:, 0]
            return jax.vmap(lambda cells: bitboard.pack(cells, flat, self._words))(squares[inverse])

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

    @functools.cached_property
    def _symmetry_tables(self) -> tuple[np.ndarray, np.ndarray]:
        """int32 [8, A] where each action goes, and int32 [8, squares] which square comes from where."""
        size, reach = self.size, self._reach
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

    # Text.

    def to_text(self, state: TaflState) -> str:
        cells = np.asarray(self.cells(state)).reshape(self.size, self.size)
        rows = ("".join(_SYMBOLS[cell] for cell in row) for row in cells)
        rows = (re.sub(r"\.+", lambda run: str(len(run[0])), row) for row in rows)
        return "/".join(rows) + " " + "ad"[int(state.current_player)]

    def from_text(self, text: str) -> TaflState:
        rows, blank, side = text.partition(" ")
        if not blank or side not in ("a", "d"):
            got = f"{side!r}" if blank else "nothing"
            raise ValueError(f"{self.name}: {text!r} must end with a blank and the side to move, a or d; got {got}")
        cells = self._read_rows(rows)
        self._refuse_impossible(cells, side, text)
        state = self._first(cells, jnp.int32("ad".index(side)))
        board = state.board
        result = 1.0 if not any_of(board.king) else -1.0 if any_of(both(board.king, self._corners)) else 0.0
        if self.rules.attackers_gone == "defenders_win" and not any_of(board.attackers):
            result = -1.0
        over = result != 0
        if not over and not self._can_move(board, jnp.bool_(side == "a")):
            over = True
            if self.rules.no_moves == "loss":
                result = -1.0 if side == "a" else 1.0
        return dataclasses.replace(
            state, terminated=jnp.bool_(over), rewards=jnp.array([result, -result], jnp.float32) + 0.0
        )

    def _read_rows(self, text: str) -> np.ndarray:
        """int [size, size] cells of the rows of a text; squares are checked one by one, the position is not."""
        rows = text.split("/")
        if len(rows) != self.size:
            raise ValueError(f"{self.name}: a position has {self.size} rows with / between, got {len(rows)}: {text!r}")
        cells = np.zeros((self.size, self.size), int)
        place = 0
        for number, row in enumerate(rows, start=1):
            column = 0
            for symbol in row:
                place += 1
                if symbol in _SYMBOLS[1:]:
                    if column < self.size:
                        cells[number - 1, column] = _SYMBOLS.index(symbol)
                    column += 1
                elif symbol in string.digits[1:]:
                    column += int(symbol)
                else:
                    raise ValueError(
                        f"{self.name}: character {place} of {text!r} is {symbol!r}; allowed: t, T, K and 1..{self.size}"
                    )
            if column != self.size:
                raise ValueError(f"{self.name}: row {number} of {text!r} has {column} squares instead of {self.size}")
            place += 1
        return cells

    def _refuse_impossible(self, cells: np.ndarray, side: str, text: str) -> None:
        middle, edge = self.size // 2, (0, self.size - 1)
        for piece, people, most in zip((1, 2, 3), ("attackers", "defenders", "kings"), self._start_counts, strict=True):
            if (cells == piece).sum() > most:
                raise ValueError(
                    f"{self.name}: {text!r} has {(cells == piece).sum()} {people}, at most {most} are possible"
                )
        for row, column in (*((r, c) for r in edge for c in edge), (middle, middle)):
            if cells[row, column] in (1, 2):
                square = "castle" if row == middle else "corner"
                raise ValueError(
                    f"{self.name}: {_SYMBOLS[cells[row, column]]} stands on {self._square_name(row * self.size + column)} "
                    f"in {text!r}, and the king alone may stand on the {square}"
                )
        king, attackers = (cells == 3).any(), (cells == 1).any()
        escaped = any(cells[row, column] == 3 for row in edge for column in edge)
        for impossible, why in (
            (not king and not attackers, "has neither king nor attackers"),
            (not king and side == "a", "has no king, so the attackers moved last, and d is to move"),
            (escaped and side == "d", "has the king on a corner, so the defenders moved last, and a is to move"),
            (not attackers and side == "d", "has no attackers, so the defenders moved last, and a is to move"),
        ):
            if impossible:
                raise ValueError(f"{self.name}: {text!r} {why}")

    @property
    def _start_counts(self) -> tuple[int, int, int]:
        return self.start.count("t"), self.start.count("T"), 1

    def _square_name(self, square: int) -> str:
        row, column = divmod(square, self.size)
        return f"{string.ascii_lowercase[column]}{self.size - row}"

    def action_squares(self, state: TaflState, action: int) -> tuple[int, ...]:
        del state
        square, way = divmod(int(action), 4 * self._reach)
        direction, distance = divmod(way, self._reach)
        step = (self.size, -self.size, 1, -1)[direction]
        return square, square + step * (distance + 1)

    def action_to_text(self, state: TaflState, action: int) -> str:
        return "-".join(self._square_name(square) for square in self.action_squares(state, action))

    def draw(self, state: TaflState) -> str:
        rows = np.asarray(self.cells(state)).reshape(self.size, self.size)
        middle = self.size // 2
        empty = np.full(rows.shape, ".")
        empty[middle, middle] = empty[0, 0] = empty[0, -1] = empty[-1, 0] = empty[-1, -1] = "x"
        lines = [
            f"{self.size - number:>2}  "
            + " ".join(_SYMBOLS[c] if c else blank for c, blank in zip(row, blanks, strict=True))
            for number, (row, blanks) in enumerate(zip(rows, empty, strict=True))
        ]
        return "\n".join([*lines, "    " + " ".join(string.ascii_lowercase[: self.size])])

    def svg(self, state: TaflState, *, policy: Any = None, last_action: int | None = None) -> str:
        cells = np.asarray(self.cells(state)).reshape(self.size, self.size)
        return draw_tafl(self, state, cells, policy, last_action)


def _shift_less_than_word(bits: Bits, distance: chex.Array) -> Bits:
    """Every bit moved up by int32 [] `distance`, 0..31."""
    distance = distance.astype(jnp.uint32)
    carried = tuple(
        # In two steps, since a shift by a whole word is not defined.
        (word >> np.uint32(1)) >> (np.uint32(bitboard.WORD - 1) - distance)
        for word in bits
    )
    return tuple(
        (word << distance) | (carried[number - 1] if number else np.uint32(0)) for number, word in enumerate(bits)
    )


@register("brandub")
def brandub(
    rules: Literal["brandub", "seed000"] = "brandub",
    history: int = 3,
    capture: Literal["active", "trapped"] | None = None,
    king: Literal["by_castle", "by_two"] | None = None,
    castle_hostile: Literal["when_empty", "never"] | None = None,
    attackers_gone: Literal["defenders_win", "ignored"] | None = None,
    repetition: Literal["draw", "never"] | None = None,
    no_moves: Literal["draw", "loss"] | None = None,
    max_plies: int | None = None,
) -> Tafl:
    """Brandub, 7x7. `rules` names a set of rules; the other options change one of them each."""
    if rules not in RULES:
        raise ValueError(f"brandub: rules must be one of {', '.join(RULES)}, got {rules!r}")
    changes = {
        "capture": capture,
        "king": king,
        "castle_hostile": castle_hostile,
        "attackers_gone": attackers_gone,
        "repetition": repetition,
        "no_moves": no_moves,
        "max_plies": max_plies,
    }
    given = {field: value for field, value in changes.items() if value is not None}
    return Tafl(dataclasses.replace(RULES[rules], **given), history)
