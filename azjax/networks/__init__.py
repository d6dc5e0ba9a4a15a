"""Networks by name, and the contract for your own. Flax is imported here and nowhere else."""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from azjax.core.errors import AzjaxError, InputError
from azjax.core.registry import Registry
from azjax.core.whole_numbers import whole
from azjax.networks.axial import AxialNet
from azjax.networks.board import BoardNet
from azjax.networks.check import check_network, in_one_line
from azjax.networks.equivariant_mlp import EquivariantMlp
from azjax.networks.layers import activation_function, compute_dtype
from azjax.networks.mlp import Mlp
from azjax.networks.network import (
    GameShape,
    Network,
    NetworkOutput,
    NnxNetwork,
    Variables,
    abstract_variables,
    summarize,
)
from azjax.networks.resnet import Resnet
from azjax.networks.se_resnet import SeResnet

__all__ = [
    "AxialNet",
    "BoardNet",
    "EquivariantMlp",
    "Mlp",
    "Network",
    "NetworkOutput",
    "NnxNetwork",
    "Resnet",
    "SeResnet",
    "Variables",
    "abstract_variables",
    "check_network",
    "check_settings",
    "make_network",
    "network_source",
    "register",
    "settings_of",
    "summarize",
]


NETWORKS: Registry[Callable[..., Network]] = Registry("network", "azjax.networks")
_Factory = TypeVar("_Factory", bound=Callable[..., Network])


def register(name: str) -> Callable[[_Factory], _Factory]:
    """Decorator: gives a network a name, which configurations and `azjax train --network NAME` then take.

    The decorated class or function is called with those of `width`, `depth`, `precision` and `activation` that it has
    as parameters.

    Raises:
      InputError: the name is taken.
    """
    return NETWORKS.register(name)


_OURS: dict[str, Callable[..., Network]] = {
    "mlp": Mlp,
    "equivariant_mlp": EquivariantMlp,
    "resnet": Resnet,
    "se_resnet": SeResnet,
    "board": BoardNet,
    "axial": AxialNet,
}
for _name, _network in _OURS.items():
    register(_name)(_network)


def make_network(
    name: str | Network,
    game: GameShape,
    *,
    width: int,
    depth: int,
    precision: str = "float32",
    activation: str = "relu",
) -> Network:
    """The network for `game`.

    Args:
      name: `mlp`, `equivariant_mlp`, `resnet`, `se_resnet`, `board`, `axial`, a registered name, or the network itself,
        which needs no settings.
      game: gives the shape of an observation and the number of actions.
      width: units of a layer, or channels.
      depth: layers, or residual blocks.
      precision: what the hidden layers compute in, `float32` or `bfloat16`. Variables and results are float32.
      activation: of the blocks of `equivariant_mlp`, `relu` or `squared_relu`.

    Raises:
      InputError: see `check_settings` and `check_network`; a width below 2 for `se_resnet` or `board`.
    """
    check_settings(name, width=width, depth=depth, precision=precision, activation=activation)
    if isinstance(name, str):
        settings = {"width": width, "depth": depth, "precision": precision, "activation": activation}
        network = _made(name, **{setting: settings[setting] for setting in settings_of(name)})
    else:
        network = name
    if isinstance(network, NnxNetwork):
        network = network.for_game(game)
    check_network(network, game)
    return network


def _made(name: str, **settings: Any) -> Network:
    """What the factory of a network makes."""
    try:
        network = _factory(name)(**settings)
    except AzjaxError:
        raise
    except Exception as error:
        raise InputError(f"network {name}: making it raises {in_one_line(error)}") from error
    _check_object(network)
    return network


def check_settings(network: str | Network, *, width: int, depth: int, precision: str, activation: str = "relu") -> None:
    """Checks what can be checked without a game.

    Raises:
      InputError: an unknown name, precision or activation (the message lists the known ones), a size below 1, or an
        object that is no network.
    """
    if not isinstance(network, str):
        _check_object(network)
        return
    _factory(network)
    for field, size in (("width", width), ("depth", depth)):
        if (whole(size) or 0) < 1:
            raise InputError(f"network {field} must be a whole number of at least 1, got {size!r}")
    compute_dtype(precision)
    activation_function(activation)


def _check_object(network: object) -> None:
    """Raises InputError for an object that is no network."""
    if not isinstance(network, Network):
        raise InputError(f"network must be a name or an object with init and apply, got {network!r}")
    try:
        hash(network)
    except TypeError as error:
        raise InputError(f"a network must be hashable, as a frozen dataclass is: {error}") from error


def settings_of(network: str | Network) -> list[str]:
    """Those of the settings of `make_network` that a registered network is made with; none for the object itself.

    Raises:
      InputError: an unknown name (the message lists the known ones).
    """
    known = inspect.signature(_factory(network)).parameters if isinstance(network, str) else {}
    return [setting for setting in ("width", "depth", "precision", "activation") if setting in known]


def network_source(network: str | Network) -> Callable[..., Network] | Network:
    """What defines the network: the class or function registered by that name, or the object itself."""
    return _factory(network) if isinstance(network, str) else network


def _factory(name: str) -> Callable[..., Network]:
    factory = NETWORKS.find(name)
    if factory is None:
        raise NETWORKS.unknown(name, NETWORKS.names())
    return factory
