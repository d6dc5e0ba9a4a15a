"""How soon does a network alone know all positions of a small board?

Each board is learned with its preset, from self-play alone, with three seeds. Every kept checkpoint then plays the best
move of its network in every unfinished position of the solved game; a move that loses value is a mistake.

    python experiments/small_boards.py

Runs are resumed, and checkpoints that the result file has are not judged again. Writes
experiments/results/small_boards.json and docs/small_boards.png.
"""

from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.console import Console
from study import (
    COLORS,
    DOCS,
    RESULTS,
    RUNS,
    board_title,
    config_digest,
    results_so_far,
    run_study,
    save_figure,
    style,
    trained,
    wide_figure,
    write_results,
)

import azjax
from azjax.evaluation import mistakes, network_player, solve, tabulate
from azjax.runs import load_variables

BOARDS: dict[str, tuple[str, dict[str, Any]]] = {
    "connect_four_5x4": ("connect_four", {"columns": 5, "rows": 4}),
    "hex_4x4": ("hex", {"size": 4}),
}


def main(
    seeds: int = 3,
    iterations: int | None = None,
    runs: Path = RUNS / "small_boards",
    output: Path = RESULTS / "small_boards.json",
    plot: Path = DOCS / "small_boards.png",
) -> None:
    """Trains, judges, writes and draws.

    Args:
      seeds: runs of each board.
      iterations: of each run; None for those of the preset.
      runs: parent of the run folders.
      output: file of the results.
      plot: picture of the mistakes against minutes.
    """
    console = Console()
    games = {name: azjax.make(game, **options) for name, (game, options) in BOARDS.items()}
    configs = {name: azjax.preset(game) for name, game in games.items()}
    if iterations is not None:
        configs = {name: config.replace(iterations=iterations) for name, config in configs.items()}
    settings = {"config_digests": {name: config_digest(config) for name, config in configs.items()}}
    rows: list[dict[str, Any]] = results_so_far(output, settings, rows=[])["rows"]
    done = {(row["board"], row["seed"], row["iteration"]) for row in rows}
    for name, game in games.items():
        with console.status(f"solving {name}"):
            solution = solve(game, max_states=None)
        for seed in range(seeds):
            run = trained(game, runs / f"{name}-{seed}", console, seed=seed, config=configs[name])
            network = run.config.make_network(game)
            for step in run.steps:
                if (name, seed, step) in done:
                    continue
                with console.status(f"{name}, seed {seed}: iteration {step}"):
                    player = network_player(game, network, load_variables(run.folder, step)[1])
                    found = mistakes(solution, tabulate(player, solution, jax.random.key(0)))
                row = {"board": name, "seed": seed, "iteration": step, "seconds": run.seconds(step)}
                rows.append({**row, "mistakes": round(found.count), "positions": found.states})
                write_results(output, "small_boards.py", settings, rows=rows)
                console.print(f"{name}, seed {seed}, iteration {step}: {found.share:.3%} mistakes")
    draw(rows, plot)


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Shares of mistakes against minutes, a line for each seed."""
    names = list(dict.fromkeys(row["board"] for row in rows))
    figure, panels = wide_figure(len(names), width=5.5 * len(names), sharey=True)
    for name, panel in zip(names, panels, strict=True):
        for seed in sorted({row["seed"] for row in rows}):
            own = [row for row in rows if (row["board"], row["seed"]) == (name, seed)]
            shares = np.array([row["mistakes"] / row["positions"] for row in own])
            minutes = [row["seconds"] / 60 for row in own]
            panel.semilogy(minutes, shares, "o-", color=COLORS[seed % len(COLORS)], label=f"seed {seed}")
        style(panel, board_title(name), "minutes", shares=True)
        panel.yaxis.set_major_formatter(lambda share, _: f"{share:.2%}")
    panels[0].set_ylabel("mistakes of the network, all positions")
    save_figure(figure, path)


if __name__ == "__main__":
    run_study(main)
