"""Games of the library pgx (https://github.com/sotetsuk/pgx, extra `interop`): `make("pgx:go_9x9")`.

These are the games with two players and neither chance nor hidden information. Differences are mapped: player 0 is the
one who moves first (pgx draws which player that is), an illegal action changes nothing (pgx ends the game), and no
action is legal after the end (pgx allows all). These games have no text. Hex, Othello and tic-tac-toe have their
symmetries; the other games have none here, and most of them keep hashes of positions, which no turn of a board maps.

Axis letters: `A` actions, `S` symmetries.
"""

import dataclasses
import functools
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float, Float32, Int, Int32, PRNGKeyArray

from azjax.core.errors import InputError
from azjax.core.pytree import pytree_dataclass, static_field
from azjax.games.game import Game
from azjax.games.protocols import ActionGroup, DrawableGame, LaidOutGame
from azjax.games.registry import register

# Plies after which pgx ends the game, or that the rules allow.
_MAX_PLIES = {
    "animal_shogi": 256,
    "chess": 512,
    "connect_four": 42,
    "gardner_chess": 256,
    "go_19x19": 2 * 19 * 19,
    "go_9x9": 2 * 9 * 9,
    "hex": 11 * 11 + 1,  # a stone on every cell, and the swap
    "othello": 2 * 60,  # a stone on every free cell, each after a pass at most: two passes end the game
    "shogi": 512,
    "tic_tac_toe": 9,
}

# If far fewer than all actions are legal. Chess: no reachable position has more than 218 moves. Gardner's chess: king,
# rook, bishop and knight have at most 8 moves each, and queen and five promoted pawns at most 16 each.
_MAX_LEGAL_ACTIONS = {"chess": 218, "gardner_chess": 4 * 8 + 6 * 16}

# Planes of the actions of a square, in games that number their squares by columns. Chess has all planes of a square
# together and its first squares at the bottom left; shogi has all squares of a plane together, from the top right.
_CHESS_PLANES = {"chess": 73, "gardner_chess": 49}
_SHOGI_PLANES = {"animal_shogi": 11, "shogi": 27}

# Games whose actions are the squares of the board, row-major, and one more that no turn changes: pass or swap.
_SYMMETRIC = ("hex", "othello", "tic_tac_toe")

_ONE_PLAYER, _HIDDEN = "it has one player", "its players hold cards that the other does not see"
_MISFITS = {
    "2048": _ONE_PLAYER,
    "backgammon": "it has dice",
    "bridge_bidding": "it has four players",
    "kuhn_poker": _HIDDEN,
    "leduc_holdem": _HIDDEN,
    "mahjong": "it has four players",
    "minatar-asterix": _ONE_PLAYER,
    "minatar-breakout": _ONE_PLAYER,
    "minatar-freeway": _ONE_PLAYER,
    "minatar-seaquest": _ONE_PLAYER,
    "minatar-space_invaders": _ONE_PLAYER,
    "sparrow_mahjong": "it has three players",
}


@pytree_dataclass
class PgxState:
    """A position.

    Attributes:
      position: pgx's state without the fields below and those that can be computed from it, which are None. The mask
        of legal actions stays: pgx has no function that computes it.
    """

    game: "Pgx" = static_field(kw_only=True, repr=False)
    position: Any
    current_player: Int32[Array, "*B"]
    terminated: Bool[Array, "*B"]
    rewards: Float32[Array, "*B 2"]


@dataclasses.dataclass(frozen=True)
class Pgx(Game[PgxState], DrawableGame[PgxState]):
    """A game of pgx.

    Attributes:
      env_id: pgx's name of it.
    """

    env_id: str

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"pgx:{self.env_id}"

    @property
    def num_actions(self) -> int:
        return len(_start(self.env_id).legal_action_mask)

    @property
    def max_legal_actions(self) -> int:
        return _MAX_LEGAL_ACTIONS.get(self.env_id, self.num_actions)

    @property
    def max_plies(self) -> int:
        return _MAX_PLIES[self.env_id]

    @property
    def observation_shape(self) -> tuple[int, ...]:
        shape: tuple[int, ...] = _start(self.env_id).observation.shape
        return shape

    def init(self, key: PRNGKeyArray) -> PgxState:
        del key
        return self._ours(_start(self.env_id))

    def step(self, state: PgxState, action: Int[ArrayLike, ""]) -> PgxState:
        action = jnp.asarray(action, jnp.int32)
        in_range = (action >= 0) & (action < self.num_actions)
        action = jnp.where(in_range, action, 0)
        legal = in_range & self.legal_action_mask(state)[action]
        with jax.numpy_rank_promotion("allow"):
            following = self._ours(_environment(self.env_id).step(_theirs(state), action))
        unchanged = dataclasses.replace(state, rewards=jnp.zeros(2, jnp.float32))
        stepped: PgxState = jax.tree.map(lambda new, old: jnp.where(legal, new, old), following, unchanged)
        return stepped

    def legal_action_mask(self, state: PgxState) -> Bool[Array, "A"]:
        mask: Array = state.position.legal_action_mask & ~state.terminated
        return jnp.asarray(mask)

    def observe(self, state: PgxState) -> Float32[Array, "..."]:
        with jax.numpy_rank_promotion("allow"):
            return _environment(self.env_id).observe(_theirs(state)).astype(jnp.float32)

    def symmetries(self, state: PgxState) -> tuple[PgxState, Int32[Array, "S A"]]:
        if self.env_id not in _SYMMETRIC:
            return super().symmetries(state)
        permutation, inverse = _symmetry_tables(self.env_id)
        # Square j of a turned board shows the square that was moved there.
        board = state.position._x.board
        boards = board[inverse[:, : len(board)]]
        if self.env_id == "hex":
            # Stones hold 1 + the square of a stone of their group, negative if they are the other player's.
            squares = jnp.take_along_axis(jnp.asarray(permutation), jnp.maximum(jnp.abs(boards) - 1, 0), axis=1)
            boards = jnp.sign(boards) * (squares + 1)
        images = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (len(boards), *jnp.shape(leaf))), state)
        position = images.position.replace(
            legal_action_mask=state.position.legal_action_mask[inverse],
            _x=images.position._x._replace(board=boards),
        )
        return dataclasses.replace(images, position=position), jnp.asarray(permutation)

    def svg(
        self, state: PgxState, *, policy: Float[Array | np.ndarray, "A"] | None = None, last_action: int | None = None
    ) -> str:
        """pgx's own picture, which shows neither `policy` nor `last_action`."""
        del policy, last_action
        picture: str = _theirs(state).to_svg()
        width, height = (re.findall(rf'\b{side}="([\d.]+)', picture)[0] for side in ("width", "height"))
        # Without it the picture is cropped, not scaled, where a page gives it another size.
        return picture.replace("<svg ", f'<svg viewBox="0 0 {width} {height}" ', 1)

    def _ours(self, theirs: Any) -> PgxState:
        # Some leaves of pgx are Python numbers; each keeps the type that it starts with.
        typed = jax.tree.map(
            lambda leaf, start: jnp.asarray(leaf, start.dtype),
            theirs.replace(observation=None),
            _start(self.env_id).replace(observation=None),
        )
        position = typed.replace(current_player=None, terminated=None, truncated=None, rewards=None)
        return PgxState(position, typed.current_player, typed.terminated, typed.rewards, game=self)


def _theirs(state: PgxState) -> Any:
    return state.position.replace(
        current_player=state.current_player,
        terminated=state.terminated,
        truncated=jnp.bool_(False),  # pgx never sets it
        rewards=state.rewards,
    )


class _Environment(NamedTuple):
    """The functions of pgx that are used, compiled: hundreds of single operations would be slow."""

    init: Callable[[PRNGKeyArray], Any]
    step: Callable[[Any, Array], Any]
    observe: Callable[[Any], Array]


@functools.cache
def _environment(env_id: str) -> _Environment:
    try:
        import pgx
    except ModuleNotFoundError as error:
        raise InputError("the games of pgx need pgx: pip install 'azjax[interop]'") from error
    environment = pgx.make(env_id)
    return _Environment(jax.jit(environment.init), jax.jit(environment.step), jax.jit(environment.observe))


@functools.cache
def _symmetry_tables(env_id: str) -> tuple[Int[np.ndarray, "S A"], Int[np.ndarray, "S A"]]:
    """For each symmetry, where each action goes, and which action comes from where."""
    rows, columns, _ = _start(env_id).observation.shape
    squares = np.arange(rows * columns, dtype=np.int32).reshape(rows, columns)
    turned = [squares, squares[::-1, ::-1]]
    if env_id != "hex":  # its players connect given edges of a rhombus, so that only half a turn changes nothing
        turned = [
            image for board in (squares, squares.T) for image in (board, board[::-1], board[:, ::-1], board[::-1, ::-1])
        ]
    others = np.arange(rows * columns, len(_start(env_id).legal_action_mask), dtype=np.int32)
    inverse = np.stack([np.append(board, others) for board in turned])
    return np.argsort(inverse, axis=1).astype(np.int32), inverse


@dataclasses.dataclass(frozen=True)
class PgxByColumns(Pgx, LaidOutGame):
    """A game of pgx that numbers its squares by columns."""

    @property
    def action_layout(self) -> tuple[ActionGroup, ...]:
        return _layout(self.env_id)


@functools.cache
def _layout(env_id: str) -> tuple[ActionGroup, ...]:
    rows, columns, _ = _start(env_id).observation.shape
    by_column = np.arange(rows * columns).reshape(columns, rows).T
    if env_id in _CHESS_PLANES:
        planes = _CHESS_PLANES[env_id]
        actions = by_column[::-1].reshape(-1, 1) * planes + np.arange(planes)
    else:
        planes = _SHOGI_PLANES[env_id]
        actions = by_column[:, ::-1].reshape(-1, 1) + np.arange(planes) * (rows * columns)
    return (ActionGroup("square", planes, actions=tuple(actions.reshape(-1).tolist())),)


@functools.cache
def _start(env_id: str) -> Any:
    """pgx's start, on the host, with its player 0 to move first; pgx's key decides nothing else."""
    environment = _environment(env_id)
    with jax.ensure_compile_time_eval(), jax.numpy_rank_promotion("allow"):
        starts = (environment.init(jax.random.key(seed)) for seed in range(64))
        start = next(start for start in starts if int(start.current_player) == 0)
        return jax.tree.map(lambda leaf: np.asarray(jnp.asarray(leaf)), start)


@register("pgx:")
def pgx_game(env_id: str) -> Pgx:
    """The game of pgx with that name.

    Raises:
      InputError: an unknown game, one that does not fit, or pgx is not installed.
    """
    choices = ", ".join(_MAX_PLIES)
    if env_id in _MISFITS:
        raise InputError(f"pgx:{env_id} is not a game for azjax: {_MISFITS[env_id]}; available: {choices}")
    if env_id not in _MAX_PLIES:
        raise InputError(f"unknown game of pgx {env_id!r}; available: {choices}")
    _environment(env_id)
    return (PgxByColumns if env_id in {**_CHESS_PLANES, **_SHOGI_PLANES} else Pgx)(env_id)
