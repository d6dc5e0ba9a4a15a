"""Networks by name, and the contract for your own. Flax is imported here and nowhere else."""

from collections.abc import Callable
from typing import Protocol, TypeVar, runtime_checkable

from azjax.core.errors import InputError
from azjax.networks.layers import compute_dtype
from azjax.networks.mlp import Mlp
from azjax.networks.network import GameShape, Network, NetworkOutput, NnxNetwork, Variables, summarize
from azjax.networks.resnet import Resnet
from azjax.networks.se_resnet import SeResnet

__all__ = [
    "Mlp",
    "Network",
    "NetworkOutput",
    "NnxNetwork",
    "Resnet",
    "SeResnet",
    "Variables",
    "check_network",
    "make_network",
    "register",
    "summarize",
]


@runtime_checkable
class NetworkFactory(Protocol):
    """Makes a network from the shapes of a game and the settings of a configuration."""

    def __call__(
        self, observation_shape: tuple[int, ...], num_actions: int, width: int, depth: int, precision: str
    ) -> Network: ...


_Factory = TypeVar("_Factory", bound=NetworkFactory)
_FACTORIES: dict[str, NetworkFactory] = {"mlp": Mlp, "resnet": Resnet, "se_resnet": SeResnet}


def register(name: str) -> Callable[[_Factory], _Factory]:
    """Decorator: gives a network a name, which configurations and `azjax train --network NAME` then take."""

    def add(factory: _Factory) -> _Factory:
        _FACTORIES[name] = factory
        return factory

    return add


def make_network(name: str, game: GameShape, *, width: int, depth: int, precision: str = "float32") -> Network:
    """The network of that name for `game`.

    Args:
      name: `mlp`, `resnet`, `se_resnet`, or a registered one.
      game: gives the shape of an observation and the number of actions.
      width: units of a layer, or channels.
      depth: layers, or residual blocks.
      precision: what the hidden layers compute in, `float32` or `bfloat16`. Variables and results are float32.

    Raises:
      InputError: see `check_network`; a width below 2 for `se_resnet`.
    """
    check_network(name, width=width, depth=depth, precision=precision)
    return _FACTORIES[name](game.observation_shape, game.num_actions, width, depth, precision)


def check_network(name: str, *, width: int, depth: int, precision: str) -> None:
    """Checks what can be checked without a game.

    Raises:
      InputError: an unknown name or precision (the message lists the known ones), or a size below 1.
    """
    if name not in _FACTORIES:
        raise InputError(f"unknown network {name!r}; available: {', '.join(_FACTORIES)}")
    for field, size in (("width", width), ("depth", depth)):
        if size < 1:
            raise InputError(f"network {field} must be at least 1, got {size}")
    compute_dtype(precision)
