"""Populations: agents that differ only in the seed and in `Hyper`, trained by one program.

Each member has its own run folder, where it can be evaluated or trained further by itself. Axis letter: `P` members.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jaxtyping import Array, Int32
from rich.console import Console

from azjax.core.errors import InputError
from azjax.games.game import AnyGame
from azjax.parallel.sharding import BY_MEMBER, WHOLE, Devices, make_member_mesh, shard
from azjax.runs.callback import Update
from azjax.runs.compiled_run import CompiledRun
from azjax.runs.loop import TrainResult, train_runs
from azjax.runs.memory import MemoryNeed, memory_need
from azjax.runs.precision import settle_precision
from azjax.training.config import Config
from azjax.training.hyper import HYPER_FIELDS
from azjax.training.iteration import TrainState, init, make_iteration
from azjax.training.loss import ALPHAZERO_LOSS, LossTerm, check_loss_terms

_T = TypeVar("_T")

MOST_MEMBERS = 2**16


def members_of(config: Config, values: Mapping[str, Sequence[Any]], size: int | None = None) -> list[Config]:
    """The configurations of a population: every combination of the values, each repeated with consecutive seeds.

    Args:
      config: the base configuration; its seed is the first.
      values: by field, `seed` or one of `Hyper`, the values to combine.
      size: number of members; the number of combinations if None.

    Raises:
      InputError: a field cannot differ, has no effect, no values or a value that is refused; or the size is no
        multiple of the number of combinations.
    """
    for name, given in values.items():
        if name not in {*HYPER_FIELDS, "seed"}:
            raise InputError(
                f"vary: {name!r} cannot differ within a population; seed and {', '.join(sorted(HYPER_FIELDS))} can"
            )
        if not given or len(set(given)) < len(given):
            raise InputError(f"vary: {name} must have one or more different values, got {list(given)}")
    scalars = {name: given for name, given in values.items() if name != "seed"}
    points = [
        config.replace(**dict(zip(scalars, point, strict=True))) for point in itertools.product(*scalars.values())
    ]
    for name in scalars:
        if len(scalars[name]) > 1 and all(name in point.unread for point in points):
            why = points[0].unread[name]
            raise InputError(f"vary: {name} has no effect with {why}: its values would all give the same run")
    seeds = list(values.get("seed", []))
    combinations = len(points) * max(1, len(seeds))
    size = combinations if size is None else size
    if size < 1:
        raise InputError(f"population must be at least 1, got {size}")
    if size % combinations or (seeds and size > combinations):
        allowed = f"{combinations}" if seeds else f"a multiple of {combinations}"
        raise InputError(f"population must be {allowed}, the combinations of values; got {size}")
    if size > MOST_MEMBERS:
        raise InputError(f"population must be at most {MOST_MEMBERS:,}, got {size:,}")
    seeds = seeds or [config.seed + repeat for repeat in range(size // combinations)]
    return [point.replace(seed=seed) for point in points for seed in seeds]


def train_population(
    game: AnyGame,
    configs: Sequence[Config],
    folders: Sequence[str | Path],
    *,
    resume: bool = False,
    accept_changes: bool = False,
    console: Console | None = None,
    devices: Devices = 1,
    loss_terms: tuple[LossTerm, ...] = ALPHAZERO_LOSS,
    callbacks: Sequence[Callable[[Update], None]] = (),
) -> list[TrainResult]:
    """Trains several agents by one program, each in its own run folder.

    The games of all members are searched as one batch. On CPU a member equals a run of the same configuration alone to
    the bit, except that a loss in its metrics may differ in the last bit. Elsewhere the members share every operation
    (`jax.vmap`) and equal the run alone up to rounding, until a rounding difference changes a move.

    The arguments and errors that are not listed are those of `train`.

    Args:
      game: the game to learn.
      configs: the configuration of each member; see `members_of`.
      folders: the run folder of each member.
      devices: number of devices over which the members are split, or `all`.

    Raises:
      SettingsError: as `train`, but skipped updates stop training only if all members skip them.
      InputError: as `train`, or the configurations differ in more than the seed and `hyper`.
    """
    if not configs or not len(configs) == len(folders) == len({Path(folder).resolve() for folder in folders}):
        raise InputError(
            f"a population needs one member or more, each with a folder of its own; got {len(configs)} configurations "
            f"and the folders {', '.join(map(str, folders)) or '(none)'}"
        )
    config = configs[0]
    if any(dataclasses.replace(each, seed=config.seed, hyper=config.hyper) != config for each in configs):
        raise InputError("the members of a population may differ in seed and hyper alone")
    if len({jax.tree.structure(each.hyper) for each in configs}) > 1:
        raise InputError("what is None in the hyper of one member of a population must be None in all of them")
    paths, console = [Path(folder) for folder in folders], console or Console(quiet=True)
    loss_terms = check_loss_terms(loss_terms)
    config = settle_precision(game, config, paths[0], console)
    configs = [each.replace(precision=config.precision) for each in configs]
    return train_runs(
        game,
        compile_population(game, config.static, len(configs), devices, loss_terms),
        configs,
        paths,
        seeds=np.array([each.seed for each in configs], np.uint32),
        hyper=jax.tree.map(lambda *values: np.array(values, np.float32), *(each.hyper for each in configs)),
        resume=resume,
        accept_changes=accept_changes,
        console=console,
        loss_terms=loss_terms,
        callbacks=callbacks,
    )


@functools.lru_cache(maxsize=4)
def compile_population(
    game: AnyGame, config: Config, count: int, devices: Devices, loss_terms: tuple[LossTerm, ...] = ALPHAZERO_LOSS
) -> CompiledRun:
    """The program of `count` members; see `compile_run`."""
    mesh = make_member_mesh(count, devices)
    by_member = NamedSharding(mesh, BY_MEMBER)
    begin = jax.jit(jax.vmap(functools.partial(init, game, config)), out_shardings=by_member)
    seeds = jax.ShapeDtypeStruct((count,), np.uint32)
    hypers = jax.tree.map(lambda _: jax.ShapeDtypeStruct((count,), np.float32), config.hyper)
    abstract_state = jax.eval_shape(begin, seeds, hypers)
    unbatched = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), abstract_state)
    abstract_run = shard(mesh, WHOLE, unbatched)
    iterate = jax.shard_map(
        jax.vmap(make_iteration(game, config, loss_terms=loss_terms)),
        mesh=mesh,
        in_specs=BY_MEMBER,
        out_specs=BY_MEMBER,
        check_vma=False,
    )
    need, per_device = memory_need(game, config, abstract_run), count // mesh.size
    return CompiledRun(
        abstract_run=abstract_run,
        abstract_state=shard(mesh, BY_MEMBER, abstract_state),
        abstract_hyper=shard(mesh, WHOLE, hypers),
        begin=begin,
        iterate=jax.jit(iterate, donate_argnums=0, compiler_options=_compiler_options(mesh)),
        # One more member: the copy that is evaluated or saved.
        need=MemoryNeed((per_device + 1) * need.replay, (per_device + 1) * need.learner, per_device * need.trees),
        mesh=mesh,
        devices_per_run=1,
        select=jax.jit(_select, out_shardings=NamedSharding(mesh, WHOLE)),
        stack=jax.jit(_stack, out_shardings=by_member),
        hold=_hold,
        join=functools.partial(_join, by_member),
    )


def _compiler_options(mesh: Mesh) -> dict[str, bool] | None:
    """On several CPU devices, each of which has its core, one operation must not be split over the cores too."""
    return {"xla_cpu_multi_thread_eigen": False} if mesh.size > 1 and jax.default_backend() == "cpu" else None


def _select(state: _T, index: Int32[Array, ""]) -> _T:
    member: _T = jax.tree.map(lambda leaf: leaf[index], state)
    return member


def _stack(trees: Sequence[_T]) -> _T:
    stacked: _T = jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)
    return stacked


def _hold(state: TrainState) -> TrainState:
    """The state on the host; its keys stay on the devices."""
    held: TrainState = jax.tree.map(
        lambda leaf: leaf if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else np.asarray(leaf), state
    )
    return held


def _join(by_member: NamedSharding, states: list[TrainState]) -> TrainState:
    """The states of the members as one, leaf by leaf: no more than one leaf is there twice."""
    structure = jax.tree.structure(states[0])
    leaves = [jax.tree.leaves(state)[::-1] for state in states]
    states.clear()
    joined = []
    while leaves[0]:
        parts = [each.pop() for each in leaves]
        stacked = np.stack(parts) if isinstance(parts[0], np.ndarray) else jnp.stack(parts)
        joined.append(jax.device_put(stacked, by_member))
    state: TrainState = jax.tree.unflatten(structure, joined)
    return state
