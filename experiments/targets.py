"""How right are the targets that a search gives to learning?

A network is told what its own search found: a policy, and the value of the position. Here both are compared with the
truth, on positions of Santorini 3x3 that are drawn evenly from the solved game. The value of a Gumbel search is the
mean of completed Q under its improved policy; the mean of its simulations, which other searches take, is measured
beside it. Nothing of this enters training.

    python experiments/targets.py

It takes a few minutes on 2 CPU cores. Writes experiments/results/targets.json.
"""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from rich.console import Console
from rich.table import Table
from study import RESULTS, action_mask, draw_unfinished, run_study, write_results

import azjax
from azjax.evaluation import solve
from azjax.evaluation.solution import Solution
from azjax.packaged import Agent, load_agent
from azjax.search import GumbelAlphaZero
from azjax.search.tree import ROOT

SEARCHES = ((16, 16), (16, 8), (16, 4), (32, 8), (64, 8))
"""Simulations, and actions that the root considers."""
VALUES = ("network", "mean of the simulations", "value")
_SIZE = 512  # positions at once

Row = dict[str, Any]


def main(
    agent: str = "santorini_3x3",
    positions: int = 16_384,
    output: Path = RESULTS / "targets.json",
) -> None:
    """Searches, measures, prints and writes.

    Args:
      agent: a packaged agent of a game that can be solved.
      positions: how many are drawn.
      output: file of the results.
    """
    console = Console()
    player = load_agent(agent)
    with console.status(f"solving {player.game.name}"):
        solution = solve(player.game, max_states=None)
    drawn = draw_unfinished(solution, positions, np.random.default_rng(0))
    rows = [measure(player, solution, drawn, *counts) for counts in SEARCHES]
    console.print(table(rows))
    write_results(output, "targets.py", {"agent": agent, "positions": len(drawn)}, rows=rows)
    console.print(f"written to {output}", soft_wrap=True)


def measure(agent: Agent, solution: Solution, drawn: np.ndarray, num_simulations: int, considered: int) -> Row:
    """The shares of mistakes and of wrong signs, and the mean squared errors of the values."""
    preset = azjax.preset(agent.game)
    policy = GumbelAlphaZero(
        agent.game, agent.evaluator, num_simulations, solver=True, max_num_considered_actions=considered
    )
    hyper = preset.search_hyper(preset.hyper, 1.0)

    @jax.jit
    def search(states: Any) -> tuple[Array, ...]:
        result = policy(agent.variables, jax.random.key(0), states, hyper=hyper, explore=True)
        proven = result.bounds[:, 0] == result.bounds[:, 1]
        mean = jnp.where(proven, result.value, result.tree.nodes.q[ROOT])
        legal = jax.vmap(agent.game.legal_action_mask)(states)
        prior, own_value = agent.evaluator(agent.variables, jax.random.key(0), states)[:2]
        moves = [jnp.argmax(jnp.where(legal, logits, -jnp.inf), axis=1) for logits in (prior, result.policy)]
        return jnp.stack([own_value, mean, result.value], axis=1), jnp.stack(moves, axis=1)

    errors, wrong, mistaken = [], [], []
    for start in range(0, len(drawn), _SIZE):
        block = solution.block(drawn[start : start + _SIZE])
        values, moves = jax.device_get(search(block.states))
        kept = action_mask(agent.game, block.actions, block.best)
        errors.append((values - block.values[:, None]) ** 2)
        wrong.append(np.sign(values) != block.values[:, None])
        mistaken.append(~np.take_along_axis(kept, moves, axis=1))
    measured = {"mistakes": (("network", "policy"), mistaken), "wrong signs": (VALUES, wrong)}
    measured |= {"squared error": (VALUES, errors)}
    row: Row = {"num_simulations": num_simulations, "considered": considered}
    for kind, (names, parts) in measured.items():
        means = np.concatenate(parts).mean(axis=0)
        row |= {f"{kind}, {name}": round(float(mean), 4) for name, mean in zip(names, means, strict=True)}
    return row


def table(rows: list[Row]) -> Table:
    """All rows."""
    shown = Table(*(name.replace("num_simulations", "simulations") for name in rows[0]))
    for row in rows:
        shares = [f"{row[name]:.2%}" for name in row if name.startswith(("mistakes", "wrong"))]
        errors = [f"{row[name]:.3f}" for name in row if name.startswith("squared")]
        shown.add_row(f"{row['num_simulations']}", f"{row['considered']}", *shares, *errors)
    return shown


if __name__ == "__main__":
    run_study(main)
