"""Tafl: attackers around a king who wants to reach a corner. `brandub` is the 7x7 game.

Player 0 attacks and moves first. Defenders win with the king on a corner, attackers by capturing him. Moves and
actions are told in `tafl_board.py`, the rest by `TaflRules`.

Text: the rows from the top with `/` between, `t` attacker, `T` defender, `K` king, a number for so many empty squares;
a blank; `a` or `d` for the side to move. Moves are `d1-d3`.
"""

import dataclasses
import functools
import re
import string
from typing import Any, ClassVar, Literal, get_args

import chex
import jax
import jax.numpy as jnp
import numpy as np

from azjax.core import bitboard
from azjax.core.bitboard import Bits, any_of, both, choose, only_if, shift, toggle, union, without
from azjax.core.errors import InputError
from azjax.core.pytree import pytree_dataclass, static_field
from azjax.core.xla import materialize
from azjax.games.game import Game
from azjax.games.protocols import BoardGame, EditableGame, RepetitionGame, TextGame, square_name
from azjax.games.registry import register
from azjax.games.repetition import History, new_history
from azjax.games.tafl_board import Board, Grid

BRANDUB_START = "3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3"
_SYMBOLS = ".tTK"


@dataclasses.dataclass(frozen=True)
class TaflRules:
    """What tafl players disagree on.

    The result is looked for in this order: king captured, king on a corner, then as in the last four fields.

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
                raise InputError(f"tafl rules: {field.name} must be one of {', '.join(allowed)}, got {value!r}")
        if not (isinstance(self.max_plies, int) and 1 <= self.max_plies < 1 << 16):
            raise InputError(f"tafl rules: max_plies must be 1..65535, got {self.max_plies!r}")


RULES = {
    "brandub": TaflRules(),
    # The Brandub notebook's, whose test for repetition never fires.
    "seed000": TaflRules(capture="trapped", attackers_gone="ignored", repetition="never"),
}


@pytree_dataclass
class TaflState:
    """Attributes: see `azjax.games.game.State`.

    board: the pieces.
    earlier: the boards before it, newest first, as the observation shows them; empty before the start.
    ply: int32 []; moves since the start, or since `from_text`.
    key: uint32 [] twice, the halves of the position's key; None where positions may come back.
    past: the positions since the last capture; None in a position without history.
    """

    game: Game = static_field(kw_only=True, repr=False)
    board: Board
    earlier: tuple[Board, ...]
    ply: chex.Array
    key: tuple[chex.Array, chex.Array] | None
    past: History | None
    current_player: chex.Array
    terminated: chex.Array
    rewards: chex.Array


@dataclasses.dataclass(frozen=True)
class Tafl(
    Game[TaflState], TextGame[TaflState], BoardGame[TaflState], EditableGame[TaflState], RepetitionGame[TaflState]
):
    """A tafl game.

    Repetition is found by a 64-bit hash of board and side to move. Two positions that differ share it with odds of
    2^-64, and positions are compared with those since the last capture: over a million games of 150 plies, even if
    none had a capture (11,175 pairs a game), the odds of one wrong draw are 6e-10.

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
    piece_names: ClassVar[tuple[str, ...]] = ("nothing", "attacker", "defender", "king")
    piece_letters: ClassVar[tuple[str, str]] = ("t", "TK")

    def __post_init__(self) -> None:
        if not (isinstance(self.history, int) and self.history >= 1):
            raise InputError(f"{self.name}: history must be at least 1, got {self.history!r}")

    @functools.cached_property
    def grid(self) -> Grid:
        """The board and the moves on it."""
        return Grid(self.size)

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
        return self._most_pieces * 2 * self.grid.reach

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
        sets = [bitboard.constant(self.grid.bits[cells == piece].tolist(), self.grid.words) for piece in (1, 2, 3)]
        board = Board(*(tuple(jnp.asarray(word) for word in words) for words in sets))
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

    def step(self, state: TaflState, action: chex.Array) -> TaflState:
        attacking = state.current_player == 0
        source, target, legal = self.grid.read_move(state.board, attacking, jnp.asarray(action, jnp.int32))
        legal &= ~state.terminated
        legal, source, target = materialize((legal, only_if(legal, source), only_if(legal, target)))
        moved = self._move(state.board, union(source, target), attacking)
        capture = self._capture_active if self.rules.capture == "active" else self._capture_trapped
        board = capture(moved, target, attacking)
        captured = any_of(toggle(board.occupied, moved.occupied))
        captured, board = materialize((captured, board))

        player = jnp.where(legal, 1 - state.current_player, state.current_player)
        ply = state.ply + legal.astype(jnp.int32)
        past, repeats = state.past, jnp.bool_(False)
        key = None if state.key is None else self._key(board, player)
        if past is not None and key is not None:
            # A captured piece does not return, so that no position before a capture does.
            repeats, past = past.restart(jnp.stack(key), captured).visit(jnp.stack(key), legal & ~captured)
            repeats &= legal & ~captured

        attackers_win = ~any_of(board.king)
        defenders_win = any_of(both(board.king, self.grid.corners))
        if self.rules.attackers_gone == "defenders_win":
            defenders_win |= ~any_of(board.attackers) & ~attackers_win
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
            return self.grid.corners
        return union(self.grid.corners, without(self.grid.castle, board.king))

    def _near(self, board: Board) -> Bits:
        """The king where he is captured by all his neighbours, on the castle or beside it; otherwise nothing."""
        if self.rules.king == "by_two":
            return bitboard.empty(self.grid.words)
        return both(board.king, self.grid.by_the_castle)

    def _surrounded(self, near: Bits, closed: Bits) -> chex.Array:
        """bool []: every neighbour of the king `near` the castle, but the castle itself, is in `closed`."""
        neighbours = union(*(shift(near, step) for step in self.grid.steps))
        return any_of(near) & ~any_of(without(without(neighbours, closed), self.grid.castle))

    def _capture_active(self, board: Board, target: Bits, attacking: chex.Array) -> Board:
        near = self._near(board)
        prey = choose(attacking, union(board.defenders, without(board.king, near)), board.attackers)
        own = choose(attacking, board.attackers, union(board.defenders, board.king))
        closers = union(own, without(self._hostile(board), board.occupied))
        captured = bitboard.empty(self.grid.words)
        for step in self.grid.steps:
            closed = both(shift(both(shift(target, step), prey), step), closers)
            captured = union(captured, shift(closed, -step))
        beside = any_of(both(union(*(shift(near, step) for step in self.grid.steps)), target))
        taken = only_if(attacking & beside & self._surrounded(near, board.attackers), near)
        lost = materialize(union(captured, taken))
        return Board(*(without(pieces, lost) for pieces in board))

    def _capture_trapped(self, board: Board, target: Bits, attacking: chex.Array) -> Board:
        del attacking
        down, up, right, left = self.grid.steps
        for step in (0, up, down, left, right):
            square = both(shift(target, step), self.grid.all)
            attacker, is_king = any_of(both(square, board.attackers)), any_of(both(square, board.king))
            enemies = choose(
                attacker,
                union(board.defenders, board.king),
                only_if(any_of(both(square, board.occupied)), board.attackers),
            )
            bad = toggle(enemies, self._hostile(board))
            down_bad, up_bad, right_bad, left_bad = (any_of(both(shift(square, step), bad)) for step in self.grid.steps)
            near = self._near(board)
            surrounded = self._surrounded(near, bad)
            on_a_line = (down_bad & up_bad) | (right_bad & left_bad)
            captured = jnp.where(is_king & any_of(near), surrounded, on_a_line)
            board = Board(*(without(pieces, only_if(captured, square)) for pieces in board))
        return board

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

    def with_max_plies(self, max_plies: int) -> "Tafl":
        return dataclasses.replace(self, rules=dataclasses.replace(self.rules, max_plies=max_plies))

    def next_game(self, key: chex.PRNGKey, state: TaflState) -> TaflState:
        fresh, past = self.init(key), state.past
        following = jax.tree.map(
            lambda new, old: jnp.where(state.terminated, new, old),
            self.without_history(fresh),
            self.without_history(state),
        )
        if past is not None:
            past = past.restart(self.position_key(fresh), state.terminated)
        return dataclasses.replace(following, past=past)

    # Legal actions. After the end there are none: nobody is on the board then.

    def _in_play(self, state: TaflState) -> tuple[Board, chex.Array]:
        return Board(*(only_if(~state.terminated, pieces) for pieces in state.board)), state.current_player == 0

    def sample_legal_action(self, state: TaflState, bits: chex.Array) -> chex.Array:
        return self.grid.sample(*self._in_play(state), bits)

    def legal_action_mask(self, state: TaflState) -> chex.Array:
        return self.grid.mask(*self._in_play(state))

    def legal_slots(self, state: TaflState) -> tuple[chex.Array, chex.Array]:
        return self.grid.slots(*self._in_play(state), self._most_pieces)

    # Views.

    def cells(self, state: TaflState) -> chex.Array:
        """int32 [size * size]: 0 empty, 1 attacker, 2 defender, 3 king, row-major from the top left."""
        pieces = bitboard.unpack(state.board, self.grid.bits.ravel())
        return jnp.sum(pieces * np.array([[1, 2, 3]], np.int32), axis=1, dtype=jnp.int32)

    def observe(self, state: TaflState) -> chex.Array:
        """Of each board, newest first: mover's pawns, mover's king, other's pawns, other's king; then 1 for attackers.

        Older boards are seen by today's mover too (Silver et al. 2017, Methods, "Neural network architecture").
        """
        attacking = state.current_player == 0
        nobody = bitboard.empty(self.grid.words)
        planes = []
        for board in (state.board, *state.earlier):
            planes += [
                choose(attacking, board.attackers, board.defenders),
                choose(attacking, nobody, board.king),
                choose(attacking, board.defenders, board.attackers),
                choose(attacking, board.king, nobody),
            ]
        planes.append(only_if(attacking, self.grid.all))
        views = materialize(bitboard.unpack(planes, self.grid.bits.ravel()))
        return views.reshape(self.observation_shape).astype(jnp.float32)

    def symmetries(self, state: TaflState) -> tuple[TaflState, chex.Array]:
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
            raise InputError(f"{self.name}: {text!r} must end with a blank and the side to move, a or d; got {got}")
        cells = self._read_rows(rows)
        self._refuse_impossible(cells, side, text)
        state = self._first(cells, jnp.int32("ad".index(side)))
        board = state.board
        result = 1.0 if not any_of(board.king) else -1.0 if any_of(both(board.king, self.grid.corners)) else 0.0
        if self.rules.attackers_gone == "defenders_win" and not any_of(board.attackers):
            result = -1.0
        over = result != 0
        if not over and not self.grid.can_move(board, jnp.bool_(side == "a")):
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
            raise InputError(f"{self.name}: a position has {self.size} rows with / between, got {len(rows)}: {text!r}")
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
                    raise InputError(
                        f"{self.name}: character {place} of {text!r} is {symbol!r}; allowed: t, T, K and 1..{self.size}"
                    )
            if column != self.size:
                raise InputError(f"{self.name}: row {number} of {text!r} has {column} squares instead of {self.size}")
            place += 1
        return cells

    def _refuse_impossible(self, cells: np.ndarray, side: str, text: str) -> None:
        middle, edge = self.size // 2, (0, self.size - 1)
        for piece, people, most in zip((1, 2, 3), ("attackers", "defenders", "kings"), self._start_counts, strict=True):
            if (cells == piece).sum() > most:
                raise InputError(
                    f"{self.name}: {text!r} has {(cells == piece).sum()} {people}, at most {most} are possible"
                )
        for row, column in (*((r, c) for r in edge for c in edge), (middle, middle)):
            if cells[row, column] in (1, 2):
                square = "castle" if row == middle else "corner"
                name = square_name(self.size, row, column)
                raise InputError(
                    f"{self.name}: {_SYMBOLS[cells[row, column]]} stands on {name} in {text!r}, and the king alone may "
                    f"stand on the {square}"
                )
        king, attackers = (cells == 3).any(), (cells == 1).any()
        escaped = any(cells[row, column] == 3 for row in edge for column in edge)
        # Where the mover can lose its own pieces, what is missing does not tell who moved last.
        active = self.rules.capture == "active"
        for impossible, why in (
            (not king and not attackers, "has neither king nor attackers"),
            (active and not king and side == "a", "has no king, so the attackers moved last, and d is to move"),
            (escaped and side == "d", "has the king on a corner, so the defenders moved last, and a is to move"),
            (
                active and not attackers and side == "d",
                "has no attackers, so the defenders moved last, and a is to move",
            ),
        ):
            if impossible:
                raise InputError(f"{self.name}: {text!r} {why}")

    @property
    def _start_counts(self) -> tuple[int, int, int]:
        return self.start.count("t"), self.start.count("T"), 1

    def action_squares(self, state: TaflState, action: int) -> tuple[int, ...]:
        del state
        square, way = divmod(int(action), 4 * self.grid.reach)
        direction, distance = divmod(way, self.grid.reach)
        step = (self.size, -self.size, 1, -1)[direction]
        return square, square + step * (distance + 1)

    def action_to_text(self, state: TaflState, action: int) -> str:
        return "-".join(
            square_name(self.size, *divmod(square, self.size)) for square in self.action_squares(state, action)
        )

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

    def with_piece(self, state: TaflState, square: int, piece: int) -> TaflState:
        cells = np.array(self.cells(state))
        cells[square] = piece
        return self._first(cells.reshape(self.size, self.size), state.current_player)


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
        raise InputError(f"brandub: rules must be one of {', '.join(RULES)}, got {rules!r}")
    changes: dict[str, Any] = {
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
