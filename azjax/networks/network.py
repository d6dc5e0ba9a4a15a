"""What a network is: two pure functions, `init` and `apply`. Flax NNX stays inside this package.

Axis letters: `B` batch, `A` actions.
"""

import abc
import dataclasses
import math
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

import jax
from flax import nnx
from jaxtyping import Array, Float32, PRNGKeyArray, PyTree

from azjax.core.errors import InputError
from azjax.core.pytree import pytree_dataclass
from azjax.core.remember import remember
from azjax.games.game import AnyGame

Variables: TypeAlias = dict[str, PyTree]
"""Collections of arrays by name. `params` are trained; `apply` updates any others, such as `batch_stats`."""


@pytree_dataclass
class NetworkOutput:
    """What a network says of a batch of positions.

    Attributes:
      prior_logits: of all actions, legal or not.
      value: expected result for the player to move, in -1..1.
      auxiliary: further outputs by name, each with leading axis B. Loss terms may read them, and the search
        reads `value_error` alone, where it is asked to (see `azjax/search/uncertainty.py`).
    """

    prior_logits: Float32[Array, "B A"]
    value: Float32[Array, "B"]
    auxiliary: dict[str, Array] = dataclasses.field(default_factory=dict)


@runtime_checkable
class Network(Protocol):
    """Policy and value of a position. Any object with these methods is one, if it is hashable by value."""

    def init(self, key: PRNGKeyArray, game: AnyGame) -> Variables:
        """Fresh variables for `game`."""
        ...

    def apply(
        self, variables: Variables, observations: Float32[Array, "B *observation"], train: bool
    ) -> tuple[NetworkOutput, Variables]:
        """Evaluates a batch of positions.

        Args:
          variables: from `init`.
          observations: see `Game.observe`.
          train: True in a learning step: a network with batch normalization normalizes by the batch and updates its
            running averages.

        Returns:
          the output, and the variables with such updates.
        """
        ...


@runtime_checkable
class GameShape(Protocol):
    """The part of a game that an `NnxNetwork` is built for."""

    @property
    def observation_shape(self) -> tuple[int, ...]: ...
    @property
    def num_actions(self) -> int: ...


OF_GAME = {"of_game": True}
"""The metadata of fields that `for_game` sets. Run folders do not keep them."""
_S = TypeVar("_S", bound="NnxNetwork")


@dataclasses.dataclass(frozen=True)
class NnxNetwork(abc.ABC):
    """A network made of one Flax NNX module. Subclasses are frozen dataclasses that add fields and `module`.

    Attributes:
      observation_shape: of one position; `for_game` sets it.
      num_actions: A; likewise, 0 before.
    """

    observation_shape: tuple[int, ...] = dataclasses.field(default=(), repr=False, kw_only=True, metadata=OF_GAME)
    num_actions: int = dataclasses.field(default=0, repr=False, kw_only=True, metadata=OF_GAME)

    @abc.abstractmethod
    def module(self, rngs: nnx.Rngs) -> nnx.Module:
        """The module, called as `module(observations, train) -> NetworkOutput`. It holds `Param` and `BatchStat`."""

    def for_game(self: _S, game: GameShape) -> _S:
        """The network with the shapes of `game`.

        Raises:
          InputError: it has those of another game.
        """
        shapes = game.observation_shape, game.num_actions
        if self.num_actions and shapes != (self.observation_shape, self.num_actions):
            raise InputError(
                f"{self} was built for observations {self.observation_shape} and {self.num_actions} actions, got a "
                f"game with {game.observation_shape} and {game.num_actions}"
            )
        return dataclasses.replace(self, observation_shape=game.observation_shape, num_actions=game.num_actions)

    def init(self, key: PRNGKeyArray, game: GameShape) -> Variables:
        """Fresh variables, `params` and `batch_stats`.

        Raises:
          InputError: as `for_game`.
        """
        return _variables(self.for_game(game).module(nnx.Rngs(key)))

    def apply(
        self, variables: Variables, observations: Float32[Array, "B *observation"], train: bool
    ) -> tuple[NetworkOutput, Variables]:
        """See `Network.apply`.

        Raises:
          InputError: the network has no game, or the variables are those of another network.
        """
        if not self.num_actions:
            raise InputError(f"{self} has no game; `for_game(game)` gives it one")
        _check_variables(self, variables)
        graph, params, batch_stats = jax.tree.map(lambda leaf: leaf, _abstract_parts(self))
        nnx.replace_by_pure_dict(params, variables["params"])
        nnx.replace_by_pure_dict(batch_stats, variables.get("batch_stats", {}))
        module: Any = nnx.merge(graph, params, batch_stats)
        return module(observations, train), _variables(module)


@remember
def abstract_variables(network: Network, game: GameShape) -> Variables:
    """The shapes and dtypes of the variables of a network for `game`."""
    variables: Variables = jax.eval_shape(lambda: network.init(jax.random.key(0), game))  # type: ignore[arg-type]
    return variables


def summarize(network: Network, game: AnyGame) -> str:
    """One line a layer (name, shapes), and the number of trained parameters."""
    variables = abstract_variables(network, game)
    layers: dict[str, list[str]] = {}
    total = 0
    for path, leaf in jax.tree_util.tree_leaves_with_path(variables["params"]):
        *layer, name = jax.tree_util.keystr(path, simple=True, separator=".").split(".")
        layers.setdefault(".".join(layer), []).append(f"{name} {'x'.join(map(str, leaf.shape))}")
        total += math.prod(leaf.shape)
    width = max(map(len, layers), default=0)
    lines = [f"  {layer:<{width}}  {', '.join(shapes)}" for layer, shapes in layers.items()]
    return "\n".join([f"{network}", *lines, f"  {total:,} parameters"])


@remember
def _abstract_parts(network: NnxNetwork) -> Any:
    return _split(nnx.eval_shape(lambda: network.module(nnx.Rngs(0))))


def _check_variables(network: NnxNetwork, variables: Variables) -> None:
    if not isinstance(variables, dict) or "params" not in variables:
        got = f"a dict of {', '.join(map(str, variables))}" if isinstance(variables, dict) else type(variables).__name__
        raise InputError(f'{network}: variables must be a dict with "params", as init makes it, got {got}')
    wanted = {"params": _abstract_parts(network)[1], "batch_stats": _abstract_parts(network)[2]}
    for collection, state in wanted.items():
        shapes, needed = _shapes(variables.get(collection, {})), _shapes(nnx.to_pure_dict(state))
        for name in sorted(shapes.keys() | needed.keys()):
            got, needs = shapes.get(name, "nothing"), needed.get(name, "nothing")
            if got != needs:
                raise InputError(f"{network}: {collection}/{name} must have the shape {needs}, got {got}")


def _shapes(tree: PyTree) -> dict[str, Any]:
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator="/"): jax.numpy.shape(leaf) for path, leaf in leaves}


def _variables(module: nnx.Module) -> Variables:
    _, params, batch_stats = _split(module)
    return {"params": nnx.to_pure_dict(params), "batch_stats": nnx.to_pure_dict(batch_stats)}


def _split(module: nnx.Module) -> Any:
    return nnx.split(module, nnx.Param, nnx.BatchStat)
