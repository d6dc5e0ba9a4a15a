"""A search whose rule of selection reads what the evaluator said of each node. Axis letters: see `tree.py`."""

import dataclasses
from typing import Any

import chex
import jax
import jax.numpy as jnp

from azjax.core.arrays import write_rows
from azjax.search.descend import Path
from azjax.search.dynamics import Dynamics
from azjax.search.root import Root, new_tree
from azjax.search.simulate import simulate
from azjax.search.tree import ROOT, Tree


def root_values(root: Root, num_simulations: int) -> chex.Array:
    """float32 [N * B]: what the evaluator said of the roots, and room for so many more nodes."""
    values = jnp.zeros((num_simulations + 2, len(root.terminated)), jnp.float32)
    return values.at[ROOT].set(jnp.where(root.terminated, 0.0, root.judgement.value)).reshape(-1)


def search_with_values(
    dynamics: Dynamics,
    params: Any,
    key: chex.PRNGKey,
    root: Root,
    rule: Any,
    num_simulations: int,
    halving: Any = None,
    solver: bool = False,
) -> Tree:
    """The trees of so many simulations, by a rule of selection that reads what the evaluator said of each node.

    Args:
      rule: a `Selection` whose field `values` are `root_values`.
      halving: a `SequentialHalving`, which takes the roots' steps; the rule does, where it is None.
      solver: keep `Tree.bounds`.
    """
    tree = new_tree(root, rule, num_simulations + 1, solver=solver)

    def one_simulation(simulation: chex.Array, carry: tuple) -> tuple:
        runs, room, values, halving = carry
        node, selection = runs.num_made, dataclasses.replace(rule, values=values)
        first = None if halving is None else halving.first_step(runs, selection, simulation)
        evaluator_key = jax.random.fold_in(key, simulation)
        runs, path, edge, value = simulate(dynamics, params, evaluator_key, runs, room, selection, first)
        halving = None if halving is None else halving.with_edge(edge, simulation)
        return runs, path, write_rows(values, value, node), halving

    start = tree.as_runs(), Path.room(tree, dynamics.max_depth), rule.values, halving
    runs, *_ = jax.lax.fori_loop(0, num_simulations, one_simulation, start)
    return runs.shaped_as(tree)
