"""A residual perceptron that turns with the board: its policy of a turned position is the turned policy.

A layer has a view of the board for each symmetry of the game: turning the position exchanges the views. So the views
share their weights, S times fewer than those of a dense layer of the same width (Cohen and Welling 2016, "Group
Equivariant Convolutional Networks"). What the network learns about one position holds for all its S images.

Such a layer is a convolution over the group, hence a product for each irreducible representation of the group in its
Fourier transform (Kondor and Trivedi 2018, "On the Generalization of Equivariance and Convolution in Neural Networks to
the Action of Compact Groups"). With all eight symmetries of a square that takes 5 times fewer multiplications than the
dense layer. The weights are those of the products. A residual block reads its features scaled to a mean square of 1 (He
et al. 2016, "Identity Mappings in Deep Residual Networks"; Zhang and Sennrich 2019, "Root Mean Square Layer
Normalization").

Axis letters: `B` batch, `S` symmetries and views, `D` dimension of a representation, `F` features of a view, `O`
orbits, `N` squares or cells.
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
from azjax.games.board_symmetries import BoardSymmetries, board_symmetries, from_cells_to_actions
from azjax.games.game import Game
from azjax.networks.layers import activation_function, compute_dtype, linear
from azjax.networks.network import OF_GAME, GameShape, NetworkOutput, NnxNetwork
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

    `activation` is that of the blocks. `symmetries` are those of the game; `for_game` sets them.
    """

    width: int = 512
    depth: int = 2
    precision: str = "float32"
    activation: str = "relu"
    symmetries: BoardSymmetries = dataclasses.field(
        default=BoardSymmetries((), (), (), ()), repr=False, kw_only=True, metadata=OF_GAME
    )

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
        self.size = len(symmetries.squares)
        self.representations = _representations(symmetries)
        self.dimensions = [each.shape[1] for each in self.representations]
        # One row for each entry of each representation, one column for each view.
        scaled = [each * math.sqrt(each.shape[1] / self.size) for each in self.representations]
        self.weights = np.concatenate([each.reshape(self.size, -1).T for each in scaled])

    def transform(self, views: _Views) -> _Coefficients:
        entries = iter(_combined(weights, views) for weights in self.weights)
        return [
            jnp.concatenate([jnp.concatenate(list(itertools.islice(entries, size)), 1) for _ in range(size)], 0)
            for size in self.dimensions
        ]

    def inverse(self, coefficients: _Coefficients) -> _Views:
        entries = [
            entry
            for dimension, each in zip(self.dimensions, coefficients, strict=True)
            for row in jnp.split(each, dimension, 0)
            for entry in jnp.split(row, dimension, 1)
        ]
        return [_combined(weights, entries) for weights in self.weights.T]

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


def _combined(weights: Float[np.ndarray, "n"], arrays: Sequence[Array]) -> Array:
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
    number = {squares: index for index, squares in enumerate(symmetries.squares)}
    # The symmetry that is one after another.
    products = np.array([[number[tuple(first[square] for square in second)] for second in number] for first in number])
    found: dict[tuple[float, ...], None] = {}
    for character in candidates:
        if np.array_equal(character[products], np.multiply.outer(character, character)):
            found[tuple(character.tolist())] = None
    representations = [np.array(character).reshape(-1, 1, 1) for character in found]
    if len(matrices) == len(representations) + 4:
        representations.append(matrices)
    return representations if sum(each.shape[1] ** 2 for each in representations) == len(matrices) else []


class _Orbits:
    """What the symmetries move to each other, of squares or of cells.

    View h sees of an orbit what symmetry h moves its representative to.

    Attributes:
      views: [S, O]; what each view sees of each orbit.
      columns: [N]; a column of the views side by side, [S*O], that is each of the N.
      means: for each representation [D, D, O], the mean over the symmetries that keep the representative.
    """

    def __init__(self, table: Int[np.ndarray, "S N"], group: _Group):
        representatives = np.flatnonzero(table.min(axis=0) == np.arange(table.shape[1]))
        self.views = table[:, representatives]
        self.columns = np.array([np.argmax(self.views == number) for number in range(table.shape[1])])
        keep = (self.views == representatives).astype(float)
        self.means = [np.einsum("sij,so->ijo", each, keep / keep.sum(axis=0)) for each in group.representations]


class _Layer(nnx.Module):
    """A dense layer that commutes with the symmetries, on coefficients: a product for each representation.

    With `orbits` the features out are those of their views: views that see the same square or cell give it the same.
    """

    def __init__(
        self,
        group: _Group,
        features_in: int,
        features_out: int,
        dot: _Dot,
        rngs: nnx.Rngs,
        scale: float = 1,
        orbits: _Orbits | None = None,
    ):
        self.group, self.dot, self.orbits = group, dot, orbits
        init = nnx.initializers.variance_scaling(scale**2, "fan_in", "truncated_normal")
        for number, dimension in enumerate(group.dimensions):
            shape = dimension * features_in, dimension * features_out
            setattr(self, f"kernel_{number}", nnx.Param(init(rngs.params(), shape)))
        self.bias = nnx.Param(jnp.zeros(features_out))

    def __call__(self, coefficients: _Coefficients) -> _Coefficients:
        products = [self.dot(each, self._kernel(number)) for number, each in enumerate(coefficients)]
        # A bias that all views have is one of the trivial representation, the first.
        return [products[0] + math.sqrt(self.group.size) * self.bias[...][None], *products[1:]]

    def _kernel(self, number: int) -> Float32[Array, "_ _"]:
        kernel = jnp.asarray(getattr(self, f"kernel_{number}")[...])
        if self.orbits is None:
            return kernel
        means = self.orbits.means[number].astype(np.float32)
        of_orbits = kernel.reshape(len(kernel), *means.shape[1:])
        return jnp.sum(of_orbits[:, :, None] * means[None], axis=1).reshape(kernel.shape)


class _Block(nnx.Module):
    """`x + second(activation(first(normalized(x))))`; the second layer begins small: a block hardly changes x."""

    def __init__(self, group: _Group, features: int, activation: str, dot: _Dot, rngs: nnx.Rngs):
        self.group, self.activation = group, activation_function(activation)
        self.first = _Layer(group, features, features, dot, rngs)
        self.second = _Layer(group, features, features, dot, rngs, scale=_LAST_SCALE)

    def __call__(self, coefficients: _Coefficients) -> _Coefficients:
        views = self.group.inverse(self.first(self.group.normalized(coefficients)))
        added = self.second(self.group.transform([self.activation(view) for view in views]))
        return [each + more for each, more in zip(coefficients, added, strict=True)]


class _EquivariantModule(nnx.Module):
    def __init__(self, config: EquivariantMlp, rngs: nnx.Rngs):
        self.depth, self.layout = config.depth, config.symmetries.layout
        self.group = group = _Group(config.symmetries)
        self.squares, self.cells = (
            _Orbits(np.array(table), group) for table in (config.symmetries.squares, config.symmetries.cells)
        )
        dot = mixed_product if compute_dtype(config.precision) == jnp.bfloat16 else jnp.matmul
        features = config.width // group.size
        planes = self.squares.views.shape[1] * config.observation_shape[-1]
        self.stem = _Layer(group, planes, features, dot, rngs)
        for block in range(config.depth):
            setattr(self, f"block_{block}", _Block(group, features, config.activation, dot, rngs))
        self.policy = _Layer(
            group, features, self.cells.views.shape[1], dot, rngs, scale=_LAST_SCALE, orbits=self.cells
        )
        self.value = linear(features, 1, jnp.float32, rngs, scale=_LAST_SCALE)

    def __call__(self, observations: Float32[Array, "B R C planes"], train: bool) -> NetworkOutput:
        del train
        batch, *_, planes = observations.shape
        squares = observations.reshape(batch, -1, planes)
        coefficients = self.stem(
            self.group.transform([squares[:, view].reshape(batch, -1) for view in self.squares.views])
        )
        for block in range(self.depth):
            coefficients = getattr(self, f"block_{block}")(coefficients)
        views = [jax.nn.relu(view) for view in self.group.inverse(self.group.normalized(coefficients))]
        cells = jnp.concatenate(self.group.inverse(self.policy(self.group.transform(views))), axis=1)
        logits = cells[:, self.cells.columns]
        if self.layout:
            logits = from_cells_to_actions(self.layout, logits, observations)
        mean = sum(views[1:], views[0]) / len(views)
        return NetworkOutput(logits, jnp.tanh(self.value(mean)[:, 0]))
