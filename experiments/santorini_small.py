"""Santorini 2x2 with one worker each: self-improvement with a gate, and without, against random and optimal play.

The game is solved, so every number is exact: scores are expectations, and mistakes are counted on all 1,311 unfinished
positions. The study compares two ways to learn the game from self-play alone:

  gated: the rounds of the notebook from which this game comes. Self-play makes a data set of 50 games with 1,000
    simulations a move. Up to 10 rounds of 100 epochs learn from it. Each round is tested in 1,000 games against the
    earlier network, with moves drawn from the policies. A round passes with 0.55 points a game; a fall of more than
    0.03 ends the rounds, and the old weights return if no round passes. This is repeated, with the notebook's
    exploration constants and thresholds, until four networks have passed, as in the notebook.
  preset: the training of `azjax train santorini --size 2`.

    python experiments/santorini_small.py

It takes some minutes on 2 CPU cores. Runs that exist are resumed or reused. Writes
experiments/results/santorini_small.json.
"""

import dataclasses
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from rich.console import Console
from rich.table import Table
from study import RESULTS, RUNS, run_study, trained, write_results

import azjax
from azjax.evaluation import (
    ExactReport,
    Player,
    Solution,
    exact_report,
    network_player,
    optimal_player,
    random_player,
    search_player,
    solve,
)
from azjax.games.game import Game
from azjax.games.registry import options_of
from azjax.networks import Variables
from azjax.runs import load_variables
from azjax.search import evaluators
from azjax.training import Config, Hyper, init, make_iteration

SIMULATIONS = 32

# 50 games have about 300 positions: an epoch has 10 batches of 32.
GATED = Config(
    network="mlp",
    width=128,
    depth=3,
    num_simulations=1000,
    num_games=50,
    steps_per_iteration=8,
    replay_size=50 * (8 + 12),
    symmetries=False,
    updates_per_iteration=1000,
    batch_size=32,
    gate_games=1000,
    gate_rounds=10,
    hyper=Hyper(dirichlet_fraction=0.0, l2=0.0, gate_tolerance=0.03),
)
IMPROVEMENTS = ((0.5, 0.55), (0.8, 0.55), (0.8, 0.55), (1.0, 0.52))  # c_puct and threshold of each improvement
TRIES = 8  # largest number of data sets
# Points a game of the notebook after each of its four improvements; None where it shows no number.
NOTEBOOK = {"random": (0.5534, 0.6157, None, 0.6904), "optimal": (0.2391, 0.4400, 0.4979, 0.4990)}
NOTEBOOK_PLAYERS = {("optimal", "random"): 0.9352, ("random", "optimal"): 0.0599}


def main(
    seed: int = 0,
    runs: Path = RUNS / "santorini_small",
    output: Path = RESULTS / "santorini_small.json",
) -> None:
    """Trains both agents, measures them, prints and writes the results.

    Args:
      seed: seed of both runs.
      runs: parent of the run folders.
      output: file of the results.
    """
    console = Console(width=120)
    game = azjax.make("santorini", size=2, workers=1)
    solution = solve(game)
    rows: list[dict[str, Any]] = [
        row("random", random_player(game), solution),
        row("optimal", optimal_player(solution), solution),
    ]
    rows += gated(game, solution, seed)
    rows += with_preset(game, solution, seed, runs, console)
    console.print(table(rows))
    settings = {"game": "santorini", "options": options_of(game), "seed": seed}
    scores = {" against ".join(pair): score for pair, score in NOTEBOOK_PLAYERS.items()}
    notebook = {"improvements": NOTEBOOK, "players": scores}
    write_results(output, "santorini_small.py", settings, notebook=notebook, rows=rows)
    console.print(f"written to {output}", soft_wrap=True)


def gated(game: Game, solution: Solution, seed: int) -> list[dict[str, Any]]:
    """Rows of the networks that passed the gate."""
    iterate = jax.jit(make_iteration(game, GATED))
    state = jax.jit(lambda: init(game, GATED, seed, GATED.hyper))()
    rows: list[dict[str, Any]] = []
    seconds, tried, passed = 0.0, 0, 0
    while passed < len(IMPROVEMENTS) and tried < TRIES:
        c_puct, threshold = IMPROVEMENTS[passed]
        hyper = dataclasses.replace(GATED.hyper, c_puct=c_puct, gate_threshold=threshold)
        began = time.perf_counter()
        state, metrics = jax.block_until_ready(iterate(state, jax.tree.map(jnp.float32, hyper)))
        seconds, tried = seconds + time.perf_counter() - began, tried + 1
        if not metrics["gate_accepted"]:
            continue
        passed += 1
        gate = {name: round(float(metrics[name]), 4) for name in ("gate_rounds", "gate_score")}
        for label, player in players(game, GATED, state.variables).items():
            name = f"gated {passed}, {label}"
            rows.append(row(name, player, solution, seconds=round(seconds, 1), tries=tried, **gate))
    return rows


def with_preset(game: Game, solution: Solution, seed: int, runs: Path, console: Console) -> list[dict[str, Any]]:
    """Rows of the network that was trained with the preset."""
    run = trained(game, runs / f"preset-{seed}", console, seed=seed)
    step, variables = load_variables(run.folder)
    return [
        row(f"preset, {label}", player, solution, seconds=run.seconds(step))
        for label, player in players(game, run.config, variables).items()
    ]


def players(game: Game, config: Config, variables: Variables) -> dict[str, Player]:
    """Three players: moves drawn from the policy, as in the notebook; the best moves; and a search."""
    network = config.make_network(game)
    search = search_player(game, evaluators.network(network, game), variables, num_simulations=SIMULATIONS)
    return {
        "drawn": network_player(game, network, variables, temperature=1.0),
        "network": network_player(game, network, variables),
        f"{SIMULATIONS} simulations": search,
    }


def row(name: str, player: Player, solution: Solution, **more: Any) -> dict[str, Any]:
    """The exact scores and mistakes of a player, as a row of the results."""
    report: ExactReport = exact_report(player, solution, jax.random.key(0))
    return {
        "player": name,
        "against_random": round(report.against_random.alternating.score, 4),
        "against_optimal": round(report.against_optimal.alternating.score, 4),
        "mistakes": round(report.mistakes.count, 2),
        "positions": report.mistakes.states,
        "mistakes_share": round(report.mistakes.share, 5),
        **more,
    }


def table(rows: list[dict[str, Any]]) -> Table:
    """The results as a table, beside those of the notebook."""
    shown = Table("", "against random", "notebook", "against optimal", "notebook", "mistakes", "seconds", "gate")
    for each in rows:
        beside = [_of_notebook(each["player"], opponent) for opponent in ("random", "optimal")]
        gate = f"{each['gate_score']:.3f} in round {each['gate_rounds']:.0f}" if "gate_score" in each else ""
        shown.add_row(
            each["player"],
            f"{each['against_random']:.4f}",
            beside[0],
            f"{each['against_optimal']:.4f}",
            beside[1],
            f"{each['mistakes']:.0f} ({each['mistakes_share']:.2%})",
            f"{each['seconds']:.0f}" if "seconds" in each else "",
            gate,
        )
    return shown


def _of_notebook(player: str, opponent: str) -> str:
    name, _, label = player.partition(", ")
    if label == "drawn" and name.startswith("gated"):
        score = NOTEBOOK[opponent][int(name.removeprefix("gated ")) - 1]
    else:
        score = NOTEBOOK_PLAYERS.get((player, opponent))
    return "" if score is None else f"{score:.4f}"


if __name__ == "__main__":
    run_study(main)
