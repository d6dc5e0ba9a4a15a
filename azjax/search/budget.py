"""A search with a budget: a host loop around a jitted chunk of simulations. Axis letters: see `tree.py`."""

import time
from typing import Any

import chex
import jax
import numpy as np

from azjax.core.errors import InputError
from azjax.games.game import Game
from azjax.search.dynamics import Evaluator
from azjax.search.policies import alphazero_policy
from azjax.search.tree import SearchResult


def search_within(
    params: Any,
    key: chex.PRNGKey,
    states: Any,
    *,
    game: Game,
    evaluator: Evaluator,
    seconds: float | None = None,
    num_simulations: int | None = None,
    chunk: int = 100,
    max_nodes: int = 100_000,
    stop_early: bool = True,
    **options: Any,
) -> SearchResult:
    """`alphazero_policy` until the time or the simulations are used up, or the most visited actions cannot change.

    Args:
      params: handed to the evaluator.
      key: consumed by the evaluator and the choice of action.
      states: the roots, every leaf [B, ...].
      game: the game.
      evaluator: see `alphazero_policy`.
      seconds: the last chunk begins before so many have passed; compilation of the first is not counted.
      num_simulations: a multiple of `chunk`; with `seconds` too, what is used up first ends the search.
      chunk: simulations from one look at the clock to the next.
      max_nodes: room in each tree; a full one goes on without making nodes.
      stop_early: end when in every tree the lead of the most visited action is more than the simulations that are
        left, as many as the rate so far promises where only time is given, or when the root is proven.
      **options: others of `alphazero_policy`, such as `c_puct` and `solver`; no noise, which each chunk would draw.

    Raises:
      ValueError: no budget, one that is not positive, or simulations that chunks do not add up to.
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
    result = alphazero_policy(params, key, states, **options)
    jax.block_until_ready(result)
    began, done, begun_with = time.perf_counter(), chunk, chunk
    while True:
        passed = time.perf_counter() - began
        left = np.inf if num_simulations is None else num_simulations - done
        if seconds is not None:
            rate = (done - begun_with) / passed if done > begun_with else np.inf
            left = 0 if passed >= seconds else min(left, rate * (seconds - passed))
        if left <= 0 or (stop_early and _is_settled(result, left)):
            return result
        key = jax.random.fold_in(key, done)
        result = alphazero_policy(params, key, states, tree=result.tree, **options)
        jax.block_until_ready(result)
        done += chunk


def _is_settled(result: SearchResult, left: float) -> bool:
    """Whether `left` more simulations cannot change the most visited action of any tree."""
    visits = np.sort(np.asarray(result.visits), axis=1)
    second = visits[:, -2] if visits.shape[1] > 1 else np.zeros(len(visits))
    bounds = np.asarray(result.bounds)
    over = visits[:, -1] == 0  # a game that has ended has no visits
    return bool(np.all((visits[:, -1] - second > left) | (bounds[:, 0] == bounds[:, 1]) | over))
