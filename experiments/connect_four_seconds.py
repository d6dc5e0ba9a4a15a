"""How few mistakes does the Connect Four agent make, the longer it thinks about a move?

The packaged agent searches with a solver, several leaves a step, and more and more simulations. For each number of them
the study counts mistakes on the positions of `connect_four_positions.py` and, with --sets, on the hardest of Pascal
Pons' test sets (see `connect_four.py`), and times the search of one position.

    pip install 'azjax[interop]'
    python experiments/connect_four_seconds.py [--sets FOLDER]

It takes about an hour on 2 CPU cores. Mistakes that the file of results has are not counted again; the times are
always measured again, one after the other. Writes experiments/results/connect_four_seconds.json and
docs/connect_four_seconds.png.
"""

import dataclasses
import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
from connect_four import POSITIONS, Positions, load_positions, load_sets, mistakes
from rich.console import Console
from rich.progress import track
from study import (
    COLORS,
    DOCS,
    RESULTS,
    agent_digest,
    results_so_far,
    run_study,
    save_figure,
    style,
    wide_figure,
    write_results,
)

import azjax
from azjax.games.game import Game
from azjax.packaged import Agent, load_agent
from azjax.runs.throughput import median_seconds
from azjax.search import search_within
from azjax.search.alphazero import AlphaZero
from azjax.search.hyper import SearchHyper

MOST_LEAVES, SIMULATIONS_PER_LEAF = 16, 100
CHUNK = 1_600  # simulations, after which a search ends if all of its positions are proven
BATCH = 64  # trees of 25,600 nodes side by side
TIMED = 24  # positions
HARDEST = "begin, hard"


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
    settings: dict[str, Any] = {"most_leaves": MOST_LEAVES, "simulations_per_leaf": SIMULATIONS_PER_LEAF}
    settings |= {"timed": TIMED, "agent_digest": agent_digest(game.name)}
    rows = results_so_far(output, settings, rows=[])["rows"]
    positions = load_positions(game, json.loads(POSITIONS.read_text()))
    hardest = of_kind(load_sets(game, sets), HARDEST) if sets else None
    for simulations in num_simulations:
        if any(row["num_simulations"] == simulations and (hardest is None or HARDEST in row) for row in rows):
            continue
        rows = [row for row in rows if row["num_simulations"] != simulations]
        rows.append(count(game, simulations, positions, hardest))
        console.print({name: cell for name, cell in rows[-1].items() if name != "by_ply"})
        write_results(output, "connect_four_seconds.py", settings, rows=rows)
    for row in rows:
        row["seconds_per_move"] = round(seconds_per_move(game, row["num_simulations"], positions), 4)
        console.print(f"{row['num_simulations']:,} simulations: {row['seconds_per_move']} seconds")
    write_results(output, "connect_four_seconds.py", settings, rows=rows)
    draw(rows, plot)
    console.print(f"written to {output}, drawn to {plot}", soft_wrap=True)


def of_kind(positions: Positions, kind: str) -> Positions:
    """Those of one kind."""
    rows = np.flatnonzero(positions.kinds == kind)
    arrays = {
        field.name: getattr(positions, field.name)[rows]
        for field in dataclasses.fields(Positions)
        if field.name not in ("moves", "states")
    }
    states = jax.tree.map(lambda leaf: leaf[rows], positions.states)
    return Positions(moves=[positions.moves[row] for row in rows], states=states, **arrays)


def count(game: Game, num_simulations: int, positions: Positions, hardest: Positions | None) -> dict[str, Any]:
    """The row of one number of simulations, without its time."""
    row = {
        "num_simulations": num_simulations,
        "leaves_per_step": leaves_per_step(num_simulations),
        **mistakes(moves(game, num_simulations, positions), positions),
    }
    if hardest is not None:
        lost = (moves(game, num_simulations, hardest) * ~hardest.keeps).sum(axis=1)
        row[HARDEST] = round(float(lost.mean()), 4)
    return row


def moves(game: Game, num_simulations: int, positions: Positions) -> np.ndarray:
    """float [n, 7]: 1 for the agent's move in each position, and 0 for the others."""
    agent = load_agent("connect_four")
    policy = make_policy(game, agent, num_simulations, min(num_simulations, CHUNK))
    n, actions = len(positions.moves), []
    for start in track(range(0, n, BATCH), f"{num_simulations:,} simulations"):
        rows = np.arange(start, start + BATCH) % n  # full batches: one compilation
        states = jax.tree.map(lambda leaf, rows=rows: leaf[rows], positions.states)
        result = search_within(
            policy,
            agent.variables,
            jax.random.key(start),
            states,
            hyper=SearchHyper(c_puct=agent.hyper.c_puct),
            num_simulations=num_simulations,
        )
        actions.append(np.asarray(result.action))
    return np.eye(game.num_actions)[np.concatenate(actions)[:n]]


def make_policy(game: Game, agent: Agent, num_simulations: int, chunk: int) -> AlphaZero:
    """The search of the packaged agent, `chunk` of its simulations at a time."""
    return AlphaZero(game, agent.evaluator, chunk, leaves_per_step(num_simulations), solver=True)


def leaves_per_step(num_simulations: int) -> int:
    """So many that they cost no strength; see docs/search.md."""
    return min(MOST_LEAVES, num_simulations // SIMULATIONS_PER_LEAF)


def seconds_per_move(game: Game, num_simulations: int, positions: Positions) -> float:
    """The median over positions, one at a time, spread over all plies, of a search that nothing ends early."""
    agent = load_agent("connect_four")
    policy = make_policy(game, agent, num_simulations, num_simulations)
    search = jax.jit(lambda states: policy(agent.variables, jax.random.key(0), states).action)
    rows = np.linspace(0, len(positions.moves) - 1, TIMED + 1).astype(int)  # the first one compiles
    states = iter([jax.tree.map(lambda leaf, row=row: leaf[row : row + 1], positions.states) for row in rows])
    return median_seconds(lambda: search(next(states)), TIMED)


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Draws mistakes against the seconds of a move."""
    figure, (panel,) = wide_figure(1, width=6)
    seconds = [row["seconds_per_move"] for row in rows]
    names = {"all": "the judged positions", "narrow": "to ply 12, at most 2 right moves", HARDEST: "Pons' hardest set"}
    for (key, name), color in zip(names.items(), COLORS, strict=False):
        shares = [row.get(key, np.nan) for row in rows]
        panel.plot(seconds, shares, color=color, marker="o", markersize=3, label=name)
    panel.set_xscale("log")
    panel.set_ylim(bottom=0)
    style(panel, "moves that give away a win or a draw", "seconds a move", shares=True)
    panel.yaxis.set_major_formatter(lambda share, _: f"{share:.1%}")
    save_figure(figure, path)


if __name__ == "__main__":
    run_study(main)
