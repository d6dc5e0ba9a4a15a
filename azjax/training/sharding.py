"""Which device holds what: games, their replay and the batch of a step are split, all else is on every device.

Axis letters: `G` games side by side, `R` rows of the replay, `B` batch.
"""

from typing import Any, Literal

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from azjax.training.config import Config

GAMES = "games"
"""The one axis of the mesh."""

WHOLE = P()
BY_GAME = P(GAMES)
"""Of [G, ...], and of [B, ...]."""
BY_COLUMN = P(None, GAMES)
"""Of [R, G, ...]."""


def make_mesh(config: Config, devices: int | Literal["all"] = 1) -> Mesh:
    """The devices of a run, those of all processes in the order of their ranks.

    Args:
      config: of the run.
      devices: how many of each process; `all` that it has.

    Raises:
      ValueError: there are not as many, or games or batch cannot be split evenly over them.
    """
    there = len(jax.local_devices())
    count = there if devices == "all" else devices
    if not 1 <= count <= there:
        raise ValueError(f"devices must be 1..{there}, the devices of this process, or all; got {devices}")
    taken = [
        device
        for process in range(jax.process_count())
        for device in [device for device in jax.devices() if device.process_index == process][:count]
    ]
    for field in ("num_games", "batch_size"):
        if getattr(config, field) % len(taken):
            raise ValueError(
                f"{field} must be a multiple of the number of devices, {len(taken)}; got {getattr(config, field)}"
            )
    return Mesh(np.array(taken), (GAMES,), axis_types=(AxisType.Auto,))


def place(mesh: Mesh, spec: P, tree: Any) -> Any:
    """The arrays, or their shapes, of `tree`, with the sharding: what is known of shapes alone is only told it."""
    sharding = NamedSharding(mesh, spec)

    def one(leaf: Any) -> Any:
        if isinstance(leaf, jax.ShapeDtypeStruct):
            return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding)
        return jax.device_put(leaf, sharding)

    return jax.tree.map(one, tree)
