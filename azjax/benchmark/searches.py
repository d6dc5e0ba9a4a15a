"""The searches that benchmarks time: azjax's and mctx's, compiled; OpenSpiel's, and one in plain Python.

Axis letters: `B` batch, `A` actions.
"""

import dataclasses
import functools
import random
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from jaxtyping import Array, Float32, Int32, PRNGKeyArray, PyTree

from azjax.benchmark.operations import operations_by_loop
from azjax.benchmark.rivals import PLAIN_PYTHON, rival_module
from azjax.games.game import AnyGame, State, random_legal_action
from azjax.search import Evaluator, SearchResult, alphazero_policy

_OPENING_PLIES = 2  # random moves before each search, so that the trees of a batch differ


@dataclasses.dataclass(frozen=True)
class TimedSearch:
    """A search ready to run.

    Attributes:
      run: searches with a seed and returns when the search is done.
      simulations: of one call, summed over all trees.
      compile_seconds: of tracing and compiling; None where nothing is compiled.
      peak_memory: bytes of the temporary arrays and results of a call, by XLA; None where XLA reports none.
      cuda_operations: see `operations_by_loop`; None where nothing is compiled, or for several devices.
    """

    run: Callable[[int], Any]
    simulations: int
    compile_seconds: float | None = None
    peak_memory: int | None = None
    cuda_operations: list[int] | None = None

    def seconds(self, seed: int) -> float:
        """The time of one call."""
        began = time.perf_counter()
        self.run(seed)
        return time.perf_counter() - began


def openings(game: AnyGame, batch: int) -> State:
    """Positions [B, ...] after a few random plies."""

    def play(key: PRNGKeyArray) -> State:
        state: State = game.init(key)
        for play_key in jax.random.split(key, _OPENING_PLIES):
            state = game.step(state, random_legal_action(game, play_key, state))
        return state

    states: State = jax.jit(jax.vmap(play))(jax.random.split(jax.random.key(0), batch))
    return states


def azjax_search(
    game: AnyGame,
    evaluator: Evaluator,
    states: State,
    num_simulations: int,
    *,
    policy: Callable[..., SearchResult] = alphazero_policy,
    params: PyTree = None,
    devices: int = 1,
    leaves_per_step: int = 1,
) -> TimedSearch:
    """One of our policies on states [B, ...], the batch split over this many devices. `params` go to the evaluator."""
    options: dict[str, Any] = {"game": game, "evaluator": evaluator, "num_simulations": num_simulations}
    if leaves_per_step > 1:
        options["leaves_per_step"] = leaves_per_step

    def search(key: PRNGKeyArray, params: PyTree, states: State) -> Int32[Array, "B"]:
        return policy(params, key, states, **options).action

    if devices == 1:
        return _compiled(search, (params, states), num_simulations)
    mesh = jax.make_mesh((devices,), ("batch",), axis_types=(AxisType.Auto,))
    whole, split = PartitionSpec(), PartitionSpec("batch")
    # Our loops start from constants, which are the same on all devices, and go on with what is not.
    sharded = jax.shard_map(search, mesh=mesh, in_specs=(whole, whole, split), out_specs=split, check_vma=False)
    arguments = (
        jax.device_put(params, NamedSharding(mesh, whole)),
        jax.device_put(states, NamedSharding(mesh, split)),
    )
    return _compiled(sharded, arguments, num_simulations, NamedSharding(mesh, whole))


def mctx_search(game: AnyGame, evaluator: Evaluator, states: State, num_simulations: int) -> TimedSearch:
    """mctx's `muzero_policy` with the same rules and evaluator, without noise, as ours.

    Raises:
      InputError: mctx is not installed.
    """
    mctx = rival_module("mctx")

    def evaluate(key: PRNGKeyArray, states: State) -> tuple[Float32[Array, "B A"], Float32[Array, "B"]]:
        logits, value, *_ = evaluator(None, key, states)
        legal = jax.vmap(game.legal_action_mask)(states)
        return jnp.where(legal, logits, np.finfo(np.float32).min), jnp.where(states.terminated, 0.0, value)

    def recurrent_fn(params: None, key: PRNGKeyArray, action: Int32[Array, "B"], states: State) -> tuple[Any, State]:
        del params
        following = jax.vmap(game.step)(states, action)
        logits, value = evaluate(key, following)
        reward = jnp.take_along_axis(following.rewards, states.current_player[:, None], axis=1)[:, 0]
        same_player = following.current_player == states.current_player
        discount = jnp.where(following.terminated, 0.0, jnp.where(same_player, 1.0, -1.0))
        output = mctx.RecurrentFnOutput(reward=reward, discount=discount, prior_logits=logits, value=value)
        return output, following

    def search(key: PRNGKeyArray, states: State) -> Int32[Array, "B"]:
        logits, value = evaluate(key, states)
        output = mctx.muzero_policy(
            params=None,
            rng_key=key,
            root=mctx.RootFnOutput(prior_logits=logits, value=value, embedding=states),
            recurrent_fn=recurrent_fn,
            num_simulations=num_simulations,
            invalid_actions=~jax.vmap(game.legal_action_mask)(states),
            dirichlet_fraction=0.0,
            temperature=0.0,
        )
        action: Array = output.action
        return action

    return _compiled(search, (states,), num_simulations)


def openspiel_search(name: str, num_simulations: int) -> TimedSearch:
    """OpenSpiel's C++ UCT from one position: a random rollout a simulation, one thread, no solver.

    Raises:
      InputError: OpenSpiel is not installed.
    """
    pyspiel = rival_module("OpenSpiel")
    rules = pyspiel.load_game(name)

    def run(seed: int) -> int:
        rng = random.Random(seed)
        state = rules.new_initial_state()
        for _ in range(_OPENING_PLIES):
            state.apply_action(rng.choice(state.legal_actions()))
        evaluator = pyspiel.RandomRolloutEvaluator(n_rollouts=1, seed=seed)
        bot = pyspiel.MCTSBot(
            rules,
            evaluator,
            uct_c=2**0.5,
            max_simulations=num_simulations,
            max_memory_mb=1000,
            solve=False,
            seed=seed,
            verbose=False,
        )
        return int(bot.step(state))

    return TimedSearch(run, num_simulations)


def plain_python_search(num_simulations: int) -> TimedSearch:
    """Brandub's in plain Python, one position at a time; see `benchmarks/searches/notebook.py`.

    Raises:
      InputError: azjax does not run from a clone of its repository.
    """
    notebook = rival_module(PLAIN_PYTHON, ".searches.notebook")
    return TimedSearch(functools.partial(notebook.search, num_simulations), num_simulations)


def _compiled(
    search: Callable[..., Array],
    arguments: tuple[Any, ...],
    num_simulations: int,
    sharding: NamedSharding | None = None,
) -> TimedSearch:
    """Compiles `search(key, *arguments)`, whose last argument is the states, ahead of its first call."""

    def new_key(seed: int) -> PRNGKeyArray:
        key = jax.random.key(seed)
        return key if sharding is None else jax.device_put(key, sharding)

    began = time.perf_counter()
    traced = jax.jit(search).trace(new_key(0), *arguments)
    executable = traced.lower().compile()
    compile_seconds = time.perf_counter() - began
    memory = executable.memory_analysis()
    return TimedSearch(
        run=lambda seed: jax.block_until_ready(executable(new_key(seed), *arguments)),
        simulations=len(arguments[-1].terminated) * num_simulations,
        compile_seconds=compile_seconds,
        peak_memory=None if memory is None else memory.temp_size_in_bytes + memory.output_size_in_bytes,
        cuda_operations=operations_by_loop(traced) if sharding is None else None,
    )
