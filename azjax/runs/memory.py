"""Whether a run fits into the memory, told before it begins."""

import dataclasses
import os
from pathlib import Path
from typing import Any

import jax

from azjax.games.game import Game
from azjax.search import evaluators
from azjax.search.tree_memory import empty_tree
from azjax.core.errors import SettingsError
from azjax.training.config import Config


@dataclasses.dataclass(frozen=True)
class MemoryNeed:
    """Bytes that a run needs on each of its devices.

    Attributes:
      replay: the positions to learn from.
      learner: the rest of the state: weights, optimiser, running games.
      trees: of one search.
      rest: of an iteration beside these, as XLA tells once it has compiled it; 0 before that.
    """

    replay: int
    learner: int
    trees: int
    rest: int = 0

    @property
    def total(self) -> int:
        return self.replay + self.learner + self.trees + self.rest

    def with_rest(self, compiled: Any) -> "MemoryNeed":
        """The same, with all that the compiled iteration needs."""
        analysis = compiled.memory_analysis()
        if analysis is None:
            return self
        bytes_ = analysis.argument_size_in_bytes + analysis.temp_size_in_bytes
        # Outputs that take the place of the donated state count once.
        bytes_ += analysis.output_size_in_bytes - analysis.alias_size_in_bytes
        return dataclasses.replace(self, rest=max(0, bytes_ - dataclasses.replace(self, rest=0).total))

    def check(self, config: Config, free: int) -> None:
        """
        Raises:
          SettingsError: more is needed than the `free` bytes.
        """
        if self.total > free:
            raise SettingsError(f"the memory is too small: {show_bytes(free)} are free, and {self.explain(config)}")

    def explain(self, config: Config) -> str:
        """What needs how much, and which field to lower for the largest."""
        searches = f"num_games = {config.num_games}, num_simulations = {config.num_simulations}"
        parts = [
            (self.replay, f"replay %s (replay_size = {config.replay_size})", "replay_size"),
            (self.trees, f"search trees %s ({searches})", "num_games or num_simulations"),
            (self.learner, "weights, optimiser and games %s", "width, depth or num_games"),
            (
                self.rest,
                f"the rest of an iteration %s (batch_size = {config.batch_size})",
                "num_games, batch_size or width",
            ),
        ]
        told = ", ".join(name % show_bytes(size) for size, name, _ in parts if size)
        return f"about {show_bytes(self.total)} are needed: {told}; lower {max(parts)[2]}"


def memory_need(game: Game, config: Config, state: Any, num_devices: int = 1) -> MemoryNeed:
    """What the shapes alone tell of it; `state` is a `TrainState`, or the shapes of one, to split over devices."""
    evaluator = evaluators.network(config.make_network(), game)

    def trees(variables: Any) -> Any:
        states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), config.num_games // num_devices))
        return empty_tree(game, evaluator, variables, states, num_simulations=config.num_simulations)

    replay, games = _num_bytes(state.replay), _num_bytes(state.games)
    return MemoryNeed(
        replay=replay // num_devices,
        learner=_num_bytes(state) - replay - games + games // num_devices,
        trees=_num_bytes(jax.eval_shape(trees, state.variables)),
    )


def free_memory(device: jax.Device, sharers: int = 1) -> int:
    """Bytes that a device has left: its own, or its part of the machine's where `sharers` devices have none."""
    stats = device.memory_stats()
    if stats and "bytes_limit" in stats:
        return stats["bytes_limit"] - stats["bytes_in_use"]
    return free_in_machine() // sharers


def free_in_machine(root: Path = Path("/")) -> int:
    """Bytes of main memory that this process may still take, control groups (containers, Slurm) respected.

    Args:
      root: where `proc` and `sys` lie.
    """
    try:
        lines = (root / "proc/meminfo").read_text().splitlines()
        (free,) = (1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError):  # not Linux
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        groups = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        groups = []
    for group in groups:
        _, controllers, path = group.split(":", 2)
        # Version 2 has one hierarchy, version 1 one a controller.
        if controllers == "":
            files, mount = ("memory.max", "memory.current", "inactive_file"), root / "sys/fs/cgroup"
        elif "memory" in controllers.split(","):
            files = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            mount = root / "sys/fs/cgroup/memory"
        else:
            continue
        # Every group above has a limit of its own. In a container the path may not be there; its top is.
        inside = mount / path.lstrip("/")
        for folder in (inside, *inside.parents):
            free = min(free, _free_in_group(folder, *files))
            if folder == mount:
                break
    return int(max(free, 0))


def _free_in_group(folder: Path, limit: str, usage: str, reclaimable: str) -> float:
    try:
        left = int((folder / limit).read_text()) - int((folder / usage).read_text())
        stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        return left + int(stat.get(reclaimable, 0))  # cached files give way
    except (OSError, ValueError):  # no such group, or no limit
        return float("inf")


def _num_bytes(tree: Any) -> int:
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))


def show_bytes(num_bytes: int) -> str:
    """A number of bytes with its unit."""
    for scale, unit in ((1e9, "GB"), (1e6, "MB")):
        if num_bytes >= scale:
            return f"{num_bytes / scale:.1f} {unit}"
    return f"{num_bytes / 1e3:.1f} kB"
