"""The symmetries of a game's board as tables, for networks that are built for them.

Axis letters: `A` actions, `B` batch, `G` games, `N` positions, `R` rows, `C` columns, `P` planes, `Q` squares, `S`
symmetries, `T` plies.
"""

import functools
import itertools
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int, Int32, Key, UInt32

from azjax.core.errors import InputError
from azjax.games.game import Game, S
from azjax.games.protocols import ActionGroup, LaidOutGame, actions_in_groups, next_game, without_history

_PLIES, _GAMES = 16, 32

Table: TypeAlias = tuple[tuple[int, ...], ...]
"""A table of whole numbers that can be hashed."""


class BoardSymmetries(NamedTuple):
    """A group of symmetries, the identity first.

    A cell is what a symmetry moves to the same place in every position: an action, or, where actions belong to numbered
    pieces, also a square and an action of the piece that stands there (see `cells_of_actions`).

    Attributes:
      squares: [S, Q]; symmetry s moves what is on square q to `squares[s][q]`. Squares are numbered row-major.
      cells: [S, N]; it makes `cells[s][c]` of cell c.
      matrices: [S, 4]; it moves what is r rows below and c columns right of the middle of the board to the rows and
        columns of the product of this matrix, row-major, and (r, c).

      layout: the groups of actions, if some belong to pieces; empty if the cells are the actions.
    """

    squares: Table
    cells: Table
    matrices: Table
    layout: tuple[ActionGroup, ...]


def cells_of_actions(layout: tuple[ActionGroup, ...], observations: Float32[Array, "B R C P"]) -> Int32[Array, "B A"]:
    """The cell of each action in B positions, by the groups of `layout`; -1 for those of a piece that is not there.

    A group of pieces has a cell for each square and plane, another group one for each action.
    """
    batch, rows, columns, _ = observations.shape
    cells, begin = [], 0
    for group in layout:
        count = group.num_actions(rows, columns)
        numbers = jnp.broadcast_to(jnp.arange(count), (batch, count))
        if group.place == "piece":
            squares = squares_of_pieces(group, observations)
            first = jnp.argmax(squares, axis=2)[..., None] * group.planes + jnp.arange(group.planes)[None, None]
            numbers = jnp.where(squares.any(axis=2)[..., None], first, -1 - begin).reshape(batch, -1)
        cells.append(begin + numbers)
        begin += _num_cells(group, rows, columns)
    return jnp.concatenate(cells, axis=1)[:, np.argsort(actions_in_groups(layout, rows, columns))]


def from_cells_to_actions(
    layout: tuple[ActionGroup, ...], cells: Float32[Array, "B N"], observations: Float32[Array, "B R C P"]
) -> Float32[Array, "B A"]:
    """What each action's cell has, in B positions; 0 for the actions of a piece that is not there."""
    batch, rows, columns, _ = observations.shape
    actions, begin = [], 0
    for group in layout:
        end = begin + _num_cells(group, rows, columns)
        own = cells[:, begin:end]
        if group.place == "piece":
            # A product, since ONNX has no gather by computed numbers here.
            squares = squares_of_pieces(group, observations).astype(cells.dtype)
            own = jnp.einsum("bps,bsa->bpa", squares, own.reshape(batch, rows * columns, -1)).reshape(batch, -1)
        actions.append(own)
        begin = end
    return jnp.concatenate(actions, axis=1)[:, np.argsort(actions_in_groups(layout, rows, columns))]


def _num_cells(group: ActionGroup, rows: int, columns: int) -> int:
    return rows * columns * group.planes if group.place == "piece" else group.num_actions(rows, columns)


def squares_of_pieces(group: ActionGroup, observations: Float32[Array, "B R C P"]) -> Bool[Array, "B pieces Q"]:
    """Whether each piece stands on each square."""
    is_piece = observations[..., group.piece_plane].reshape(len(observations), 1, -1) > 0
    return is_piece & (jnp.cumsum(is_piece, axis=2) == jnp.arange(1, group.num_pieces + 1)[None, :, None])


@functools.lru_cache(maxsize=16)
def board_symmetries(game: Game[S]) -> BoardSymmetries:
    """The symmetries of `game`, found from the observations of 512 positions of random play.

    Raises:
      InputError: the observations are no boards, a symmetry is no turn or reflection of the board, an action goes
        elsewhere in another position and does not belong to a piece, or the symmetries are no group.
    """
    if len(game.observation_shape) != 3:
        raise InputError(f"{game.name} has observations of shape {game.observation_shape}, not (rows, columns, planes)")
    # Compiled ahead, so that it runs also when this is called under a trace.
    bits = np.random.RandomState(0).randint(0, 2**32, (_PLIES, _GAMES), dtype=np.uint32)
    compiled = jax.jit(functools.partial(_play_and_turn, game)).lower(bits).compile()
    observed, turned, actions = jax.device_get(compiled(bits))
    layout: tuple[ActionGroup, ...] = ()
    cells = actions[0]
    if (actions != cells).any():
        layout = game.action_layout if isinstance(game, LaidOutGame) else ()
        cells = _cells(game, layout, observed, turned, actions)
    rows, columns, _ = game.observation_shape
    turns = []
    for symmetry in range(actions.shape[1]):
        images = turned[:, symmetry].reshape(len(turned), rows * columns, -1)
        for target, matrix in _turns_of_board(rows, columns):
            if np.array_equal(images[:, target], observed.reshape(images.shape)):
                turns.append((tuple(target.tolist()), matrix))
                break
        else:
            raise InputError(f"{game.name}: its symmetry {symmetry} is no turn or reflection of the observed board")
    squares, matrices = zip(*turns, strict=True)
    found = BoardSymmetries(squares, tuple(map(tuple, cells.tolist())), matrices, layout)
    elements = list(zip(found.squares, found.cells, strict=True))
    products = {
        tuple(tuple(second[index] for index in first) for first, second in zip(*pair, strict=True))
        for pair in itertools.product(elements, repeat=2)
    }
    if len(set(elements)) < len(elements) or products != set(elements):
        raise InputError(f"{game.name}: its symmetries are no group")
    return found


def _cells(
    game: Game[S],
    layout: tuple[ActionGroup, ...],
    observed: Float32[np.ndarray, "N R C P"],
    turned: Float32[np.ndarray, "N S R C P"],
    actions: Int32[np.ndarray, "N S A"],
) -> Int[np.ndarray, "S cells"]:
    """Where symmetries move the cells of a game whose actions belong to pieces."""
    if not any(group.place == "piece" for group in layout):
        raise InputError(f"{game.name}: where its symmetries move an action depends on the position")
    boards = np.concatenate([observed[:, None], turned], axis=1).reshape(-1, *observed.shape[1:])
    compiled = jax.jit(functools.partial(cells_of_actions, layout)).lower(boards).compile()  # ahead, as above
    cells = np.asarray(compiled(boards)).reshape(len(observed), -1, actions.shape[2])
    before, after = cells[:, 0], np.take_along_axis(cells[:, 1:], actions, axis=2)
    present = before >= 0
    table = np.full((actions.shape[1], before.max() + 1), -1)
    for moved, images in zip(table, after.swapaxes(0, 1), strict=True):
        moved[before[present]] = images[present]
        if (moved[before] != images)[present].any():
            raise InputError(f"{game.name}: where its symmetries move the actions of a square depends on the position")
    if (table < 0).any():
        raise InputError(f"{game.name}: no piece came to some squares in {len(before)} positions of random play")
    return table


def _play_and_turn(
    game: Game[S], bits: UInt32[Array, "T G"]
) -> tuple[Float32[Array, "N R C P"], Float32[Array, "N S R C P"], Int32[Array, "N S A"]]:
    """Observations of positions of random play, those of their images, and where actions go."""
    keys = jax.random.split(jax.random.key(0), bits.shape[1])

    def turn(state: S, key: Key[Array, ""]) -> tuple[Array, Array, Array]:
        alone = without_history(game, next_game(game, key, state))
        images, actions = game.symmetries(alone)
        return game.observe(alone), jax.vmap(game.observe)(images), actions

    def play(states: S, bits: UInt32[Array, "G"]) -> tuple[S, tuple[Array, Array, Array]]:
        states = jax.vmap(functools.partial(next_game, game))(keys, states)
        following = jax.vmap(game.step)(states, jax.vmap(game.sample_legal_action)(states, bits))
        return following, jax.vmap(turn)(following, keys)

    _, found = jax.lax.scan(play, jax.vmap(game.init)(keys), bits)
    observed, turned, actions = (leaf.reshape(-1, *leaf.shape[2:]) for leaf in found)
    return observed, turned, jnp.asarray(actions)


def _turns_of_board(rows: int, columns: int) -> Iterator[tuple[Int[np.ndarray, "Q"], tuple[int, ...]]]:
    """Each turn and reflection that keeps the board's shape, identity first: where squares go, and its matrix."""
    numbers = np.arange(rows * columns).reshape(rows, columns)
    for down, right in itertools.product((1, -1), repeat=2):
        yield numbers[::down, ::right].reshape(-1), (down, 0, 0, right)
    if rows == columns:
        for down, right in itertools.product((1, -1), repeat=2):
            yield numbers.T[::down, ::right].reshape(-1), (0, right, down, 0)
