"""Connect-2 on four cells: the network's evaluation of every position, with the notebook's settings and our preset.

The notebook from which this game comes plays 5 x 100 games with 1,500 simulations a move and temperature 10. Its search
does not use its network. It trains for 200 epochs on each 100 games with a learning rate of 1e-5, in 11 minutes. Here
the same settings train one agent, whose search uses the network, and the preset trains another one. The game is solved:
the table shows the exact value of each of the 23 unfinished positions beside the values of both networks.

    python experiments/connect2.py

It takes half a minute on 2 CPU cores. Runs that exist are resumed or reused. Writes
experiments/results/connect2.json.
"""

from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.console import Console
from rich.table import Table
from study import RESULTS, RUNS, run_study, trained, write_results

import azjax
from azjax.evaluation import choose, exact_report, network_player, solve
from azjax.runs import load_variables
from azjax.training import Config, Hyper

GAME = azjax.make("connect2")
NOTEBOOK_MINUTES = 11.0  # from its progress bar
# 100 games have about 400 positions: 200 epochs of 12 batches of 32.
NOTEBOOK = Config(
    iterations=5,
    network="mlp",
    width=100,
    depth=3,
    num_simulations=1500,
    num_games=100,
    steps_per_iteration=4,
    replay_size=800,
    symmetries=False,
    updates_per_iteration=2400,
    batch_size=32,
    checkpoint_every=5,
    hyper=Hyper(learning_rate=1e-5, l2=0.0, dirichlet_fraction=0.0, temperature=10.0),
)


def main(runs: Path = RUNS / "connect2", seed: int = 0, output: Path = RESULTS / "connect2.json") -> None:
    """Trains both agents, measures them, prints and writes the results.

    Args:
      runs: parent of the run folders.
      seed: seed of both runs.
      output: file of the results.
    """
    console = Console(highlight=False)
    solution = solve(GAME)
    unfinished = np.flatnonzero(~solution.terminated)
    states = jax.tree.map(lambda leaf: leaf[unfinished], solution.states)
    rows: list[dict[str, Any]] = []
    for number in range(len(unfinished)):
        text = GAME.to_text(jax.tree.map(lambda leaf, at=number: leaf[at], states))
        rows.append({"position": text, "value": float(solution.values[unfinished[number]])})
    agents = {}
    for name, config in (("notebook", NOTEBOOK), ("preset", azjax.preset(GAME))):
        run = trained(GAME, runs / f"{name}-{seed}", console, seed=seed, config=config)
        player = network_player(GAME, run.config.make_network(GAME), load_variables(run.folder)[1])
        report = exact_report(player, solution, jax.random.key(seed))
        agents[name] = {
            "seconds": run.seconds(run.steps[-1]),
            "mistakes": report.mistakes.count,
            "score_against_random": round(report.against_random.alternating.score, 4),
            "score_against_optimal": round(report.against_optimal.alternating.score, 4),
        }
        choice = jax.device_get(choose(player, jax.random.key(seed), states))
        for row, value, policy in zip(rows, choice.value, choice.preferences, strict=True):
            row[name] = {"value": round(float(value), 3), "policy": [round(float(share), 3) for share in policy]}
    console.print(table(rows, agents))
    for name, agent in agents.items():
        console.print(f"{name}: {agent['mistakes']:.0f} mistakes, {agent['seconds']:.0f} s of training")
    console.print(f"the notebook itself: {NOTEBOOK_MINUTES:.0f} minutes")
    write_results(output, "connect2.py", {"seed": seed, "notebook_minutes": NOTEBOOK_MINUTES}, agents=agents, rows=rows)
    console.print(f"written to {output}", soft_wrap=True)


def table(rows: list[dict[str, Any]], agents: dict[str, Any]) -> Table:
    """A table of the positions: the exact value, and the value and the policy of each network."""
    shown = Table("position", "exact", *(f"{name}: {what}" for name in agents for what in ("value", "policy")))
    for row in rows:
        cells = []
        for name in agents:
            policy = " ".join(f"{share:.0%}" for share in row[name]["policy"])
            cells += [f"{row[name]['value']:+.2f}", policy]
        shown.add_row(row["position"], f"{row['value']:+.0f}", *cells)
    return shown


if __name__ == "__main__":
    run_study(main)
