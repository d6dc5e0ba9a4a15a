"""How few mistakes does the Connect Four agent make, the longer it thinks about a move?

The packaged agent searches with a solver, several leaves a step, and more and more simulations. For each number of them
the study counts mistakes on the positions of `connect_four_positions.py` and, with --sets, on Pascal Pons' six test
sets (see `connect_four.py`), and times the search of one position.

    pip install 'azjax[interop]'
    python experiments/connect_four_seconds.py [--sets FOLDER]

It takes about an hour on 2 CPU cores. Mistakes that the file of results has are not counted again; the times are always
measured anew, one after the other.
Writes experiments/results/connect_four_seconds.json and docs/connect_four_seconds.png.
"""

import json
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
import tyro
from connect_four import POSITIONS, Positions, by_set, load_positions, load_sets, mistakes, move_probabilities
from rich.console import Console
from study import COLORS, DOCS, GRAY, RESULTS, save_figure, style, wide_figure, write_results

import azjax
from azjax.evaluation import Player, search_player
from azjax.evaluation.players import act
from azjax.games.game import Game
from azjax.packaged import load_agent

MOST_LEAVES, SIMULATIONS_PER_LEAF = 16, 100
BATCH = 64  # trees of 25,600 nodes side by side
TIMED = 24  # positions


def main(
    num_simulations: tuple[int, ...] = (100, 400, 1_600, 6_400, 25_600),
    sets: Path | None = None,
    output: Path = RESULTS / "connect_four_seconds.json",
    plot: Path = DOCS / "connect_four_seconds.png",
) -> None:
    """Measures, prints, writes and draws.

    Args:
      num_simulations: simulations of the searches, each measured in turn.
      sets: folder of Pons' test sets.
      output: file of the results.
      plot: picture of the mistakes against the seconds of a move.
    """
    console = Console()
    game = azjax.make("connect_four")
    positions = load_positions(game, json.loads(POSITIONS.read_text()))
    of_pons = load_sets(game, sets) if sets else None
    settings = {"most_leaves_per_step": MOST_LEAVES, "timed_positions": TIMED}
    rows = json.loads(output.read_text())["rows"] if output.exists() else []
    for simulations in num_simulations:
        if any(row["num_simulations"] == simulations for row in rows):
            continue
        rows.append(count(game, simulations, positions, of_pons))
        console.print({name: cell for name, cell in rows[-1].items() if name != "by_ply"})
        write_results(output, "connect_four_seconds.py", settings, rows=rows)
    for row in rows:
        row["seconds_per_move"] = round(seconds_per_move(make_player(game, row["num_simulations"]), positions), 4)
        console.print(f"{row['num_simulations']:,} simulations: {row['seconds_per_move']} seconds")
    write_results(output, "connect_four_seconds.py", settings, rows=rows)
    draw(rows, plot)
    console.print(f"written to {output}, drawn to {plot}", soft_wrap=True)


def count(game: Game, num_simulations: int, positions: Positions, of_pons: Positions | None) -> dict[str, Any]:
    """The row of one number of simulations, without its time."""
    player = make_player(game, num_simulations)
    row = {
        "num_simulations": num_simulations,
        "leaves_per_step": leaves_per_step(num_simulations),
        **mistakes(move_probabilities(player, positions, BATCH), positions),
    }
    if of_pons is not None:
        row["sets"] = by_set(move_probabilities(player, of_pons, BATCH), of_pons)
    return row


def make_player(game: Game, num_simulations: int) -> Player:
    """The packaged agent with so many simulations."""
    agent = load_agent("connect_four")
    return search_player(
        game,
        agent.evaluator,
        agent.variables,
        num_simulations=num_simulations,
        c_puct=agent.hyper.c_puct,
        solver=True,
        leaves_per_step=leaves_per_step(num_simulations),
    )


def leaves_per_step(num_simulations: int) -> int:
    """So many that they cost no strength; see docs/search.md."""
    return min(MOST_LEAVES, num_simulations // SIMULATIONS_PER_LEAF)


def seconds_per_move(player: Player, positions: Positions) -> float:
    """The median over positions, one at a time, spread over all plies."""
    seconds = []
    # The first one compiles.
    for row in np.linspace(0, len(positions.moves) - 1, TIMED + 1).astype(int):
        state = jax.tree.map(lambda leaf, row=row: leaf[row : row + 1], positions.states)
        began = time.perf_counter()
        jax.block_until_ready(act(player, jax.random.key(0), state)[0])
        seconds.append(time.perf_counter() - began)
    return float(np.median(seconds[1:]))


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Draws mistakes against the seconds of a move."""
    figure, panels = wide_figure(2)
    parts = [("the judged positions", "all"), ("to ply 12, at most 2 right moves", "narrow")]
    pons = ("begin, hard", "begin, medium", "middle, medium")
    seconds = [row["seconds_per_move"] for row in rows]
    for (name, key), color in zip(parts, COLORS, strict=False):
        panels[0].plot(seconds, [row[key] for row in rows], color=color, marker="o", markersize=3, label=name)
    for kind, color in zip(pons, COLORS, strict=False):
        shares = [row.get("sets", {}).get(kind, np.nan) for row in rows]
        panels[1].plot(seconds, shares, color=color, marker="o", markersize=3, label=kind)
    for panel, title in zip(panels, ("mistakes on the judged positions", "on Pons' sets"), strict=True):
        panel.axvline(1, color=GRAY, linestyle=":")
        panel.set_xscale("log")
        panel.set_ylim(bottom=0)
        style(panel, title, "seconds a move", shares=True)
        panel.yaxis.set_major_formatter(lambda share, _: f"{share:.1%}")
    save_figure(figure, path)


if __name__ == "__main__":
    tyro.cli(main)
