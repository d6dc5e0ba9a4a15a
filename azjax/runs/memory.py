"""The memory that a run needs, checked before it begins."""

import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import jax
from jaxtyping import PyTree

from azjax.core.errors import MemoryInUseError, SettingsError
from azjax.games.game import AnyGame
from azjax.networks import Variables
from azjax.training.config import Config
from azjax.training.iteration import TrainState

_USABLE = 0.8  # of the memory of a machine; the system and other programs have the rest


class Memory(NamedTuple):
    """Bytes of memory: those that are free now, and all that this process could have."""

    free: int
    total: int


@dataclasses.dataclass(frozen=True)
class MemoryNeed:
    """Bytes that a run needs on each of its devices.

    Attributes:
      replay: the replay.
      learner: all else in the state: weights, optimizer and running games.
      trees: the trees of one search.
      temporary: what else the compiled iteration needs, by XLA's analysis; 0 until it is compiled.
    """

    replay: int
    learner: int
    trees: int
    temporary: int = 0

    @property
    def total(self) -> int:
        return self.replay + self.learner + self.trees + self.temporary

    def with_temporary(self, compiled: jax.stages.Compiled) -> "MemoryNeed":
        """The need including the temporary arrays of the compiled iteration, where the backend reports them."""
        analysis = compiled.memory_analysis()
        if analysis is None:
            return self
        bytes_ = analysis.argument_size_in_bytes + analysis.temp_size_in_bytes
        # Outputs that reuse the memory of the donated state count once.
        bytes_ += analysis.output_size_in_bytes - analysis.alias_size_in_bytes
        return dataclasses.replace(self, temporary=max(0, bytes_ - (self.replay + self.learner + self.trees)))

    def check(self, config: Config, memory: Memory) -> None:
        """Refuses a run that needs more than is free.

        Raises:
          SettingsError: it does; the message names the largest part and the field to lower.
          MemoryInUseError: it does, and would fit if others did not use so much.
        """
        if self.total > memory.free:
            error = MemoryInUseError if self.total <= _USABLE * memory.total else SettingsError
            raise error(f"the memory is too small: {show_bytes(memory.free)} are free, and {self.explain(config)}")

    def explain(self, config: Config) -> str:
        """The size of each part, and the field to lower for the largest."""
        searches = f"num_games = {config.num_games}, num_simulations = {config.num_simulations}"
        restarts = ", restart_candidates" if config.restart_candidates else ""
        parts = [
            (self.replay, f"replay %s (replay_size = {config.replay_size})", "replay_size"),
            (self.trees, f"search trees %s ({searches})", "num_games or num_simulations"),
            (self.learner, "weights, optimizer and games %s", "width, depth or num_games"),
            (
                self.temporary,
                f"temporary arrays %s (batch_size = {config.batch_size})",
                f"num_games, batch_size{restarts} or width",
            ),
        ]
        sizes = ", ".join(name % show_bytes(size) for size, name, _ in parts if size)
        return f"about {show_bytes(self.total)} are needed: {sizes}; lower {max(parts)[2]}"


def memory_need(game: AnyGame, config: Config, state: TrainState, num_devices: int = 1) -> MemoryNeed:
    """The need by shapes alone, without temporary arrays.

    Args:
      game: the game that is learned.
      config: the configuration of the run.
      state: the state of the run, or its shapes, on all devices together.
      num_devices: number of devices over which the run is split.
    """
    network = config.make_network(game)

    def trees(variables: Variables) -> PyTree:
        states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), config.num_games // num_devices))
        policy = config.make_policy(game, network)
        if not config.reuse_tree:  # else trees have room for what is kept
            policy = dataclasses.replace(policy, max_nodes=config.num_simulations + 1)
        return policy.empty_tree(variables, states)

    replay, games = _num_bytes(state.replay), _num_bytes(state.games)
    return MemoryNeed(
        replay=replay // num_devices,
        learner=_num_bytes(state) - replay - games + games // num_devices,
        trees=_num_bytes(jax.eval_shape(trees, state.variables)),
    )


def memory_of(device: jax.Device, sharers: int = 1) -> Memory:
    """The memory of a device; where it has none of its own, its share of the machine's among `sharers` devices."""
    stats = device.memory_stats()
    if stats and "bytes_limit" in stats:
        limit = int(stats["bytes_limit"])
        return Memory(limit - int(stats["bytes_in_use"]), limit)
    free, total = memory_of_machine()
    return Memory(free // sharers, total // sharers)


def memory_of_machine(root: Path = Path("/")) -> Memory:
    """The main memory that this process may allocate, within its control groups (containers, SLURM).

    Args:
      root: the folder that contains `proc` and `sys`.
    """
    try:
        lines = (line.split() for line in (root / "proc/meminfo").read_text().splitlines())
        sizes = {name: 1024.0 * int(size) for name, size, *_ in lines}
        free, total = sizes["MemAvailable:"], sizes["MemTotal:"]
    except (OSError, ValueError, KeyError):  # not Linux
        pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return Memory(pages, pages)
    for folder, limit, usage, reclaimable in _groups(root):
        try:
            most = int((folder / limit).read_text())
            used = int((folder / usage).read_text())
            stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        except (OSError, ValueError):  # no such group, or no limit
            continue
        # Cached files can be evicted.
        free, total = min(free, most - used + int(stat.get(reclaimable, 0))), min(total, most)
    return Memory(int(max(free, 0)), int(total))


def _groups(root: Path) -> Iterator[tuple[Path, str, str, str]]:
    """The folders of the control groups of this process, and their files: limit, usage; and what can be reclaimed."""
    try:
        groups = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for group in groups:
        _, controllers, path = group.split(":", 2)
        # Version 2 has one hierarchy, version 1 has one for each controller.
        if controllers == "":
            files, mount = ("memory.max", "memory.current", "inactive_file"), root / "sys/fs/cgroup"
        elif "memory" in controllers.split(","):
            files = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            mount = root / "sys/fs/cgroup/memory"
        else:
            continue
        # Every parent group has a limit too. In a container the path itself may be missing, but its root is there.
        inside = mount / path.lstrip("/")
        for folder in (inside, *inside.parents):
            yield folder, *files
            if folder == mount:
                break


def _num_bytes(tree: PyTree) -> int:
    return sum(int(leaf.size * leaf.dtype.itemsize) for leaf in jax.tree.leaves(tree))


def show_bytes(num_bytes: int) -> str:
    """A number of bytes with a readable unit."""
    for scale, unit in ((1e9, "GB"), (1e6, "MB")):
        if num_bytes >= scale:
            return f"{num_bytes / scale:.1f} {unit}"
    return f"{num_bytes / 1e3:.1f} kB"
