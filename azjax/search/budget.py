"""A search with a budget: a host loop around jitted chunks of simulations. Axis letters: see `tree.py`."""

import time
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from azjax.core.errors import InputError
from azjax.games.game import AnyGame, State
from azjax.search.draws import Keys
from azjax.search.dynamics import Evaluator
from azjax.search.policies import alphazero_policy
from azjax.search.tree import SearchResult


def search_within(
    params: PyTree,
    key: Keys,
    states: State,
    *,
    game: AnyGame,
    evaluator: Evaluator,
    seconds: float | None = None,
    num_simulations: int | None = None,
    chunk: int = 100,
    max_nodes: int = 100_000,
    stop_early: bool = True,
    **options: Any,
) -> SearchResult:
    """`alphazero_policy` until the budget is used up, or the most visited actions cannot change any more.

    Args:
      params: what the evaluator reads.
      key: consumed by the evaluator and the choice of action.
      states: the roots, every leaf [B, ...].
      game: the rules.
      evaluator: see `alphazero_policy`.
      seconds: no chunk begins after so many; the compilation and first run of a chunk is not counted.
      num_simulations: a multiple of `chunk`; given with `seconds` too, the first budget used up ends the search.
      chunk: simulations between two looks at the clock.
      max_nodes: capacity of each tree; a full one goes on without making nodes.
      stop_early: end when every root is proven or the lead of its most visited action exceeds the simulations left; if
        only time is given, these are estimated from the rate so far.
      **options: others of `alphazero_policy`, such as `c_puct` and `solver`; no noise, which each chunk would redraw.

    Raises:
      InputError: no budget, one that is not positive, or a number of simulations that is no multiple of `chunk`.
    """
    if seconds is None and num_simulations is None:
        raise InputError("a search needs a budget: seconds, num_simulations or both")
    if seconds is not None and not seconds > 0:
        raise InputError(f"seconds must be above 0, got {seconds}")
    if chunk < 1 or (num_simulations is not None and (num_simulations < 1 or num_simulations % chunk)):
        raise InputError(f"num_simulations must be a multiple of chunk = {chunk}, at least once, got {num_simulations}")
    if num_simulations is not None:
        max_nodes = min(max_nodes, num_simulations + 1)
    options = {**options, "game": game, "evaluator": evaluator, "num_simulations": chunk, "max_nodes": max_nodes}
    result: SearchResult = alphazero_policy(params, key, states, **options)
    result.value.block_until_ready()
    began, done = time.perf_counter(), chunk
    while True:
        passed = time.perf_counter() - began
        left = np.inf if num_simulations is None else num_simulations - done
        if seconds is not None:
            rate = (done - chunk) / passed if done > chunk else np.inf
            left = 0 if passed >= seconds else min(left, rate * (seconds - passed))
        if left <= 0 or (stop_early and _is_settled(result, left)):
            return result
        key = jax.random.fold_in(key, done)
        result = alphazero_policy(params, key, states, tree=result.tree, **options)
        result.value.block_until_ready()
        done += chunk


def _is_settled(result: SearchResult, left: int | float) -> bool:
    """Whether `left` more simulations cannot change the most visited action of any tree."""
    visits = np.sort(np.asarray(result.visits), axis=1)
    second = visits[:, -2] if visits.shape[1] > 1 else np.zeros(len(visits))
    bounds = np.asarray(result.bounds)
    over = visits[:, -1] == 0  # a game that has ended has no visits
    return bool(np.all((visits[:, -1] - second > left) | (bounds[:, 0] == bounds[:, 1]) | over))
