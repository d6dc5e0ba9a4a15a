"""Which device holds which arrays.

In a run the games, their replay and the batch of a learning step are split over the devices, and all else is on every
device. In a population the members are split.

Axis letters: `B` batch, `G` games side by side, `P` members, `R` rows of the replay.
"""

import contextlib
import os
from typing import Any, Literal, TypeAlias, TypeVar

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from azjax.core.errors import InputError
from azjax.core.whole_numbers import whole

Devices: TypeAlias = int | Literal["all"]
"""How many devices of each process; `all` that it has."""

GAMES = "games"
"""The mesh axis of a run."""
MEMBERS = "members"
"""The mesh axis of a population."""

WHOLE = PartitionSpec()
"""The whole array on every device."""
BY_GAME = PartitionSpec(GAMES)
"""Split arrays [G, ...] and [B, ...]."""
BY_COLUMN = PartitionSpec(None, GAMES)
"""Split arrays [R, G, ...]."""
BY_MEMBER = PartitionSpec(MEMBERS)
"""Split arrays [P, ...]."""

_T = TypeVar("_T")


def make_mesh(devices: Devices = 1, **sizes: int) -> Mesh:
    """The devices of a run, those of all processes in the order of their ranks.

    Args:
      devices: how many of each process.
      **sizes: what is split over the devices, such as `num_games=64`.

    Raises:
      InputError: there are fewer devices, or a size cannot be split evenly over them.
    """
    count = _count(devices)
    used = [
        device
        for rank in range(jax.process_count())
        for device in [device for device in jax.devices() if device.process_index == rank][:count]
    ]
    return _mesh(GAMES, used, sizes)


def make_member_mesh(population: int, devices: Devices = 1) -> Mesh:
    """The devices of this process over which a population of that many members is split.

    Raises:
      InputError: there are fewer devices, or the members cannot be split evenly over them.
    """
    return _mesh(MEMBERS, jax.local_devices()[: _count(devices)], {"population": population})


def offer_cpu_devices(count: int) -> None:
    """Splits the CPU into `count` devices, unless JAX has started already. Accelerators are not affected."""
    with contextlib.suppress(RuntimeError):
        jax.config.update("jax_num_cpu_devices", count)


def num_cores() -> int:
    """CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def devices_for_members(population: int) -> int:
    """The most devices over which the members can be split evenly. On CPU there is one device for each core."""

    def largest_divisor(limit: int) -> int:
        return max(devices for devices in range(1, limit + 1) if population % devices == 0)

    offer_cpu_devices(largest_divisor(num_cores()))
    return largest_divisor(len(jax.local_devices()))


def shard(mesh: Mesh, spec: PartitionSpec, tree: _T) -> _T:
    """Puts the arrays of a pytree on the devices of the mesh. Shapes without values get the sharding alone."""
    sharding = NamedSharding(mesh, spec)

    def shard_leaf(leaf: Any) -> Any:
        if isinstance(leaf, jax.ShapeDtypeStruct):
            return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding)
        return jax.device_put(leaf, sharding)

    sharded: _T = jax.tree.map(shard_leaf, tree)
    return sharded


def _count(devices: Devices) -> int:
    available = len(jax.local_devices())
    count = available if devices == "all" else whole(devices)
    if count is None or not 1 <= count <= available:
        raise InputError(f"devices must be 1..{available}, the devices of this process, or all; got {devices!r}")
    return count


def _mesh(axis: str, devices: list[jax.Device], sizes: dict[str, int]) -> Mesh:
    for name, size in sizes.items():
        if size % len(devices):
            raise InputError(f"{name} must be a multiple of the number of devices, {len(devices)}; got {size}")
    return Mesh(np.array(devices), (axis,), axis_types=(AxisType.Auto,))
