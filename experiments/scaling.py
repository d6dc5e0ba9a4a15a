"""How many simulations at play is a doubling of training worth?

Jones 2021 ("Scaling Scaling Laws with Board Games") measured it on Hex, in Elo against perfect play. Here the game is
solved, and the measure is exact: the share of mistakes in positions where a move can lose value. Networks of four sizes
learn Connect Four on 5 columns and 4 rows from self-play alone, and their checkpoints play with 0 to 255 simulations.

- The compute of training is counted in FLOPs of the network: 2 for each weight and position evaluated, and three times
  as many where it learns.
- The frontier is, at each compute of training and number of simulations, the fewest mistakes of any size.
- On it, log2(share of mistakes) = a - alpha log2(compute of training) - beta log2(evaluations at play) is fitted for
  each seed. A doubling of training is worth alpha / beta doublings of the evaluations at play.

    python experiments/scaling.py [--seeds 0 1 2]

It took 24 minutes on 2 CPU cores, beside other work. The same command continues a study that was stopped. Writes
experiments/results/scaling.json and docs/scaling.png.
"""

import math
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from study import (
    COLORS,
    DOCS,
    RESULTS,
    RUNS,
    Run,
    action_mask,
    results_so_far,
    run_study,
    save_figure,
    style,
    trained,
    wide_figure,
    write_results,
)

import azjax
from azjax.evaluation import Player, choose, network_player, search_player, solve
from azjax.games.connect_four import ConnectFour
from azjax.games.game import AnyGame, State
from azjax.networks import Variables
from azjax.report.intervals import Interval
from azjax.runs import load_variables
from azjax.search import evaluators
from azjax.training import Config, Hyper

WIDTHS = (16, 32, 64, 128)
SIMULATIONS = (0, 3, 15, 63, 255)
FIRST_CHECKPOINT = 12  # and those after 2, 4, 8, ... times as many iterations
DOUBLINGS = 6
CONFIG = Config(
    network="mlp",
    depth=3,
    precision="float32",
    num_simulations=16,
    num_games=256,
    steps_per_iteration=4,
    random_start_plies=8,
    replay_size=131_072,
    updates_per_iteration=8,
    batch_size=512,
    checkpoint_every=FIRST_CHECKPOINT,
    hyper=Hyper(learning_rate=1e-3, l2=1e-6, ema_decay=0.99, root_value_fraction=0.25),
)

Row = dict[str, Any]


@azjax.register("connect_four_5x4")
def connect_four_5x4() -> ConnectFour:
    """Four in a row on 5 columns and 4 rows with gravity."""
    return ConnectFour(5, 4, 4, name="connect_four_5x4", first_cell=1)


class Positions(NamedTuple):
    """P positions in which a move can lose value; A actions.

    Attributes:
      states: every leaf [P, ...].
      loses: bool [P, A]; the moves that lose value.
    """

    states: State
    loses: np.ndarray


class Fit(NamedTuple):
    """The exponents of one seed, alpha and beta; see the head of this file."""

    training: float
    play: float

    @property
    def doublings(self) -> float:
        """Of the evaluations at play, that a doubling of training is worth."""
        return self.training / self.play


def main(
    seeds: tuple[int, ...] = (0, 1, 2),
    widths: tuple[int, ...] = WIDTHS,
    doublings: int = DOUBLINGS,
    num_positions: int = 4096,
    folder: Path = RUNS / "scaling",
    output: Path = RESULTS / "scaling.json",
    plot: Path = DOCS / "scaling.png",
) -> None:
    """Trains, measures, fits, prints, writes and draws.

    Args:
      seeds: of the runs; two or more give intervals.
      widths: of the networks.
      doublings: of the training, from its first checkpoint on.
      num_positions: drawn evenly from those where a move can lose value.
      folder: of the runs.
      output: file of the results.
      plot: picture of the mistakes against the compute of training.
    """
    console = Console()
    game = azjax.make("connect_four_5x4")
    positions = decisions(game, num_positions)
    settings = {"game": game.name, "num_positions": len(positions.loses), "doublings": doublings}
    rows: list[Row] = results_so_far(output, settings, rows=[])["rows"]
    steps = [FIRST_CHECKPOINT * 2**doubling for doubling in range(doublings + 1)]
    for seed in seeds:
        for width in widths:
            config = CONFIG.replace(width=width, iterations=steps[-1], keep_checkpoints=2**doublings)
            run = trained(game, folder / f"{width}-{seed}", console, seed=seed, config=config)
            done = {row["iteration"] for row in rows if (row["seed"], row["width"]) == (seed, width)}
            for step in track([step for step in steps if step not in done], f"width {width}, seed {seed}"):
                rows += measured(game, run, step, positions)
            write_results(output, "scaling.py", settings, rows=rows)
    found = {name: summary(values) for name, values in quantities(fits_of(rows)).items()}
    write_results(output, "scaling.py", settings, rows=rows, exponents=found)
    console.print(table(rows))
    for name, each in found.items():
        interval = " (95%: {:.2f} to {:.2f})".format(*each["interval"]) if "interval" in each else ""
        console.print(f"{name}: {each['mean']:.2f}{interval}")
    draw(rows, plot)
    console.print(f"written to {output}, drawn to {plot}", soft_wrap=True)


def decisions(game: AnyGame, count: int) -> Positions:
    """Positions in which some move loses value and another does not, drawn evenly from all that can be reached."""
    states, loses = [], []
    for _, block in solve(game).blocks():
        worse = block.legal & ~block.best
        chosen = worse.any(axis=1)
        states.append(jax.tree.map(lambda leaf, chosen=chosen: np.asarray(leaf)[chosen], block.states))
        loses.append(action_mask(game, block.actions, worse)[chosen])
    every = jax.tree.map(lambda *leaves: np.concatenate(leaves), *states)
    total = sum(map(len, loses))
    drawn = np.random.default_rng(0).choice(total, min(count, total), replace=False)
    return Positions(jax.tree.map(lambda leaf: leaf[drawn], every), np.concatenate(loses)[drawn])


def measured(game: AnyGame, run: Run, step: int, positions: Positions) -> list[Row]:
    """The mistakes of a checkpoint, for each number of simulations."""
    variables = load_variables(run.folder, step)[1]
    rows = []
    for num_simulations in SIMULATIONS:
        player = player_of(game, run.config, variables, num_simulations)
        probabilities = jax.device_get(choose(player, jax.random.key(0), positions.states).probabilities)
        rows.append(
            {
                "seed": run.config.seed,
                "width": run.config.width,
                "iteration": step,
                "seconds": run.seconds(step),
                "training_flops": training_flops(run.config, variables) * step,
                "num_simulations": num_simulations,
                "mistakes": round(float((probabilities * positions.loses).sum(axis=1).mean()), 6),
            }
        )
    return rows


def player_of(game: AnyGame, config: Config, variables: Variables, num_simulations: int) -> Player:
    """The network with a search, or alone with 0 simulations."""
    network = config.make_network(game)
    if num_simulations == 0:
        return network_player(game, network, variables)
    evaluator = evaluators.network(network, game)
    return search_player(game, evaluator, variables, num_simulations=num_simulations)


def training_flops(config: Config, variables: Variables) -> float:
    """FLOPs of the network in an iteration: 2 for each weight and position of self-play, 6 where it learns."""
    weights = sum(leaf.size for leaf in jax.tree.leaves(variables["params"]) if leaf.ndim > 1)
    played = config.num_games * config.steps_per_iteration * (config.num_simulations + 1)
    return float(2 * weights * (played + 3 * config.updates_per_iteration * config.batch_size))


def frontier(rows: list[Row]) -> list[Row]:
    """For each number of simulations, the rows that no other with less or equal compute of training beats."""
    best: list[Row] = []
    for num_simulations in SIMULATIONS:
        fewest = math.inf
        for row in sorted(rows, key=lambda row: (row["training_flops"], row["mistakes"])):
            if row["num_simulations"] == num_simulations and row["mistakes"] < fewest:
                fewest = row["mistakes"]
                best.append(row)
    return best


def fits_of(rows: list[Row]) -> list[Fit]:
    """The exponents of each seed, from its frontier where there were mistakes."""
    fits = []
    for seed in sorted({row["seed"] for row in rows}):
        points = [row for row in frontier([row for row in rows if row["seed"] == seed]) if row["mistakes"] > 0]
        terms = np.array([[1, np.log2(row["training_flops"]), np.log2(row["num_simulations"] + 1)] for row in points])
        shares = np.log2([row["mistakes"] for row in points])
        _, training, play = np.linalg.lstsq(terms, shares, rcond=None)[0]
        fits.append(Fit(round(-float(training), 4), round(-float(play), 4)))
    return fits


def quantities(fits: list[Fit]) -> dict[str, list[float]]:
    """What the study finds, by seed."""
    return {
        "exponent of training": [fit.training for fit in fits],
        "exponent of evaluations at play": [fit.play for fit in fits],
        "doublings at play worth a doubling of training": [fit.doublings for fit in fits],
    }


def summary(values: list[float]) -> dict[str, Any]:
    """The values by seed, their mean, and with two seeds and more its 95% interval by Student's t."""
    found: dict[str, Any] = {"by_seed": values, "mean": round(float(np.mean(values)), 4)}
    if len(values) > 1:
        student = Interval.of(values)
        found["interval"] = [round(student.low, 4), round(student.high, 4)]
    return found


def mean_by_seed(rows: list[Row]) -> dict[tuple[int, int, int], float]:
    """The share of mistakes by (width, iteration, simulations), its mean over the seeds."""
    found: dict[tuple[int, int, int], list[float]] = {}
    for row in rows:
        found.setdefault((row["width"], row["iteration"], row["num_simulations"]), []).append(row["mistakes"])
    return {key: float(np.mean(shares)) for key, shares in found.items()}


def table(rows: list[Row]) -> Table:
    """The mistakes of the last checkpoints."""
    means = mean_by_seed(rows)
    last = max(iteration for _, iteration, _ in means)
    headings = [f"{count} simulations" for count in SIMULATIONS]
    shown = Table("width", *headings, title=f"mistakes after {last} iterations")
    for width in sorted({width for width, _, _ in means}):
        shown.add_row(str(width), *(f"{means[width, last, count]:.2%}" for count in SIMULATIONS))
    return shown


def draw(rows: list[Row], path: Path) -> None:
    """Draws the mistakes against the compute of training and against the evaluations at play, both axes as powers."""
    figure, panels = wide_figure(2, sharey=True)
    means = mean_by_seed(rows)
    flops = {(row["width"], row["iteration"]): row["training_flops"] for row in rows}
    widths = sorted({width for width, _, _ in means})
    for color, count in zip(COLORS, SIMULATIONS, strict=False):
        for width in widths:
            steps = [step for other, step in flops if other == width]
            points = [flops[width, step] for step in steps], [means[width, step, count] for step in steps]
            label = f"{count} simulations" if width == widths[0] else None
            panels[0].plot(*points, color=color, marker="o", markersize=3, linewidth=0.8, label=label)
    last = max(step for _, step in flops)
    for color, width in zip(COLORS, widths, strict=False):
        shares = [means[width, last, count] for count in SIMULATIONS]
        panels[1].plot([count + 1 for count in SIMULATIONS], shares, color=color, marker="o", label=f"width {width}")
    for panel, title, x in zip(
        panels,
        ("mistakes", f"mistakes after {last} iterations"),
        ("FLOPs of training", "evaluations at play"),
        strict=True,
    ):
        panel.set_xscale("log", base=2)
        panel.set_yscale("log")
        style(panel, title, x, shares=True)
    save_figure(figure, path)


if __name__ == "__main__":
    run_study(main)
