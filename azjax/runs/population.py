"""Populations: agents that differ in the seed and in `Hyper` alone, trained by one program.

Each has a run folder of its own, in which it can be looked at, measured, and trained further by itself. Axis letters:
`P` members.
"""

from azjax.core.errors import InputError
import dataclasses
import functools
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from rich.console import Console

from azjax.games.game import Game
from azjax.training.config import Config, Hyper
from azjax.training.iteration import TrainState, init, make_iteration
from azjax.runs.loop import Program, TrainResult, run_program
from azjax.runs.memory import MemoryNeed, memory_need
from azjax.parallel.sharding import BY_MEMBER, WHOLE, make_mesh_of_members, place

TRACED = {field.name for field in dataclasses.fields(Hyper)}
"""What may differ within a population, beside the seed."""


def members_of(config: Config, values: Mapping[str, Sequence[Any]], size: int | None = None) -> list[Config]:
    """The members of a population: every combination of the values, repeated with the seeds after the first.

    Args:
      config: what they share.
      values: of `seed` or fields of `Hyper`, by name.
      size: how many members; as many as there are combinations if None.

    Raises:
      ValueError: a field that has to be the same for all, no value, one that is refused, or a size that is no multiple
        of the number of combinations.
    """
    for name, given in values.items():
        if name not in {*TRACED, "seed"}:
            raise InputError(
                f"vary: {name!r} cannot differ within a population; seed and {', '.join(sorted(TRACED))} can"
            )
        if not given or len(set(given)) < len(given):
            raise InputError(f"vary: {name} must have one or more different values, got {list(given)}")
    scalars = {name: given for name, given in values.items() if name != "seed"}
    points = [
        config.replace(**dict(zip(scalars, point, strict=True))) for point in itertools.product(*scalars.values())
    ]
    seeds = list(values.get("seed", []))
    combinations = len(points) * max(1, len(seeds))
    size = combinations if size is None else size
    if size < 1 or size % combinations or (seeds and size > combinations):
        allowed = f"{combinations}" if seeds else f"a multiple of {combinations}"
        raise InputError(f"population must be {allowed}, the combinations of values; got {size}")
    seeds = seeds or [config.seed + repeat for repeat in range(size // combinations)]
    return [point.replace(seed=seed) for point in points for seed in seeds]


def train_population(
    game: Game,
    configs: Sequence[Config],
    folders: Sequence[str | Path],
    *,
    resume: bool = False,
    accept_changes: bool = False,
    tensorboard: bool = False,
    console: Console | None = None,
    devices: int | Literal["all"] = 1,
) -> list[TrainResult]:
    """Trains agents side by side, each in a run folder of its own.

    Their games are searched as one batch. On CPU a member equals the lone run of its configuration to the bit; a loss
    in its metrics may differ in the last one. Elsewhere members share every operation of the device (`jax.vmap`), and
    equal the lone run up to rounding, which grows as it tips moves.

    Args:
      game: what to learn.
      configs: of the members; see `members_of`.
      folders: of the members.
      resume: as for `train`.
      accept_changes: as for `train`.
      tensorboard: as for `train`.
      console: as for `train`.
      devices: over how many the members are split; `all` that there are.

    Raises:
      RunError: as `train`; a member whose updates are skipped goes on, unless those of all are.
      ValueError: as `train`, or the configurations differ in more than the seed and `hyper`.
    """
    config = configs[0]
    if any(dataclasses.replace(each, seed=config.seed, hyper=config.hyper) != config for each in configs):
        raise InputError("the members of a population may differ in seed and hyper alone")
    # Whoever is killed while members save goes on from the last step that all have.
    configs = [each.replace(keep_checkpoints=max(2, each.keep_checkpoints)) for each in configs]
    return run_program(
        game,
        program_of_members(game, config.static, len(configs), devices),
        configs,
        [Path(folder) for folder in folders],
        seeds=np.array([each.seed for each in configs], np.uint32),
        hypers=jax.tree.map(lambda *values: np.array(values, np.float32), *(each.hyper for each in configs)),
        resume=resume,
        accept_changes=accept_changes,
        tensorboard=tensorboard,
        console=console,
    )


@functools.lru_cache(maxsize=4)
def program_of_members(game: Game, config: Config, count: int, devices: int | Literal["all"]) -> Program:
    """Of so many members, whose configurations have this static part."""
    mesh = make_mesh_of_members(count, devices)
    by_member = NamedSharding(mesh, BY_MEMBER)
    begin = jax.jit(jax.vmap(functools.partial(init, game, config)), out_shardings=by_member)
    seeds = jax.ShapeDtypeStruct((count,), np.uint32)
    hypers = jax.tree.map(lambda _: jax.ShapeDtypeStruct((count,), np.float32), config.hyper)
    all_like = jax.eval_shape(begin, seeds, hypers)
    like = place(mesh, WHOLE, jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), all_like))
    iterate = jax.shard_map(
        jax.vmap(make_iteration(game, config)), mesh=mesh, in_specs=BY_MEMBER, out_specs=BY_MEMBER, check_vma=False
    )
    stacked = jax.jit(_stacked, out_shardings=by_member)
    need, each = memory_need(game, config, like), count // mesh.size
    return Program(
        like=like,
        all_like=place(mesh, BY_MEMBER, all_like),
        hypers_like=place(mesh, WHOLE, hypers),
        begin=begin,
        iterate=jax.jit(iterate, donate_argnums=0, compiler_options=_compiler_options(mesh)),
        # And a copy of one member, while it is evaluated or saved.
        need=MemoryNeed((each + 1) * need.replay, (each + 1) * need.learner, each * need.trees),
        mesh=mesh,
        devices_of_a_run=1,
        part=jax.jit(_part, out_shardings=NamedSharding(mesh, WHOLE)),
        whole=stacked,
        with_ladders=lambda state, ladders: dataclasses.replace(state, ladder=stacked(ladders)),
    )


def _compiler_options(mesh: Mesh) -> dict[str, Any] | None:
    """Where CPU devices are split over the cores, an operation that is split over them too only loses time."""
    return {"xla_cpu_multi_thread_eigen": False} if mesh.size > 1 and jax.default_backend() == "cpu" else None


def _part(state: TrainState, number: int) -> TrainState:
    return jax.tree.map(lambda leaf: leaf[number], state)


def _stacked(trees: list[Any]) -> Any:
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)
