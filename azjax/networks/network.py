"""A network is a frozen pair of pure functions, `init` and `apply`. Flax NNX stays inside this package.

Axis letters: `B` batch, `A` actions.
"""

import abc
import functools
import math
from typing import Any

import chex
import jax
from flax import nnx

from azjax.games.game import Game

Variables = dict[str, Any]
"""`{"params": ..., "batch_stats": ...}`: nested dictionaries of arrays; only `params` are trained."""


class Network(abc.ABC):
    """Policy and value of a position. Subclasses are frozen dataclasses, hashable by value."""

    @abc.abstractmethod
    def module(self, observation_shape: tuple[int, ...], num_actions: int, rngs: nnx.Rngs) -> nnx.Module:
        """The NNX module: `module(observations, train) -> (prior_logits [B, A], value [B])`.

        Its last policy layer is a linear one named `policy`, from which `apply` reads A.
        """

    def init(self, key: chex.PRNGKey, game: Game) -> Variables:
        """Fresh variables for `game`."""
        module = self.module(game.observation_shape, game.num_actions, nnx.Rngs(key))
        return _variables(module)[1]

    def apply(
        self, variables: Variables, observations: chex.Array, train: bool
    ) -> tuple[chex.Array, chex.Array, Variables]:
        """Judges a batch of positions.

        Args:
          variables: from `init`.
          observations: float32 [B, *observation_shape].
          train: normalise by the batch and update the running averages (else by the running averages).

        Returns:
          prior_logits: float32 [B, A], of all actions, legal or not.
          value: float32 [B]; expected result for the player to move, in -1..1.
          new_variables: `variables` with the running averages of this batch.
        """
        num_actions = variables["params"]["policy"]["bias"].shape[0]
        graph, params, batch_stats = _abstract(self, observations.shape[1:], num_actions)
        # These are filled in place: the cached ones stay empty.
        params, batch_stats = (jax.tree.map(lambda leaf: leaf, state) for state in (params, batch_stats))
        nnx.replace_by_pure_dict(params, variables["params"])
        nnx.replace_by_pure_dict(batch_stats, variables["batch_stats"])
        module = nnx.merge(graph, params, batch_stats, copy=True)
        prior_logits, value = module(observations, train)
        return prior_logits, value, _variables(module)[1]

    def summary(self, game: Game) -> str:
        """One line a layer (name, shapes), and the number of trained parameters."""
        variables = jax.eval_shape(lambda: self.init(jax.random.key(0), game))
        layers: dict[str, list[str]] = {}
        total = 0
        for path, leaf in jax.tree_util.tree_leaves_with_path(variables["params"]):
            *layer, name = (str(entry.key) for entry in path)
            layers.setdefault(".".join(layer), []).append(f"{name} {'x'.join(map(str, leaf.shape))}")
            total += math.prod(leaf.shape)
        width = max(map(len, layers))
        lines = [f"  {layer:<{width}}  {', '.join(shapes)}" for layer, shapes in layers.items()]
        return "\n".join([f"{self}", *lines, f"  {total:,} parameters"])


def _variables(module: nnx.Module) -> tuple[nnx.GraphDef, Variables]:
    graph, params, batch_stats = _split(module)
    return graph, {"params": nnx.to_pure_dict(params), "batch_stats": nnx.to_pure_dict(batch_stats)}


@functools.cache
def _abstract(
    network: Network, observation_shape: tuple[int, ...], num_actions: int
) -> tuple[nnx.GraphDef, nnx.State, nnx.State]:
    module = nnx.eval_shape(lambda: network.module(observation_shape, num_actions, nnx.Rngs(0)))
    return _split(module)


def _split(module: nnx.Module) -> tuple[nnx.GraphDef, nnx.State, nnx.State]:
    split: Any = nnx.split(module, nnx.Param, nnx.BatchStat)
    return split
