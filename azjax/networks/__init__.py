"""Networks behind a name. Flax is imported here and nowhere else."""

from azjax.networks.mlp import Mlp
from azjax.networks.network import Network, Variables
from azjax.networks.resnet import Resnet

__all__ = ["Mlp", "Network", "Resnet", "Variables", "make_network"]

_NETWORKS = {"mlp": Mlp, "resnet": Resnet}


def make_network(name: str, *, width: int, depth: int) -> Network:
    """Builds a network by name.

    Raises:
      ValueError: an unknown name (the message lists the known ones), or a size below 1.
    """
    if name not in _NETWORKS:
        raise ValueError(f"unknown network {name!r}; available: {', '.join(_NETWORKS)}")
    for field, size in (("width", width), ("depth", depth)):
        if size < 1:
            raise ValueError(f"network {field} must be at least 1, got {size}")
    return _NETWORKS[name](width, depth)
