"""Several networks of one kind, each of which judges its share of a batch.

Axis letters: `P` networks, `B` batch, `A` actions.
"""

import dataclasses
import functools

import chex
import jax

from azjax.networks.mlp import Mlp
from azjax.networks.network import Network, Variables


@dataclasses.dataclass(frozen=True)
class Members:
    """`apply` as that of a `Network`, of `variables` with leading axes [P]: the first judges the first B / P rows, ...

    Attributes:
      network: the kind.
      count: P, which divides B.
    """

    network: Network
    count: int

    def apply(
        self, variables: Variables, observations: chex.Array, train: bool
    ) -> tuple[chex.Array, chex.Array, Variables]:
        """See `Network.apply`."""
        shares = observations.reshape(self.count, -1, *observations.shape[1:])
        judge = functools.partial(self.network.apply, train=train)
        if jax.default_backend() == "cpu" and not isinstance(self.network, Mlp):
            # Convolutions with several kernels at once would be slow there, and round otherwise than alone.
            logits, value, new = jax.lax.map(lambda share: judge(*share), (variables, shares))
        else:
            logits, value, new = jax.vmap(judge)(variables, shares)
        return logits.reshape(len(observations), -1), value.reshape(-1), new
