"""The compiled program of a run."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jaxtyping import UInt32

from azjax.games.game import AnyGame
from azjax.parallel.sharding import WHOLE, Devices, make_mesh, shard
from azjax.runs.memory import MemoryNeed, memory_need
from azjax.training.config import Config
from azjax.training.hyper import Hyper
from azjax.training.iteration import TrainState, init, make_iteration, shard_state
from azjax.training.loss import ALPHAZERO_LOSS, LossTerm

Seeds = UInt32[np.ndarray | np.generic | jax.Array, "..."]


@dataclasses.dataclass(frozen=True)
class CompiledRun:
    """The program that trains one run, or a population of runs at once.

    Runs that differ only in their seed, their length and `Hyper` share it. In a population, states, seeds and hypers
    have a leading axis [P].

    Attributes:
      abstract_run: shapes, dtypes and shardings of the state of one run.
      abstract_state: the same of the state that is iterated.
      abstract_hyper: the same of the hyperparameters.
      begin: `begin(seeds, hyper) -> state`, before the first iteration.
      iterate: `iterate(state, hyper) -> (state, metrics)`, jitted; see `make_iteration`.
      need: memory without the temporary arrays of the compiled iteration.
      mesh: the devices.
      devices_per_run: number of devices over which one run is split.
      select: `select(state, index)`: the state of one run.
      stack: `stack(trees)`: the inverse, for parts of states.
      hold: `hold(state)`: the restored state of one run, where it takes no memory of the devices.
      join: `join(states)`: the state of all runs from held ones, a list that it empties.
    """

    abstract_run: TrainState
    abstract_state: TrainState
    abstract_hyper: Hyper
    begin: Callable[[Seeds, Hyper], TrainState]
    iterate: jax.stages.Wrapped
    need: MemoryNeed
    mesh: Mesh
    devices_per_run: int
    select: Callable[[TrainState, int], TrainState] = lambda state, _: state
    stack: Callable[[Sequence[Any]], Any] = lambda trees: trees[0]
    hold: Callable[[TrainState], TrainState] = lambda state: state
    join: Callable[[list[TrainState]], TrainState] = list.pop

    @functools.cached_property
    def compiled(self) -> jax.stages.Compiled:
        """The compiled iteration."""
        return self.iterate.lower(self.abstract_state, self.abstract_hyper).compile()


@functools.lru_cache(maxsize=4)
def compile_run(
    game: AnyGame, config: Config, devices: Devices, loss_terms: tuple[LossTerm, ...] = ALPHAZERO_LOSS
) -> CompiledRun:
    """The program of one run; `config` is `Config.static`, so that runs which differ in arrays share the program."""
    mesh = make_mesh(devices, num_games=config.num_games, batch_size=config.batch_size)
    begin = functools.partial(init, game, config)
    abstract_hyper = shard(mesh, WHOLE, jax.eval_shape(lambda: jax.tree.map(jnp.float32, config.hyper)))
    abstract_seed = jax.ShapeDtypeStruct((), np.uint32)
    abstract_state = shard_state(mesh, jax.eval_shape(begin, abstract_seed, abstract_hyper))
    shardings = jax.tree.map(lambda leaf: leaf.sharding, abstract_state)
    iteration = make_iteration(game, config, mesh, loss_terms=loss_terms)
    return CompiledRun(
        abstract_run=abstract_state,
        abstract_state=abstract_state,
        abstract_hyper=abstract_hyper,
        begin=jax.jit(begin, out_shardings=shardings),
        iterate=jax.jit(iteration, donate_argnums=0, out_shardings=(shardings, NamedSharding(mesh, WHOLE))),
        need=memory_need(game, config, abstract_state, mesh.size),
        mesh=mesh,
        devices_per_run=mesh.size,
    )
