"""A perceptron that turns with the board: its policy of a turned position is the turned policy, its value is the same.

A layer has a view of the board for each symmetry of the game: turning the position exchanges the views. So the views
share their weights, and a layer of `width` units has the products of a dense one and S times fewer weights (Cohen and
Welling 2016, "Group Equivariant Convolutional Networks"; Ravanbakhsh et al. 2017, "Equivariance Through
Parameter-Sharing"). What the network learns of one position it knows of all S images of it.

Axis letters: `B` batch, `S` symmetries and views, `I` and `O` features of a view in and out, `Q` squares, `A` actions.
"""

import dataclasses
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Float, Float32, Int

from azjax.core.errors import InputError
from azjax.games.board_symmetries import BoardSymmetries, board_symmetries
from azjax.games.game import Game
from azjax.networks.layers import compute_dtype, linear
from azjax.networks.network import GameShape, NetworkOutput, NnxNetwork
from azjax.networks.products import mixed_product

_LAST_SCALE = 0.1  # as in `BoardHeads`


@dataclasses.dataclass(frozen=True)
class EquivariantMlp(NnxNetwork):
    """`depth` hidden layers of `width` ReLU units, which are `width / S` for each of the S symmetries of the game.

    `symmetries` are those of the game; `for_game` sets them.
    """

    width: int = 512
    depth: int = 4
    precision: str = "float32"
    symmetries: BoardSymmetries = dataclasses.field(default=BoardSymmetries((), ()), repr=False, kw_only=True)

    def for_game(self, game: GameShape) -> "EquivariantMlp":
        """As `NnxNetwork.for_game`.

        Raises:
          InputError: also for a shape without rules, for what `board_symmetries` refuses, and for a width that is no
            multiple of the number of symmetries.
        """
        if not isinstance(game, Game):
            raise InputError(f"{self} needs a game with symmetries, got {game!r}")
        symmetries = board_symmetries(game)
        if self.width % len(symmetries.squares):
            raise InputError(
                f"{self}: width must be a multiple of the {len(symmetries.squares)} symmetries of {game.name}"
            )
        return dataclasses.replace(super().for_game(game), symmetries=symmetries)

    def module(self, rngs: nnx.Rngs) -> nnx.Module:
        return _EquivariantModule(self, rngs)


class _Layer(nnx.Module):
    """A dense layer that commutes with the symmetries.

    View h has the weights of view 0, read at the inputs that symmetry h moves to those of view 0. `sources` [S, inputs]
    are their numbers; an input is a square, or a view.
    """

    def __init__(
        self,
        sources: Sequence[Sequence[int]],
        features_in: int,
        features_out: int,
        dot: Callable[[Array, Array], Array],
        rngs: nnx.Rngs,
    ):
        self.sources, self.dot = tuple(map(tuple, sources)), dot
        shape = len(self.sources[0]) * features_in, features_out
        init = nnx.initializers.variance_scaling(1.0, "fan_in", "truncated_normal")
        self.kernel = nnx.Param(init(rngs.params(), shape).reshape(-1, features_in, features_out))
        self.bias = nnx.Param(jnp.zeros(features_out))

    def __call__(self, features: Float[Array, "B _"]) -> Float32[Array, "B _"]:
        kernel, bias = self.kernel[...], self.bias[...]
        views = [kernel[np.array(source)].reshape(-1, kernel.shape[2]) for source in self.sources]
        return self.dot(features, jnp.concatenate(views, axis=1)) + jnp.tile(bias, len(views))[None]


class _EquivariantModule(nnx.Module):
    def __init__(self, config: EquivariantMlp, rngs: nnx.Rngs):
        squares, actions = map(np.array, config.symmetries)
        products, inverses = _group(squares)
        self.depth = config.depth
        # View h gives action a the logit that view 0 gives the action which symmetry h moves to a.
        self.actions = tuple(map(tuple, actions[inverses].tolist()))
        self.dot = mixed_product if compute_dtype(config.precision) == jnp.bfloat16 else jnp.matmul
        features = config.width // len(squares)
        planes = config.observation_shape[-1]
        for layer in range(config.depth):
            sources, features_in = (products, features) if layer else (squares, planes)
            setattr(self, f"hidden_{layer}", _Layer(sources[inverses].tolist(), features_in, features, self.dot, rngs))
        init = nnx.initializers.variance_scaling(_LAST_SCALE**2 / len(squares), "fan_in", "truncated_normal")
        self.policy = nnx.Param(init(rngs.params(), (features, config.num_actions)))
        self.policy_bias = nnx.Param(jnp.zeros(config.num_actions))
        self.value = linear(features, 1, jnp.float32, rngs, scale=_LAST_SCALE)

    def __call__(self, observations: Float32[Array, "B *observation"], train: bool) -> NetworkOutput:
        del train
        features = observations.reshape(len(observations), -1)
        for layer in range(self.depth):
            features = jax.nn.relu(getattr(self, f"hidden_{layer}")(features))
        views = [self.policy[...][:, np.array(actions)] for actions in self.actions]
        bias = self.policy_bias[...][np.array(self.actions)].mean(axis=0)
        logits = self.dot(features, jnp.concatenate(views, axis=0)) + bias[None]
        mean = features.reshape(len(features), len(views), -1).mean(axis=1)
        return NetworkOutput(logits, jnp.tanh(self.value(mean)[:, 0]))


def _group(squares: Int[np.ndarray, "S Q"]) -> tuple[Int[np.ndarray, "S S"], Int[np.ndarray, "S"]]:
    """The symmetry that is g after h, [g, h], and the inverse of each."""
    number = {tuple(each): index for index, each in enumerate(squares.tolist())}
    products = np.array([[number[tuple(first[second])] for second in squares] for first in squares])
    return products, np.argwhere(products == 0)[:, 1]
