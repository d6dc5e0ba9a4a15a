"""A residual network of dense layers along the lines of the board.

A layer reads all squares of a row, or of a column, at once, and is the same for each row, or column. So two layers see
the whole board, and each is one matrix product: along 7 squares of 32 channels it has 224 x 224 weights. Networks for
images mix along rows and columns likewise (Hou et al. 2021, "Vision Permutator"; Tang et al. 2021, "Sparse MLP for
Image Recognition").

Axis letters: `B` batch, `R` rows, `C` columns, `F` features or channels.
"""

import dataclasses

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float32

from azjax.networks.board_heads import BoardHeads, LaidOutNetwork
from azjax.networks.layers import Dtype, compute_dtype, linear
from azjax.networks.network import NetworkOutput


@dataclasses.dataclass(frozen=True)
class AxialNet(LaidOutNetwork):
    """`depth` residual blocks of a layer along columns and one along rows, of `width` channels on each square.

    `BoardHeads` lists the outputs; its layers have twice as many channels.
    """

    width: int = 32
    depth: int = 4
    precision: str = "float32"

    def module(self, rngs: nnx.Rngs) -> nnx.Module:
        return _AxialModule(self, rngs)


class _AlongRows(nnx.Module):
    """A layer along rows without bias, then batch normalization: [B, R, C, features_in] to [B, R, C, features_out]."""

    def __init__(self, columns: int, features_in: int, features_out: int, dtype: Dtype, rngs: nnx.Rngs):
        self.line = linear(columns * features_in, columns * features_out, dtype, rngs, use_bias=False)
        self.norm = nnx.BatchNorm(features_out, momentum=0.9, rngs=rngs)

    def __call__(self, planes: Float32[Array, "B R C _"], train: bool) -> Float32[Array, "B R C F"]:
        batch, rows, columns, _ = planes.shape
        lines = self.line(planes.reshape(batch * rows, -1)).reshape(batch, rows, columns, -1)
        normed: Array = self.norm(lines, use_running_average=not train)
        return normed


class _Block(nnx.Module):
    """A layer along columns and one along rows, then the sum."""

    def __init__(self, rows: int, columns: int, width: int, dtype: Dtype, rngs: nnx.Rngs):
        self.along_columns = _AlongRows(rows, width, width, dtype, rngs)
        self.along_rows = _AlongRows(columns, width, width, dtype, rngs)

    def __call__(self, planes: Float32[Array, "B R C F"], train: bool) -> Float32[Array, "B R C F"]:
        inner = jnp.swapaxes(self.along_columns(jnp.swapaxes(planes, 1, 2), train), 1, 2)
        return jax.nn.relu(planes + self.along_rows(jax.nn.relu(inner), train))


class _AxialModule(BoardHeads):
    def __init__(self, config: AxialNet, rngs: nnx.Rngs):
        rows, columns, planes = config.observation_shape
        dtype, width = compute_dtype(config.precision), config.width
        self.depth = config.depth
        self.stem = _AlongRows(columns, planes, width, dtype, rngs)
        # Tells rows apart.
        self.squares = nnx.Param(jnp.zeros((rows, columns, width)))
        for block in range(config.depth):
            setattr(self, f"block_{block}", _Block(rows, columns, width, dtype, rngs))
        super().__init__(width, 2 * width, config.layout, dtype, rngs)

    def __call__(self, observations: Float32[Array, "B R C F"], train: bool) -> NetworkOutput:
        planes = jax.nn.relu(self.stem(observations, train) + self.squares[...][None])
        for block in range(self.depth):
            planes = getattr(self, f"block_{block}")(planes, train)
        return self.heads(planes, observations, train)
