"""A search with a budget: a host loop around jitted chunks of simulations. Axis letters: see `tree.py`."""

import dataclasses
import numbers
import time

import jax
import numpy as np
from jaxtyping import PyTree

from azjax.core.errors import InputError
from azjax.core.whole_numbers import whole
from azjax.games.game import State
from azjax.search.alphazero import AlphaZero
from azjax.search.draws import Keys, fold_in
from azjax.search.hyper import SearchHyper
from azjax.search.policy import MOST_SIMULATIONS, SearchPolicy
from azjax.search.result import SearchResult
from azjax.search.reuse import check_tree
from azjax.search.tree import Tree

_MAX_NODES = 100_000
_MOST_SECONDS = 1_000_000  # timers of the operating system go little further


def search_within(
    policy: SearchPolicy,
    params: PyTree,
    key: Keys,
    states: State,
    *,
    hyper: SearchHyper | None = None,
    seconds: float | None = None,
    num_simulations: int | None = None,
    max_nodes: int | None = None,
    stop_early: bool = True,
    tree: Tree | None = None,
) -> SearchResult:
    """Searches until the budget is used up, or more simulations cannot change the action.

    Args:
      policy: its `num_simulations` are those between two looks at the clock. It does not explore: noise would be drawn
        again at each look.
      params: what the evaluator reads.
      key: consumed by the evaluator and the rule of selection.
      states: the roots, every leaf [B, ...].
      hyper: the numbers of the search.
      seconds: for all simulations. After the first chunk no other begins that would end later, if it took the mean time
        of those before. Compilation does not count: the first search of its kind runs both its programs before.
      num_simulations: a multiple of those of the policy; given with `seconds` too, the first budget used up ends the
        search.
      max_nodes: capacity of each tree; a full one goes on without making nodes. By default that of `tree` or of the
        policy, and 100,000 if there is none.
      stop_early: end when every root is proven or, in AlphaZero's search without a solver, the lead of its most visited
        action exceeds the simulations left; if only time is given, these are estimated from the rate so far.
      tree: trees to continue, as in `SearchPolicy.__call__`; the result takes over their memory.

    Raises:
      InputError: no budget, one that is not positive, or a number of simulations that is no multiple of the policy's or
        above 2^24; `max_nodes` as in `SearchPolicy`. A search with seconds alone ends at 2^24 simulations too.
    """
    chunk = policy.num_simulations
    if seconds is None and num_simulations is None:
        raise InputError("a search needs a budget: seconds, num_simulations or both")
    if seconds is not None:
        check_seconds(seconds)
    if num_simulations is not None and ((whole(num_simulations) or 0) < 1 or num_simulations % chunk):
        raise InputError(
            f"num_simulations must be a multiple of the policy's {chunk}, at least once, got {num_simulations!r}"
        )
    if num_simulations is not None and num_simulations > MOST_SIMULATIONS:
        raise InputError(f"num_simulations must be at most {MOST_SIMULATIONS:,}, got {num_simulations:,}")
    if tree is not None:
        check_tree(tree)
    if max_nodes is None:
        max_nodes = tree.max_nodes if tree is not None else policy.max_nodes or _MAX_NODES
    if num_simulations is not None and tree is None:
        max_nodes = min(max_nodes, num_simulations + 1)
    policy = dataclasses.replace(policy, max_nodes=max_nodes)
    if seconds is not None:
        _compile(policy, params, key, states, hyper)
    began, done = time.perf_counter(), chunk
    result: SearchResult = policy(params, key, states, hyper=hyper, tree=tree, donate_tree=tree is not None)
    result.value.block_until_ready()
    while True:
        left = np.inf if num_simulations is None else num_simulations - done
        if seconds is not None:
            rate = done / (passed := time.perf_counter() - began)
            in_time = rate * (seconds - passed)
            left = 0 if in_time < chunk else min(left, in_time)
        # A solver may still prove that the most visited action loses.
        lead = left if isinstance(policy, AlphaZero) and not policy.solver else np.inf
        if left <= 0 or done + chunk > MOST_SIMULATIONS or (stop_early and _is_settled(result, lead)):
            return result
        key = fold_in(key, done)
        result = policy(params, key, states, hyper=hyper, tree=result.tree, donate_tree=True)
        result.value.block_until_ready()
        done += chunk


_compiled: set[object] = set()


def _compile(policy: SearchPolicy, params: PyTree, key: Keys, states: State, hyper: SearchHyper | None) -> None:
    """Runs the program that begins a tree and the one that continues it, unless such a search ran before."""
    leaves, structure = jax.tree.flatten((params, key, states, hyper))
    try:
        kind = policy, structure, *map(jax.typeof, leaves)
        if kind in _compiled:
            return
    except TypeError:  # what is not hashable, or no array, the search itself refuses
        return
    result = policy(params, key, states, hyper=hyper)
    policy(params, key, states, hyper=hyper, tree=result.tree, donate_tree=True).value.block_until_ready()
    _compiled.add(kind)


def check_seconds(seconds: float) -> None:
    """Raises InputError for seconds of a search, or of another answer, that are out of range."""
    if not isinstance(seconds, numbers.Real) or not seconds > 0:
        raise InputError(f"seconds must be above 0, got {seconds!r}")
    if seconds > _MOST_SECONDS:
        raise InputError(f"seconds must be at most {_MOST_SECONDS:,}, got {seconds}")


def _is_settled(result: SearchResult, left: int | float) -> bool:
    """Whether `left` more simulations cannot change the most visited action of any tree."""
    visits = np.sort(np.asarray(result.visits), axis=1)
    second = visits[:, -2] if visits.shape[1] > 1 else np.zeros(len(visits))
    bounds = np.asarray(result.bounds)
    over = visits[:, -1] == 0  # a game that has ended has no visits
    return bool(np.all((visits[:, -1] - second > left) | (bounds[:, 0] == bounds[:, 1]) | over))
