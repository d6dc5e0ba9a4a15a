"""A residual perceptron that turns with the board: the policy of a turned position is the turned policy, the value stays.

A layer has a view of the board for each symmetry of the game: turning the position exchanges the views. So the views
share their weights, S times fewer than those of a dense layer of the same width (Cohen and Welling 2016, "Group
Equivariant Convolutional Networks"). What the network learns of one position it knows of all S images of it.

Such a layer is a convolution over the group, hence a product for each irreducible representation of the group in its
Fourier transform (Kondor and Trivedi 2018, "On the Generalization of Equivariance and Convolution in Neural Networks to
the Action of Compact Groups"). With all eight symmetries of a square that takes 5 times fewer multiplications than the
dense layer. The weights are those of the products. A residual block reads its features scaled to a mean square of 1 (He
et al. 2016, "Identity Mappings in Deep Residual Networks"; Zhang and Sennrich 2019, "Root Mean Square Layer
Normalization").

Axis letters: `B` batch, `S` symmetries and views, `D` dimension of a representation, `F` features of a view, `I` and `O`
those in and out, `Q` squares, `A` actions.
"""

import dataclasses
import itertools
import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

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
_EPSILON = 1e-6

_Views: TypeAlias = list[Float32[Array, "B F"]]
"""The features of each view."""
_Coefficients: TypeAlias = list[Float32[Array, "_ _"]]
"""The Fourier transform of views: for each irreducible representation a matrix of D*D features, [D*B, D*F]."""
_Dot: TypeAlias = Callable[[Array, Array], Array]


@dataclasses.dataclass(frozen=True)
class EquivariantMlp(NnxNetwork):
    """A layer and `depth` residual blocks of two layers, each of `width` units: `width / S` for each of S symmetries.

    `symmetries` are those of the game; `for_game` sets them.
    """

    width: int = 512
    depth: int = 2
    precision: str = "float32"
    symmetries: BoardSymmetries = dataclasses.field(default=BoardSymmetries((), (), ()), repr=False, kw_only=True)

    def for_game(self, game: GameShape) -> "EquivariantMlp":
        """As `NnxNetwork.for_game`.

        Raises:
          InputError: also for a shape without rules, for what `board_symmetries` refuses, for turns without
            reflections, and for a width that is no multiple of the number of symmetries.
        """
        if not isinstance(game, Game):
            raise InputError(f"{self} needs a game with symmetries, got {game!r}")
        symmetries = board_symmetries(game)
        if self.width % len(symmetries.squares):
            raise InputError(
                f"{self}: width must be a multiple of the {len(symmetries.squares)} symmetries of {game.name}"
            )
        if not _representations(symmetries):
            raise InputError(f"{self}: the symmetries of {game.name} must be reflections or include them")
        return dataclasses.replace(super().for_game(game), symmetries=symmetries)

    def module(self, rngs: nnx.Rngs) -> nnx.Module:
        return _EquivariantModule(self, rngs)


class _Group:
    """The Fourier transform of views over the group of symmetries, and back. It keeps the sum of squares."""

    def __init__(self, symmetries: BoardSymmetries):
        scaled = [each * math.sqrt(each.shape[1] / len(each)) for each in _representations(symmetries)]
        self.representations = tuple(tuple(map(tuple, each.reshape(len(each), -1).tolist())) for each in scaled)
        self.dimensions = tuple(each.shape[1] for each in scaled)
        self.size = len(symmetries.squares)

    def transform(self, views: _Views) -> _Coefficients:
        coefficients = []
        for dimension, elements in zip(self.dimensions, self.representations, strict=True):
            entries = [_combined(weights, views) for weights in zip(*elements, strict=True)]
            rows = [jnp.concatenate(entries[row : row + dimension], 1) for row in range(0, len(entries), dimension)]
            coefficients.append(jnp.concatenate(rows, 0))
        return coefficients

    def inverse(self, coefficients: _Coefficients) -> _Views:
        entries = [
            entry
            for dimension, each in zip(self.dimensions, coefficients, strict=True)
            for row in jnp.split(each, dimension, 0)
            for entry in jnp.split(row, dimension, 1)
        ]
        weights = [list(itertools.chain(*each)) for each in zip(*self.representations, strict=True)]
        return [_combined(of_view, entries) for of_view in weights]

    def normalized(self, coefficients: _Coefficients) -> _Coefficients:
        """Scaled, so that the features of a position have a mean square of 1."""
        squares = [
            sum(jnp.sum(row**2, axis=1, keepdims=True) for row in jnp.split(each, dimension, 0))
            for dimension, each in zip(self.dimensions, coefficients, strict=True)
        ]
        units = coefficients[0].shape[1] * self.size
        scale = jax.lax.rsqrt(sum(squares) / units + _EPSILON)
        return [
            each * jnp.tile(scale, (dimension, 1))
            for dimension, each in zip(self.dimensions, coefficients, strict=True)
        ]


def _combined(weights: Sequence[float], arrays: Sequence[Array]) -> Array:
    """The weighted sum."""
    terms = [array * np.float32(weight) for weight, array in zip(weights, arrays, strict=True) if weight]
    return sum(terms[1:], terms[0])


def _representations(symmetries: BoardSymmetries) -> list[Float[np.ndarray, "S D D"]]:
    """The irreducible representations of the group, the trivial one first; none if they are not all real.

    Those of one dimension are among: one, the determinant, whether rows stay rows, and how the matrix acts on a row, a
    column or a diagonal that it keeps. The eight symmetries of a square have one of two dimensions too, the matrices.
    """
    matrices = np.array(symmetries.matrices, float).reshape(-1, 2, 2)
    determinants = np.linalg.det(matrices).round()
    rows_stay = np.where(matrices[:, 0, 0] != 0, 1.0, -1.0)
    candidates = [np.ones(len(matrices)), determinants, rows_stay, determinants * rows_stay]
    candidates += [matrices[:, 0, 0], matrices[:, 1, 1], matrices[:, 0].sum(axis=1), matrices[:, :, 0].sum(axis=1)]
    products, _ = _group(np.array(symmetries.squares))
    found: dict[tuple[float, ...], None] = {}
    for character in candidates:
        if np.array_equal(character[products], np.multiply.outer(character, character)):
            found[tuple(character.tolist())] = None
    representations = [np.array(character).reshape(-1, 1, 1) for character in found]
    if len(matrices) == len(representations) + 4:
        representations.append(matrices)
    return representations if sum(each.shape[1] ** 2 for each in representations) == len(matrices) else []


class _Layer(nnx.Module):
    """A dense layer that commutes with the symmetries, on coefficients: a product for each representation."""

    def __init__(self, group: _Group, features: int, dot: _Dot, rngs: nnx.Rngs, scale: float = 1):
        self.dot, self.size, self.count = dot, group.size, len(group.dimensions)
        init = nnx.initializers.variance_scaling(scale**2, "fan_in", "truncated_normal")
        for number, dimension in enumerate(group.dimensions):
            shape = dimension * features, dimension * features
            setattr(self, f"kernel_{number}", nnx.Param(init(rngs.params(), shape)))
        self.bias = nnx.Param(jnp.zeros(features))

    def __call__(self, coefficients: _Coefficients) -> _Coefficients:
        kernels = [getattr(self, f"kernel_{number}")[...] for number in range(self.count)]
        trivial, *others = [self.dot(each, kernel) for each, kernel in zip(coefficients, kernels, strict=True)]
        # A bias that all views have.
        return [trivial + math.sqrt(self.size) * self.bias[...][None], *others]


class _Block(nnx.Module):
    """`x + second(relu(first(normalized(x))))`; the second layer begins small, so that a block hardly changes x."""

    def __init__(self, group: _Group, features: int, dot: _Dot, rngs: nnx.Rngs):
        self.group = group
        self.first = _Layer(group, features, dot, rngs)
        self.second = _Layer(group, features, dot, rngs, scale=_LAST_SCALE)

    def __call__(self, coefficients: _Coefficients) -> _Coefficients:
        views = self.group.inverse(self.first(self.group.normalized(coefficients)))
        added = self.second(self.group.transform([jax.nn.relu(view) for view in views]))
        return [each + more for each, more in zip(coefficients, added, strict=True)]


class _EquivariantModule(nnx.Module):
    def __init__(self, config: EquivariantMlp, rngs: nnx.Rngs):
        squares, actions = np.array(config.symmetries.squares), np.array(config.symmetries.actions)
        _, inverses = _group(squares)
        self.depth, self.group = config.depth, _Group(config.symmetries)
        # View h reads square q where view 0 reads the square that symmetry h moves to q; so it does with actions.
        self.squares = tuple(map(tuple, squares[inverses].tolist()))
        self.actions = tuple(map(tuple, actions[inverses].tolist()))
        self.dot = mixed_product if compute_dtype(config.precision) == jnp.bfloat16 else jnp.matmul
        features, num_squares = config.width // len(squares), squares.shape[1]
        shape = num_squares * config.observation_shape[-1], features
        init = nnx.initializers.variance_scaling(1.0, "fan_in", "truncated_normal")
        self.stem = nnx.Param(init(rngs.params(), shape).reshape(num_squares, -1, features))
        self.stem_bias = nnx.Param(jnp.zeros(features))
        for block in range(config.depth):
            setattr(self, f"block_{block}", _Block(self.group, features, self.dot, rngs))
        init = nnx.initializers.variance_scaling(_LAST_SCALE**2 / len(squares), "fan_in", "truncated_normal")
        self.policy = nnx.Param(init(rngs.params(), (features, config.num_actions)))
        self.policy_bias = nnx.Param(jnp.zeros(config.num_actions))
        self.value = linear(features, 1, jnp.float32, rngs, scale=_LAST_SCALE)

    def __call__(self, observations: Float32[Array, "B *observation"], train: bool) -> NetworkOutput:
        del train
        stem = self.stem[...]
        kernel = jnp.concatenate([stem[np.array(each)].reshape(-1, stem.shape[2]) for each in self.squares], axis=1)
        bias = jnp.tile(self.stem_bias[...], self.group.size)
        features = jax.nn.relu(self.dot(observations.reshape(len(observations), -1), kernel) + bias[None])
        coefficients = self.group.transform(jnp.split(features, self.group.size, axis=1))
        for block in range(self.depth):
            coefficients = getattr(self, f"block_{block}")(coefficients)
        views = [jax.nn.relu(view) for view in self.group.inverse(self.group.normalized(coefficients))]
        kernel = jnp.concatenate([self.policy[...][:, np.array(each)] for each in self.actions], axis=0)
        bias = self.policy_bias[...][np.array(self.actions)].mean(axis=0)
        logits = self.dot(jnp.concatenate(views, axis=1), kernel) + bias[None]
        mean = sum(views[1:], views[0]) / len(views)
        return NetworkOutput(logits, jnp.tanh(self.value(mean)[:, 0]))


def _group(squares: Int[np.ndarray, "S Q"]) -> tuple[Int[np.ndarray, "S S"], Int[np.ndarray, "S"]]:
    """The symmetry that is g after h, [g, h], and the inverse of each."""
    number = {tuple(each): index for index, each in enumerate(squares.tolist())}
    products = np.array([[number[tuple(first[second])] for second in squares] for first in squares])
    return products, np.argwhere(products == 0)[:, 1]
