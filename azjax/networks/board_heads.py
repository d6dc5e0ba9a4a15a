"""What networks for boards have in common: the layout of a game's actions on its board, and the last layers.

Beside policy and value they say more of a position:

- further policies: the opponent's reply (Wu 2019, "Accelerating Self-Play Learning in Go", section 3.4) and a soft
  policy (KataGo);
- the probabilities of loss, draw and win, and the plies left, as in Leela Chess Zero; values of the near future, as in
  KataGo.

Axis letters: `B` batch, `R` rows, `C` columns, `F` features or channels, `A` actions.
"""

import abc
import dataclasses
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Float, Float32

from azjax.games.board_symmetries import squares_of_pieces
from azjax.games.protocols import ActionGroup, LaidOutGame, actions_in_groups
from azjax.networks.layers import Dtype, GlobalPoolingConv, NormedConv, check_board, global_pool, linear
from azjax.networks.network import OF_GAME, GameShape, NetworkOutput, NnxNetwork

PLIES_LEFT_BINS = 32
SHORT_TERM_VALUES = 3
_LAST_SCALE = 0.1  # of the last layers, so that a fresh policy is nearly uniform and a fresh value nearly 0

_S = TypeVar("_S", bound="LaidOutNetwork")


@dataclasses.dataclass(frozen=True)
class LaidOutNetwork(NnxNetwork, abc.ABC):
    """Base class of networks with `BoardHeads`, for observations `(rows, columns, planes)`.

    `layout` says which squares the logits of the policies come from; `for_game` sets it (see `action_layout`).
    """

    layout: tuple[ActionGroup, ...] = dataclasses.field(default=(), repr=False, kw_only=True, metadata=OF_GAME)

    def for_game(self: _S, game: GameShape) -> _S:
        """As `NnxNetwork.for_game`.

        Raises:
          InputError: also for other observations.
        """
        check_board(self, game.observation_shape)
        return dataclasses.replace(super().for_game(game), layout=action_layout(game))


def action_layout(game: GameShape) -> tuple[ActionGroup, ...]:
    """The groups of a game's actions: those that it gives (`LaidOutGame`), or a guess from its numbers.

    The first of these guesses that fits:

    1. A multiple of the squares: action = square * planes + plane.
    2. One more than the squares: an action for each square, then one for the board, such as to pass.
    3. As many as columns: an action for each column.
    4. Any other number: all actions are the board's.

    A guess can be wrong, as for a game that numbers its squares by columns: each logit then comes from a square foreign
    to its action.
    """
    if isinstance(game, LaidOutGame):
        return game.action_layout
    rows, columns, _ = game.observation_shape
    squares, num_actions = rows * columns, game.num_actions
    if num_actions % squares == 0:
        return (ActionGroup("square", num_actions // squares),)
    if num_actions == squares + 1:
        return ActionGroup("square", 1), ActionGroup("board", 1)
    if num_actions == columns:
        return (ActionGroup("column", 1),)
    return (ActionGroup("board", num_actions),)


class LogitsByPlace(nnx.Module):
    """The last layer of a policy: [B, R, C, F] features of the squares to float32 logits [B, A].

    Squares give their own features, pieces those of their square and of the board, columns and boards the mean and the
    maximum of those of their squares.
    """

    def __init__(self, features: int, layout: tuple[ActionGroup, ...], dtype: Dtype, rngs: nnx.Rngs):
        self.layout = layout
        of_place = {"square": features, "piece": 3 * features, "column": 2 * features, "board": 2 * features}
        for number, group in enumerate(layout):
            layer = linear(of_place[group.place], group.planes, dtype, rngs, scale=_LAST_SCALE)
            setattr(self, f"group_{number}", layer)

    def __call__(
        self, squares: Float[Array, "B R C F"], observations: Float32[Array, "B R C planes"]
    ) -> Float32[Array, "B A"]:
        batch, rows, _, features = squares.shape
        logits = []
        for number, group in enumerate(self.layout):
            if group.place == "square":
                places = squares.reshape(-1, features)
            elif group.place == "piece":
                places = _of_pieces(squares, group, observations)
            elif group.place == "column":
                places = global_pool(jnp.swapaxes(squares, 1, 2).reshape(-1, rows, 1, features))
            else:
                places = global_pool(squares)
            logits.append(getattr(self, f"group_{number}")(places).reshape(batch, -1))
        by_group = jnp.concatenate(logits, axis=1)
        if not any(group.actions for group in self.layout):
            return by_group
        return by_group[:, np.argsort(actions_in_groups(self.layout, *squares.shape[1:3]))]


def _of_pieces(
    squares: Float[Array, "B R C F"], group: ActionGroup, observations: Float32[Array, "B R C P"]
) -> Float[Array, "rows 3*F"]:
    """For each board and piece a row: the features of its square, zero if it is not there, and those of the board."""
    batch, _, _, features = squares.shape
    chosen = squares_of_pieces(group, observations).astype(squares.dtype)
    own = jnp.einsum("bps,bsf->bpf", chosen, squares.reshape(batch, -1, features))
    board = jnp.broadcast_to(global_pool(squares)[:, None], (batch, group.num_pieces, 2 * features))
    return jnp.concatenate([own, board], axis=2).reshape(batch * group.num_pieces, -1)


class BoardHeads(nnx.Module):
    """Base class of modules: the last layers, on the features of the squares.

    The value is the probability of a win less that of a loss. Auxiliary outputs, all float32:

    - `outcome_logits` [B, 3]: loss, draw and win of the player to move;
    - `plies_left_logits` [B, 32]: bins of the number of plies left, which a loss term defines;
    - `short_term_values` [B, 3]: in -1..1, which a loss term defines;
    - `value_error` [B]: the expected error of the value (root of the mean square), 0 or more;
    - `soft_policy_logits` [B, A] and `opponent_policy_logits` [B, A]: of all actions, like `prior_logits`.
    """

    def __init__(self, features: int, width: int, layout: tuple[ActionGroup, ...], dtype: Dtype, rngs: nnx.Rngs):
        self.policy_conv = GlobalPoolingConv(features, width, max(1, width // 4), 1, dtype, rngs)
        # Layers of their own, so that XLA removes those whose output nobody reads.
        self.policy = LogitsByPlace(width, layout, dtype, rngs)
        self.soft_policy = LogitsByPlace(width, layout, dtype, rngs)
        self.opponent_policy = LogitsByPlace(width, layout, dtype, rngs)
        self.value_conv = NormedConv(features, width, 1, dtype, rngs)
        self.value_hidden = linear(2 * width, width, dtype, rngs)
        self.plies_left = linear(width, PLIES_LEFT_BINS, dtype, rngs, scale=_LAST_SCALE)
        self.short_term = linear(width, SHORT_TERM_VALUES, dtype, rngs, scale=_LAST_SCALE)
        self.outcome = linear(width, 3, jnp.float32, rngs, scale=_LAST_SCALE)
        self.value_error = linear(width, 1, dtype, rngs, scale=_LAST_SCALE)

    def heads(
        self, planes: Float[Array, "B R C F"], observations: Float32[Array, "B R C planes"], train: bool
    ) -> NetworkOutput:
        """All outputs."""
        squares = self.policy_conv(planes, train)
        board = global_pool(jax.nn.relu(self.value_conv(planes, train)))
        board = jax.nn.relu(self.value_hidden(board))
        auxiliary = {
            "soft_policy_logits": self.soft_policy(squares, observations),
            "opponent_policy_logits": self.opponent_policy(squares, observations),
            "plies_left_logits": self.plies_left(board),
            "short_term_values": jnp.tanh(self.short_term(board)),
            "value_error": jax.nn.softplus(self.value_error(board)[:, 0]),
        }
        prior_logits = self.policy(squares, observations)
        outcome_logits = self.outcome(board)
        loss, _, win = jax.nn.softmax(outcome_logits).T
        return NetworkOutput(prior_logits, win - loss, {"outcome_logits": outcome_logits, **auxiliary})
