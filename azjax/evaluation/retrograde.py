"""Retrograde analysis: exact values of positions that moves can bring back (`azjax.games.endings`).

At first every value is unknown, which counts as a draw. Where the best of the values one move ahead is a win or a loss,
the position has it too, and the positions before it are looked at again, until nothing changes (Thompson 1986,
"Retrograde analysis of certain endgames"). What is left is a draw: neither side can force more. Positions with fewer
pieces are finished first, since captures lead to them.

Axis letters: `B` batch, `K` slots of the compact table of legal actions, `N` position numbers.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int8, Int32, Integer, UInt32

from azjax.core.errors import InputError
from azjax.core.pytree import pytree_dataclass, static_field
from azjax.evaluation.archive import Manifest, load_archive, save_archive
from azjax.evaluation.solution import BLOCK_CHILDREN, BestActions, Progress, in_parallel, no_progress
from azjax.games.endings import Endings, EndingsGame, EndingsPart
from azjax.games.game import AnyGame, State, reward_of_mover

_WIN = 127  # score of a win in 0 plies
_NONE = -128  # score of a number without an unfinished position, below every other
_MOST_PLIES = 120
KIND = "endings"
_SAMPLE = 1024
_MARGIN = 1 << 16  # bytes of headers
_SMALL = 64  # batches of at most this part of a full one are padded less


@pytree_dataclass
class EndingTable:
    """The values of endings: a player's parameters, on the device.

    Attributes:
      endings: which.
      scores: by number, for the side to move: 127 - d for a win in d plies when the winner hurries and the loser
        delays, -(127 - d) for a loss, 0 for a draw, -128 where there is no unfinished position.
    """

    endings: Endings[Any] = static_field()
    scores: Int8[Array | np.ndarray, "N"]

    def score(self, states: State) -> tuple[Bool[Array, "B"], Int8[Array, "B"]]:
        """Which of B positions the table has, and their scores; 0 elsewhere."""
        scores = self._at(jax.vmap(self.endings.position_number)(states))
        known = (scores != _NONE) & ~states.terminated
        return known, jnp.where(known, scores, jnp.int8(0))

    def best_moves(self, game: AnyGame, states: State) -> BestActions:
        """See `azjax.evaluation.solution.BestMoves`. The best moves win as soon, and lose as late, as possible."""
        known, _ = self.score(states)
        actions, scores = self.move_scores(game, states)
        highest = jnp.max(scores, axis=1, keepdims=True)
        values = jnp.where(known, jnp.sign(highest[:, 0]), 0).astype(jnp.float32)
        return known | states.terminated, values, actions, (scores == highest) & (scores != _NONE)

    def move_scores(self, game: AnyGame, states: State) -> tuple[Int32[Array, "B K"], Int8[Array, "B K"]]:
        """The legal actions of B positions of the table by slot, and their scores: 0 and -128 in holes."""
        actions, valid = jax.vmap(game.legal_slots)(states)
        children = jax.vmap(jax.vmap(game.step, (None, 0)))(states, actions)
        numbers = jax.vmap(jax.vmap(self.endings.position_number))(children)
        rewards = reward_of_mover(states, children)
        return jnp.where(valid, actions, 0), self.scores_after(numbers, children.terminated, rewards, valid)

    def _at(self, numbers: UInt32[Array, "..."]) -> Int8[Array, "..."]:
        scores = jnp.asarray(self.scores).at[numbers.astype(jnp.int32)].get(mode="clip")
        return jnp.where(numbers < len(self.scores), scores, jnp.int8(_NONE))

    def scores_after(
        self, numbers: UInt32[Array, "B K"], ends: Array, rewards: Array, valid: Bool[Array, "B K"]
    ) -> Int8[Array, "B K"]:
        """The scores of moves by the numbers they lead to, where they end the game, and the mover's rewards."""
        later = self._at(numbers)
        later = jnp.where(later == _NONE, jnp.int8(0), later)
        later = jnp.sign(later) - later  # for the other side, one ply farther away
        scores = jnp.where(ends, rewards.astype(jnp.int8) * jnp.int8(_WIN - 1), later)
        return jnp.where(valid, scores, jnp.int8(_NONE))


class PartSummary(NamedTuple):
    """Counts of a part.

    Attributes:
      name: the pieces.
      player: to move.
      positions, won, drawn, lost: unfinished positions, from the view of the side to move.
      longest_win: in plies; 0 if nothing is won.
      longest_win_in: the first number with it; None if nothing is won.
    """

    name: str
    player: int
    positions: int
    won: int
    drawn: int
    lost: int
    longest_win: int
    longest_win_in: int | None


@dataclasses.dataclass(frozen=True, eq=False)
class EndingSolution:
    """Solved endings.

    Attributes:
      game: the game.
      table: the values; NumPy leaves.
    """

    game: AnyGame
    table: EndingTable

    @property
    def endings(self) -> Endings[Any]:
        return self.table.endings

    @functools.cached_property
    def _on_device(self) -> EndingTable:
        return EndingTable(self.endings, jnp.asarray(self.table.scores))

    def best_moves(self) -> EndingTable:
        """The parameters of the optimal player."""
        return self._on_device

    def states(self, numbers: Integer[np.ndarray, "B"]) -> State:
        """The unfinished positions of these numbers, each as the first of a game."""
        states: State = _first_positions(self.endings, jnp.asarray(numbers, jnp.uint32))
        return states

    def summary(self) -> list[PartSummary]:
        """By part."""
        return [_summary(part, np.asarray(self.table.scores)) for part in self.endings.parts]

    def is_consistent(self, sample: int | None = _SAMPLE) -> bool:
        """Whether scores follow from those one ply ahead: this many of the last group, or all for None."""
        scores = np.asarray(self.table.scores)
        for part in self.endings.parts if sample is None else self.endings.parts[-2:]:
            step = 1 if sample is None else max(1, 2 * (part.stop - part.first) // sample)
            numbers = np.arange(part.first, part.stop, step, dtype=np.uint32)
            for piece, found in _in_pieces(part, functools.partial(_look, self._on_device, part), numbers):
                if not np.array_equal(found, scores[piece]):
                    return False
        return True


def _summary(part: EndingsPart, scores: Int8[np.ndarray, "N"]) -> PartSummary:
    own = scores[part.first : part.stop]
    counts = np.zeros(256, np.int64)  # by score
    for images, interval in zip(part.images, own.reshape(len(part.images), -1), strict=True):
        counts += images * np.bincount(interval.astype(np.int16) + 128, minlength=256)
    lost, drawn, won = counts[1:128].sum(), counts[128], counts[129:].sum()
    slowest = int(own[own > 0].min()) if won else None
    return PartSummary(
        name=part.name,
        player=part.player,
        positions=int(lost + drawn + won),
        won=int(won),
        drawn=int(drawn),
        lost=int(lost),
        longest_win=0 if slowest is None else _WIN - slowest,
        longest_win_in=None if slowest is None else part.first + int(np.argmax(own == slowest)),
    )


def solve_endings(game: AnyGame, pieces: int, progress: Progress = no_progress) -> EndingSolution:
    """Finds the values of all endings with this many pieces, with at most four bytes for each number.

    Args:
      game: an `EndingsGame`.
      pieces: see `EndingsGame.endings`.
      progress: called with what is being done, the positions looked at, and the total of this pass.

    Raises:
      InputError: the game has no endings, or a win takes more than 120 plies.
    """
    endings = endings_of(game, pieces)
    scores = np.full(endings.num_position_numbers, _NONE, np.int8)
    for first in range(0, len(endings.parts), 2):
        _solve_group(endings, endings.parts[first : first + 2], scores, progress)
    return EndingSolution(game, EndingTable(endings, scores))


def endings_of(game: AnyGame, pieces: int) -> Endings[Any]:
    """The endings of a game.

    Raises:
      InputError: it has none, or not with this many pieces.
    """
    if not isinstance(game, EndingsGame):
        raise InputError(f"{game.name} has no endings that retrograde analysis could solve")
    endings: Endings[Any] = game.endings(pieces)
    return endings


def _solve_group(
    endings: Endings[Any], parts: tuple[EndingsPart, ...], scores: Int8[np.ndarray, "N"], progress: Progress
) -> None:
    """Fills in the scores of both parts of a group."""
    first, stop = parts[0].first, parts[-1].stop
    marks = np.ones(stop - first, bool)
    for turn in range(1, 2 * _MOST_PLIES):
        # A copy: what the device reads must not change under it.
        table = EndingTable(endings, jnp.array(scores))
        changed: list[list[np.ndarray]] = []
        done, total = 0, int(np.count_nonzero(marks))
        for part in parts:
            numbers = _numbers_of(part, marks, first)
            changed.append([])
            for piece, found in _in_pieces(part, functools.partial(_look, table, part), numbers):
                if np.any((found != _NONE) & (found != 0) & (np.abs(found.astype(np.int16)) < _WIN - _MOST_PLIES)):
                    raise InputError(
                        f"{part.name}: a win takes more than {_MOST_PLIES} plies, which the table cannot hold"
                    )
                before = scores[piece]
                is_news = (found != before) & ~((before == _NONE) & (found == 0))
                changed[-1].append(piece[is_news])
                scores[piece] = found
                done += len(piece)
                progress(f"{part.name}, pass {turn}", done, total)
        if not any(piece.size for pieces in changed for piece in pieces):
            return
        marks[:] = False
        table = EndingTable(endings, jnp.array(scores))
        for other, pieces in zip(parts[::-1], changed, strict=True):
            before = functools.partial(_before, table, other.pieces)
            for _, found in _in_pieces(other, before, np.concatenate([np.zeros(0, np.uint32), *pieces])):
                inside = found[(found >= first) & (found < stop)]
                marks[inside - first] = True
        for part in parts:
            images = functools.partial(_images, endings)
            for _, found in _in_pieces(part, images, _numbers_of(part, marks, first)):
                marks[found[found < stop] - first] = True
    raise AssertionError("each pass finds longer wins alone")


def _numbers_of(part: EndingsPart, marks: Bool[np.ndarray, "n"], first: int) -> UInt32[np.ndarray, "marked"]:
    """The marked numbers of a part; the first mark is that of number `first`."""
    return (np.flatnonzero(marks[part.first - first : part.stop - first]) + part.first).astype(np.uint32)


def _in_pieces(
    part: EndingsPart, work: Callable[[np.ndarray], Array], numbers: UInt32[np.ndarray, "n"]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Pieces of the numbers with the results of `work` on them; see `in_parallel`."""
    size = max(1, BLOCK_CHILDREN // (16 * part.pieces))

    def padded(piece: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        width = size if len(piece) > size // _SMALL else max(1, size // _SMALL)
        return piece, np.asarray(work(np.pad(piece, (0, width - len(piece)), mode="edge")))[: len(piece)]

    return in_parallel(padded, numbers, size)


def _look(table: EndingTable, part: EndingsPart, numbers: UInt32[np.ndarray, "B"]) -> Int8[Array, "B"]:
    """The scores of positions as they follow from those one ply ahead."""
    states = _unpack(table.endings, numbers)
    scores: Array = _best(table, *_moves(table.endings, part.pieces, states), states.terminated)
    return scores


# Calls in a row, not one: XLA would unpack a number again for every slot, and play a move for every result.


@functools.partial(jax.jit, static_argnums=0)
def _unpack(endings: Endings[Any], numbers: UInt32[Array, "B"]) -> State:
    states: State = jax.vmap(endings.from_position_number)(numbers)
    return states


@functools.partial(jax.jit, static_argnums=0)
def _first_positions(endings: Endings[Any], numbers: UInt32[Array, "B"]) -> State:
    states: State = jax.vmap(endings.as_first_position)(jax.vmap(endings.from_position_number)(numbers))
    return states


@functools.partial(jax.jit, static_argnums=(0, 1))
def _moves(endings: Endings[Any], pieces: int, states: State) -> tuple[Array, Array, Array, Array]:
    actions, valid = jax.vmap(functools.partial(endings.legal_slots, pieces=pieces))(states)
    children = jax.vmap(jax.vmap(endings.step, (None, 0)))(states, actions)
    numbers = jax.vmap(jax.vmap(endings.position_number))(children)
    return numbers, children.terminated, reward_of_mover(states, children), valid


@jax.jit
def _best(
    table: EndingTable, numbers: Array, ends: Array, rewards: Array, valid: Array, terminated: Array
) -> Int8[Array, "B"]:
    best = jnp.max(table.scores_after(numbers, ends, rewards, valid), axis=1)
    return jnp.where(terminated, jnp.int8(_NONE), best)


@functools.partial(jax.jit, static_argnums=1)
def _before(table: EndingTable, pieces: int, numbers: UInt32[Array, "B"]) -> UInt32[Array, "B K"]:
    """The numbers of positions whose score may be another now that those of `numbers` are; others in holes."""
    states = jax.vmap(table.endings.from_position_number)(numbers)
    before = jax.vmap(functools.partial(table.endings.predecessors, pieces=pieces))(states)
    own, theirs = table._at(numbers)[:, None], table._at(before)
    # A lost position makes those before it won, if they are not won sooner; a won one may make them lost.
    better = jnp.where(own < 0, theirs < jnp.sign(own) - own, theirs <= 0)
    return jnp.where(better & (theirs != _NONE), before, jnp.uint32(table.endings.num_position_numbers))


@functools.partial(jax.jit, static_argnums=0)
def _images(endings: Endings[Any], numbers: UInt32[Array, "B"]) -> UInt32[Array, "B images"]:
    return jax.vmap(endings.image_numbers)(numbers)


# Files.


def save_endings(solution: EndingSolution, path: str | Path) -> None:
    """Writes solved endings to a file, completely or not at all.

    Raises:
      FileError: it could not be written; an existing file is unchanged.
    """
    pieces, scores = solution.endings.pieces, np.asarray(solution.table.scores)
    save_archive(path, KIND, solution.game, {"pieces": pieces}, {"scores": scores})


def load_endings(path: str | Path, game: AnyGame | None = None) -> EndingSolution:
    """Reads solved endings, and checks all bytes, and a sample of the values against the rules.

    Args:
      path: written by `save_endings`.
      game: the game that they must belong to; None to take the game of the file.

    Raises:
      InputError: the file is missing or damaged, or belongs to another game or to rules by which values are others.
    """
    own_game, manifest, arrays = load_archive(path, KIND, _most_bytes)
    endings = _endings_in(own_game, manifest)
    scores = arrays["scores"]
    solution = EndingSolution(own_game, EndingTable(endings, scores))
    if scores.shape != (endings.num_position_numbers,) or scores.dtype != np.int8 or not solution.is_consistent():
        raise InputError(f"{path} was made with other rules or position numbers of {own_game.name}: solve it again")
    if game is None or game == own_game:
        return solution
    wanted = _endings_in(game, manifest)
    if not wanted.has_values_of(endings):
        raise InputError(f"{path} has endings of {own_game}, and not of {game}")
    return EndingSolution(game, EndingTable(wanted, scores))


def _endings_in(game: AnyGame, manifest: Manifest) -> Endings[Any]:
    """The endings of the game that a manifest names."""
    pieces = manifest.get("pieces")
    if not isinstance(pieces, int):
        raise InputError(f"pieces must be a whole number, got {pieces!r}")
    return endings_of(game, pieces)


def _most_bytes(game: AnyGame, manifest: Manifest) -> int:
    """A byte for each number."""
    return _endings_in(game, manifest).num_position_numbers + _MARGIN
