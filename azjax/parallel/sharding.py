"""Which device holds what: games, their replay and the batch of a step are split, all else is on every device. Of a
population the members are split.

Axis letters: `G` games side by side, `R` rows of the replay, `B` batch.
"""

import contextlib
import os
from typing import Any, Literal

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from azjax.core.errors import InputError
from azjax.training.config import Config

GAMES = "games"
"""The one axis of the mesh of a run."""

MEMBERS = "members"
"""And of that of a population."""

WHOLE = P()
BY_GAME = P(GAMES)
"""Of [G, ...], and of [B, ...]."""
BY_COLUMN = P(None, GAMES)
"""Of [R, G, ...]."""

BY_MEMBER = P(MEMBERS)


def make_mesh(config: Config, devices: int | Literal["all"] = 1) -> Mesh:
    """The devices of a run, those of all processes in the order of their ranks.

    Args:
      config: of the run.
      devices: how many of each process; `all` that it has.

    Raises:
      ValueError: there are not as many, or games or batch cannot be split evenly over them.
    """
    count = _count(devices)
    taken = [
        device
        for process in range(jax.process_count())
        for device in [device for device in jax.devices() if device.process_index == process][:count]
    ]
    for field in ("num_games", "batch_size"):
        _check_even(field, getattr(config, field), len(taken))
    return Mesh(np.array(taken), (GAMES,), axis_types=(AxisType.Auto,))


def make_mesh_of_members(count: int, devices: int | Literal["all"] = 1) -> Mesh:
    """The devices of a population of `count` members.

    Raises:
      ValueError: there are not as many, or the members cannot be split evenly over them.
    """
    taken = jax.local_devices()[: _count(devices)]
    _check_even("population", count, len(taken))
    return Mesh(np.array(taken), (MEMBERS,), axis_types=(AxisType.Auto,))


def offer_cpu_devices(count: int) -> None:
    """Makes so many devices of the CPU, where JAX does not run yet; of accelerators there are as many as there are."""
    with contextlib.suppress(RuntimeError):
        jax.config.update("jax_num_cpu_devices", count)


def num_cores() -> int:
    """CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def devices_for_members(count: int) -> int:
    """As many devices as a population of `count` can be split over evenly; on CPU there is one for each core."""

    def largest_divisor(most: int) -> int:
        return max(devices for devices in range(1, most + 1) if count % devices == 0)

    offer_cpu_devices(largest_divisor(num_cores()))
    return largest_divisor(len(jax.local_devices()))


def _count(devices: int | Literal["all"]) -> int:
    there = len(jax.local_devices())
    count = there if devices == "all" else devices
    if not 1 <= count <= there:
        raise InputError(f"devices must be 1..{there}, the devices of this process, or all; got {devices}")
    return count


def _check_even(name: str, size: int, devices: int) -> None:
    if size % devices:
        raise InputError(f"{name} must be a multiple of the number of devices, {devices}; got {size}")


def place(mesh: Mesh, spec: P, tree: Any) -> Any:
    """The arrays, or their shapes, of `tree`, with the sharding: what is known of shapes alone is only told it."""
    sharding = NamedSharding(mesh, spec)

    def one(leaf: Any) -> Any:
        if isinstance(leaf, jax.ShapeDtypeStruct):
            return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding)
        return jax.device_put(leaf, sharding)

    return jax.tree.map(one, tree)
