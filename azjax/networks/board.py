"""A residual network for boards of any size. It combines:

- residual blocks (He et al. 2016, "Deep Residual Learning for Image Recognition");
- global pooling in every third block and in the heads (Wu 2019, "Accelerating Self-Play Learning in Go", section 3.3);
- a policy of convolutions, and the outputs of `board_heads.py`.

No parameter's shape depends on the rows or columns of the board. Of Wu's pooling the mean that is scaled by the board's
size is left out, so that the network does not see the size.

Axis letters: `B` batch, `R` rows, `C` columns, `F` features or channels.
"""

import dataclasses

import jax
from flax import nnx
from jaxtyping import Array, Float, Float32

from azjax.core.errors import InputError
from azjax.networks.board_heads import BoardHeads, LaidOutNetwork
from azjax.networks.layers import Dtype, GlobalPoolingConv, NormedConv, compute_dtype
from azjax.networks.network import NetworkOutput

_POOLING_PERIOD = 3


@dataclasses.dataclass(frozen=True)
class BoardNet(LaidOutNetwork):
    """`depth` residual blocks of two 3x3 convolutions of `width` channels, on boards `(rows, columns, planes)`.

    `BoardHeads` lists the outputs.

    Raises:
      InputError: a width below 2, which leaves no channel beside the pooled one.
    """

    width: int = 64
    depth: int = 6
    precision: str = "float32"

    def __post_init__(self) -> None:
        if self.width < 2:
            raise InputError(f"board needs a width of at least 2, got {self.width}")

    def module(self, rngs: nnx.Rngs) -> nnx.Module:
        return _BoardModule(self, rngs)


class _Block(nnx.Module):
    """Two 3x3 convolutions, the first with global pooling if it `pools`, then the sum."""

    def __init__(self, width: int, pools: bool, dtype: Dtype, rngs: nnx.Rngs):
        quarter = max(1, width // 4)
        inner = width - quarter if pools else width
        self.first = (
            GlobalPoolingConv(width, inner, quarter, 3, dtype, rngs)
            if pools
            else NormedConv(width, inner, 3, dtype, rngs)
        )
        self.second = NormedConv(inner, width, 3, dtype, rngs)

    def __call__(self, planes: Float[Array, "B R C F"], train: bool) -> Float[Array, "B R C F"]:
        # A second ReLU after that of global pooling changes nothing.
        inner = jax.nn.relu(self.first(planes, train))
        return jax.nn.relu(planes + self.second(inner, train))


class _BoardModule(BoardHeads):
    def __init__(self, config: BoardNet, rngs: nnx.Rngs):
        dtype, width = compute_dtype(config.precision), config.width
        self.depth = config.depth
        self.stem = NormedConv(config.observation_shape[2], width, 3, dtype, rngs)
        for block in range(config.depth):
            pools = block % _POOLING_PERIOD == _POOLING_PERIOD - 1
            setattr(self, f"block_{block}", _Block(width, pools, dtype, rngs))
        super().__init__(width, width, config.layout, dtype, rngs)

    def __call__(self, observations: Float32[Array, "B R C F"], train: bool) -> NetworkOutput:
        planes = jax.nn.relu(self.stem(observations, train))
        for block in range(self.depth):
            planes = getattr(self, f"block_{block}")(planes, train)
        return self.heads(planes, observations, train)
