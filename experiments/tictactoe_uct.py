"""How many games of tic-tac-toe does UCT with random rollouts lose, by number of simulations?

The notebook from which this game comes runs 1,000 simulations a move, in about a second, and its game is a draw. Here
the same algorithm plays 1,000 games, half of them on each side, for each number of simulations: against random moves
and against best play, which never loses and wins after every mistake. The speed is measured for a single search, as in
play against a person, and for a batch of 1,000.

Like the notebook it prints the nodes in the order in which they are added, with the results of their rollouts, and the
tree, each with counts, wins of either side, expected value and UCB.

    python experiments/tictactoe_uct.py

Writes experiments/results/tictactoe_uct.json and docs/tictactoe_uct.png.
"""

from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from study import COLORS, DOCS, RESULTS, run_study, save_figure, style, wide_figure, write_results

import azjax
from azjax.evaluation import MatchResult, optimal_player, play_match, random_player, solve, uct_player
from azjax.render import to_text
from azjax.runs.throughput import median_seconds

GAME = azjax.make("tictactoe")
NOTEBOOK = {"simulations": 1000, "simulations_per_second": 3500}  # one search at a time, on a similar machine


def main(
    counts: tuple[int, ...] = (10, 30, 100, 300, 1000, 3000),
    games: int = 1000,
    shown_nodes: int = 20,
    seed: int = 0,
    output: Path = RESULTS / "tictactoe_uct.json",
    plot: Path = DOCS / "tictactoe_uct.png",
) -> None:
    """Runs searches and matches, prints, writes and draws the results.

    Args:
      counts: numbers of simulations a move.
      games: games of each match.
      shown_nodes: printed nodes of the tree of the start.
      seed: seed of all random choices.
      output: file of the results.
      plot: picture of scores and losses against simulations.
    """
    console = Console(highlight=False)
    show_search(console, shown_nodes, seed)
    best, random = optimal_player(solve(GAME)), random_player(GAME)
    rows = []
    for count in track(counts, "matches", console=console):
        player = uct_player(GAME, num_simulations=count)
        against = {
            rival.name: match_row(play_match(GAME, player, rival, games, jax.random.key(seed), batch_size=games // 2))
            for rival in (random, best)
        }
        one, many = (simulations_per_second(count, batch) for batch in (1, 1000))
        rows.append({"simulations": count, "against": against, "one_position": one, "batch_of_1000": many})
    console.print(table(rows))
    settings = {"games": games, "seed": seed, "notebook": NOTEBOOK}
    write_results(output, "tictactoe_uct.py", settings, rows=rows)
    draw(rows, plot)
    console.print(f"written to {output}, drawn to {plot}", soft_wrap=True)


def show_search(console: Console, nodes: int, seed: int) -> None:
    """Prints a search from the start in the form of the notebook."""
    states = jax.tree.map(lambda leaf: leaf[None], GAME.init(jax.random.key(seed)))
    result = azjax.uct_policy(None, jax.random.key(seed), states, game=GAME, num_simulations=1000)
    console.print("nodes in the order in which they were added, and the results of their rollouts")
    console.print(to_text(result.tree, GAME, max_nodes=nodes, order="made", trace=True), soft_wrap=True)
    console.print("the most visited nodes")
    console.print(to_text(result.tree, GAME, max_nodes=nodes, order="visits"), soft_wrap=True)
    console.print(f"the move: {GAME.action_to_text(GAME.init(jax.random.key(seed)), int(result.action[0]))}")


def match_row(match: MatchResult) -> dict[str, Any]:
    """The score, its interval and the counts of games won, drawn and lost."""
    record = match.total
    return {
        "score": round(match.score, 4),
        "interval": [round(end, 4) for end in match.interval],
        "won_drawn_lost": [record.wins, record.draws, record.losses],
    }


def simulations_per_second(count: int, batch: int, rounds: int = 5) -> float:
    """The median over `rounds`, without compilation."""
    states = jax.vmap(GAME.init)(jax.random.split(jax.random.key(0), batch))
    search = jax.jit(lambda key: azjax.uct_policy(None, key, states, game=GAME, num_simulations=count).action)
    return round(batch * count / median_seconds(lambda: search(jax.random.key(0)), rounds), -2)


def table(rows: list[dict[str, Any]]) -> Table:
    """The results as a table."""
    shown = Table(
        "simulations", "lost to random", "lost to best play", "score", "one position, /s", "1,000 at once, /s"
    )
    for row in rows:
        random, best = row["against"]["random"], row["against"]["optimal"]
        lost = (str(rival["won_drawn_lost"][2]) for rival in (random, best))
        speeds = (f"{row[name]:,.0f}" for name in ("one_position", "batch_of_1000"))
        shown.add_row(f"{row['simulations']:,}", *lost, f"{best['score']:.1%}", *speeds)
    shown.add_row("notebook", "", "", "", f"{NOTEBOOK['simulations_per_second']:,}", "")
    return shown


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Draws games lost and points against simulations."""
    figure, (losses, points) = wide_figure(2)
    counts = [row["simulations"] for row in rows]
    for rival, color in (("optimal", COLORS[0]), ("random", COLORS[1])):
        records = [row["against"][rival] for row in rows]
        lost = np.array([record["won_drawn_lost"][2] / sum(record["won_drawn_lost"]) for record in records])
        losses.plot(counts, lost, color=color, marker="o", ms=3, label=f"against {rival}")
        scores = np.array([record["score"] for record in records])
        ends = np.array([record["interval"] for record in records])
        around = np.maximum([scores - ends[:, 0], ends[:, 1] - scores], 0)
        points.errorbar(counts, scores, around, color=color, marker="o", ms=3, label=f"against {rival}")
    for panel, title in ((losses, "games lost"), (points, "points a game")):
        panel.set_xscale("log")
        panel.set_ylim(bottom=0)
        style(panel, title, "simulations a move", shares=True)
    save_figure(figure, path)


if __name__ == "__main__":
    run_study(main)
