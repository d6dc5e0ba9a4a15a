"""Networks behind a name. Flax is imported here and nowhere else."""

from collections.abc import Callable

from azjax.core.errors import InputError
from azjax.networks.layers import compute_dtype
from azjax.networks.mlp import Mlp
from azjax.networks.network import Network, Variables
from azjax.networks.resnet import Resnet
from azjax.networks.se_resnet import SeResnet

__all__ = ["Mlp", "Network", "Resnet", "SeResnet", "Variables", "make_network"]

_NETWORKS: dict[str, Callable[[int, int, str], Network]] = {"mlp": Mlp, "resnet": Resnet, "se_resnet": SeResnet}


def make_network(name: str, *, width: int, depth: int, precision: str = "float32") -> Network:
    """Builds a network by name.

    Args:
      name: `mlp`, `resnet` or `se_resnet`.
      width: units of a layer, or channels.
      depth: layers, or residual blocks.
      precision: what the hidden layers compute in, `float32` or `bfloat16`. Variables and results are float32.

    Raises:
      ValueError: an unknown name or precision (the message lists the known ones), or a size below 1 (a width below 2
        for `se_resnet`).
    """
    if name not in _NETWORKS:
        raise InputError(f"unknown network {name!r}; available: {', '.join(_NETWORKS)}")
    for field, size in (("width", width), ("depth", depth)):
        if size < 1:
            raise InputError(f"network {field} must be at least 1, got {size}")
    compute_dtype(precision)  # refuses an unknown one
    return _NETWORKS[name](width, depth, precision)
