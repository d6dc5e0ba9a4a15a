"""Which parts of the learning loop help, at equal network evaluations?

The game is tic-tac-toe, and mistakes are counted on all 4,520 unfinished positions. Each variant changes one setting
of the base (PUCT, 16 simulations, symmetries, 16 optimizer steps for 2,048 positions played). It is trained from
self-play with a few seeds, and all variants spend the same number of network evaluations in their searches.

    python experiments/ablation.py

It takes about 15 minutes on 2 CPU cores. Variants that are in the results are trained again only with --again.
Writes experiments/results/ablation.json and docs/ablation.png.
"""

import dataclasses
import json
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from study import COLORS, DOCS, RESULTS, results_so_far, run_study, save_figure, style, wide_figure, write_results

import azjax
from azjax.evaluation import Solution, mistakes, network_player, solve, tabulate
from azjax.report.intervals import Interval
from azjax.training import Config, Hyper, init, make_iteration

BASE = Config(
    network="mlp",
    width=128,
    depth=3,
    num_simulations=16,
    num_games=256,
    steps_per_iteration=8,
    random_start_plies=7,
    replay_size=65_536,
    updates_per_iteration=16,
    batch_size=512,
    hyper=Hyper(learning_rate=1e-3, l2=1e-5),
)

GROUPS: dict[str, dict[str, Config]] = {
    "search": {
        f"{name}, {simulations} simulations": BASE.replace(policy=policy, num_simulations=simulations)
        for name, policy in (("PUCT", "alphazero"), ("Gumbel", "gumbel"))
        for simulations in (4, 16, 64)
    },
    "self-play": {
        "no symmetries": BASE.replace(symmetries=False),
        "playout cap 32 / 8": BASE.replace(num_simulations=32, fast_simulations=8),
        "forced playouts": BASE.replace(forced_playouts=2.0),
        "reused tree": BASE.replace(reuse_tree=True),
    },
    "starts": {
        "start of the game alone": BASE.replace(random_start_plies=0),
        "the same, no symmetries": BASE.replace(random_start_plies=0, symmetries=False),
    },
    "targets": {
        "proven values": BASE.replace(solver=True),
        "half root value": BASE.replace(root_value_fraction=0.5),
        "EMA weights": BASE.replace(ema_decay=0.99),
    },
    "replay": {f"{updates} optimizer steps": BASE.replace(updates_per_iteration=updates) for updates in (4, 64)},
}
BASE_NAME = "PUCT, 16 simulations"


def main(
    evaluations: int = 3_000_000,
    seeds: int = 3,
    points: int = 10,
    again: bool = False,
    output: Path = RESULTS / "ablation.json",
    plot: Path = DOCS / "ablation.png",
) -> None:
    """Trains all variants, counts mistakes, writes the results and draws the curves.

    Args:
      evaluations: network evaluations by the searches of a run.
      seeds: number of seeds of each variant, from 0.
      points: number of points of a curve.
      again: train all variants, including those in the results.
      output: file of the results.
      plot: picture of the curves.
    """
    console = Console()
    settings = {"game": "tictactoe", "evaluations": evaluations, "seeds": seeds, "points": points}
    rows = [] if again else results_so_far(output, settings, rows=[])["rows"]
    solution = solve(azjax.make("tictactoe"))
    wanted = [(group, name, config) for group, variants in GROUPS.items() for name, config in variants.items()]
    for group, name, config in track(wanted, "variants", console=console):
        described = json.loads(json.dumps(dataclasses.asdict(config)))
        if any((row["name"], row["config"]) == (name, described) for row in rows):
            continue
        row = {"group": group, "name": name, **train_all(config, evaluations, seeds, points, solution)}
        rows = [*(row for row in rows if row["name"] != name), {**row, "config": described}]
        write_results(output, "ablation.py", settings, rows=rows)
    order = [name for _, name, _ in wanted]
    rows = sorted((row for row in rows if row["name"] in order), key=lambda row: order.index(row["name"]))
    console.print(table(rows))
    draw(rows, plot)
    console.print(f"written to {output}, drawn to {plot}", soft_wrap=True)


def evaluations_per_iteration(config: Config) -> float:
    """Network evaluations by the searches of self-play: one for the root and one for each simulation."""
    return config.num_games * config.steps_per_iteration * (config.mean_simulations + 1)


def train_all(config: Config, evaluations: int, seeds: int, points: int, solution: Solution) -> dict[str, Any]:
    """Trains one variant with all seeds and counts the mistakes of its raw networks at `points` times."""
    game, hyper = solution.game, jax.tree.map(jnp.float32, config.hyper)
    iteration = make_iteration(game, config)

    @jax.jit
    def begin(seeds: jax.Array) -> Any:
        return jax.lax.map(lambda seed: init(game, config, seed, hyper), seeds)

    @jax.jit
    def continue_training(states: Any, count: jax.Array) -> Any:
        """Trains one seed after the other, because `vmap` would run both branches of every condition."""

        def train(state: Any) -> Any:
            return jax.lax.fori_loop(0, count, lambda _, state: iteration(state, hyper)[0], state)

        return jax.lax.map(train, states)

    iterations = round(evaluations / evaluations_per_iteration(config))
    network, states, done, curve = config.make_network(game), begin(jnp.arange(seeds)), 0, []
    seconds = 0.0
    for point in range(1, points + 1):
        until = round(iterations * point / points)
        began = time.perf_counter()
        states = jax.block_until_ready(continue_training(states, jnp.int32(until - done)))
        seconds += time.perf_counter() - began
        done = until
        counts = []
        for seed in range(seeds):
            variables = jax.tree.map(lambda leaf: leaf[seed], states.ema)
            table = tabulate(network_player(game, network, variables), solution, jax.random.key(0))
            counts.append(mistakes(solution, table).count)
        curve.append({"evaluations": round(done * evaluations_per_iteration(config)), "mistakes": counts})
    return {
        "iterations": iterations,
        "positions_played": iterations * config.num_games * config.steps_per_iteration,
        "seconds_a_seed": round(seconds / seeds, 1),
        "mistakes": curve[-1]["mistakes"],
        "curve": curve,
    }


def interval(counts: list[float]) -> tuple[float, float]:
    """The mean and half the width of its 95% interval (Student's t)."""
    student = Interval.of(counts)
    return student.mean, student.high - student.mean


def table(rows: list[dict[str, Any]]) -> Table:
    """The results as a table."""
    shown = Table("", "mistakes of 4,520, each seed", "mean and 95%", "halfway", "seconds a seed")
    for row in rows:
        mean, half = interval(row["mistakes"])
        halfway = np.mean(row["curve"][len(row["curve"]) // 2 - 1]["mistakes"])
        each = " ".join(f"{count:.0f}" for count in row["mistakes"])
        shown.add_row(row["name"], each, f"{mean:.0f} ± {half:.0f}", f"{halfway:.0f}", f"{row['seconds_a_seed']:.0f}")
    return shown


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Draws one panel for each group, with the base in each."""
    (base,) = (row for row in rows if row["name"] == BASE_NAME)
    figure, panels = wide_figure(len(GROUPS), width=14, sharey=True)
    for panel, group in zip(panels, GROUPS, strict=True):
        chosen = [row for row in rows if row["group"] == group]
        chosen = [base, *(row for row in chosen if row is not base)]
        for row, color in zip(chosen, COLORS, strict=False):
            x = [point["evaluations"] / 1e6 for point in row["curve"]]
            counts = np.array([point["mistakes"] for point in row["curve"]])
            panel.plot(x, counts.mean(axis=1), color=color, linewidth=1.6, label=row["name"])
            panel.fill_between(x, counts.min(axis=1), counts.max(axis=1), color=color, alpha=0.12, linewidth=0)
        panel.set_yscale("symlog", linthresh=10)
        panel.set_ylim(bottom=0)
        panel.yaxis.set_major_formatter("{x:,.0f}")
        style(panel, group, "million network evaluations")
    panels[0].set_ylabel("mistakes of the raw network, of 4,520")
    save_figure(figure, path)


if __name__ == "__main__":
    run_study(main)
