"""Where should games of self-play begin? Three kinds of starts, judged by exact mistakes on whole boards.

Each board is learned with its preset, in games that are played to their end. Only their starts differ:

- the start of the game alone;
- the position after 0 to 12 random plies;
- for half of the games a position of the replay (Go-Exploit, Trudeau and Bowling 2023), for the others the start;
- for half of the games that one of eight positions of the replay whose result differed most from its value (ranked by
  regret, as in RGSC, Tsai et al. 2026), for the others the start;
- the same, and for the others random plies;
- for comparison, the starts of the preset: most games are short and begin at positions drawn evenly by their numbers,
  which other games do not have.

All train for as many iterations with several seeds, with a learning rate that falls to its end. Then the network alone
plays every unfinished position of the solved game; a move that loses value is a mistake.

    python experiments/where_games_begin.py

It takes about two hours on 2 CPU cores. Runs are resumed, and those that the result file has are not made again.
Writes experiments/results/where_games_begin.json and docs/where_games_begin.png.
"""

from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.console import Console
from rich.table import Table
from small_boards import BOARDS
from study import (
    COLORS,
    DOCS,
    RESULTS,
    RUNS,
    board_title,
    refuse_unknown,
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

WHOLE_GAMES = {"exploring_starts": 0.0, "exploring_plies": 0}
FROM_START = WHOLE_GAMES | {"random_start_plies": 0}
STARTS: dict[str, dict[str, Any]] = {
    "the start": FROM_START,
    "random plies": WHOLE_GAMES,
    "earlier positions": FROM_START | {"restart_candidates": 1},
    "earlier positions by regret": FROM_START | {"restart_candidates": 8},
    "random plies, earlier positions by regret": WHOLE_GAMES | {"restart_candidates": 8},
    "numbered positions": {},
}

Row = dict[str, Any]


def main(
    iterations: int = 120,
    seeds: int = 3,
    boards: tuple[str, ...] = tuple(BOARDS),
    runs: Path = RUNS / "where_games_begin",
    output: Path = RESULTS / "where_games_begin.json",
    plot: Path = DOCS / "where_games_begin.png",
) -> None:
    """Trains, judges, prints, writes and draws.

    Args:
      iterations: of each run.
      seeds: runs of each kind of start on each board.
      boards: names of the boards.
      runs: parent of the run folders.
      output: file of the results.
      plot: picture of the mistakes.
    """
    refuse_unknown("board", boards, BOARDS)
    console = Console()
    settings = {"iterations": iterations}
    rows: list[Row] = results_so_far(output, settings, rows=[])["rows"]
    done = {(row["board"], row["starts"], row["seed"]) for row in rows}
    for board in boards:
        game_name, options = BOARDS[board]
        game = azjax.make(game_name, **options)
        with console.status(f"solving {board}"):
            solution = solve(game, max_states=None)
        preset = azjax.preset(game)
        updates = iterations * preset.updates_per_iteration
        preset = preset.replace(iterations=iterations, checkpoint_every=iterations, decay_updates=updates)
        # Seed by seed: with all kinds of starts side by side early on.
        for seed in range(seeds):
            for starts, changes in STARTS.items():
                if (board, starts, seed) in done:
                    continue
                folder = runs / f"{board}-{starts.replace(', ', '_').replace(' ', '_')}-{seed}"
                run = trained(game, folder, console, seed=seed, config=preset.replace(**changes))
                with console.status(f"{board}, {starts}, seed {seed}"):
                    network = run.config.make_network(game)
                    player = network_player(game, network, load_variables(run.folder)[1])
                    found = mistakes(solution, tabulate(player, solution, jax.random.key(0)))
                row = {"board": board, "starts": starts, "seed": seed, "seconds": run.seconds(iterations)}
                rows.append({**row, "mistakes": round(found.count), "positions": found.states})
                write_results(output, "where_games_begin.py", settings, rows=rows)
    console.print(table(rows))
    draw(rows, plot)
    console.print(f"written to {output}, drawn to {plot}", soft_wrap=True)


def shares_of(rows: list[Row], board: str, starts: str) -> list[float]:
    """The shares of mistakes of all seeds."""
    own = (row for row in rows if (row["board"], row["starts"]) == (board, starts))
    return [row["mistakes"] / row["positions"] for row in own]


def table(rows: list[Row]) -> Table:
    """The mean share of mistakes, and that of the best and the worst seed."""
    boards = list(dict.fromkeys(row["board"] for row in rows))
    shown = Table("games begin at", *boards)
    for starts in STARTS:
        cells = []
        for board in boards:
            shares = shares_of(rows, board, starts)
            span = f"{np.mean(shares):.2%} ({min(shares):.2%} to {max(shares):.2%})" if shares else ""
            cells.append(span)
        shown.add_row(starts, *cells)
    return shown


def draw(rows: list[Row], path: Path) -> None:
    """Draws the share of mistakes of every run, a line for each kind of start."""
    boards = list(dict.fromkeys(row["board"] for row in rows))
    figure, panels = wide_figure(len(boards), height=3.2, sharey=True)
    for panel, board in zip(panels, boards, strict=True):
        for number, starts in enumerate(STARTS):
            shares = shares_of(rows, board, starts)
            panel.semilogx(shares, [number] * len(shares), "o", color=COLORS[number % len(COLORS)], alpha=0.7)
        panel.set_yticks(range(len(STARTS)), list(STARTS))
        style(panel, board_title(board), "mistakes of the network, all positions", legend=False)
        panel.xaxis.set_major_formatter(lambda share, _: f"{100 * share:g}%")
    panels[0].invert_yaxis()
    save_figure(figure, path)


if __name__ == "__main__":
    run_study(main)
