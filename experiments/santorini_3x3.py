"""Santorini 3x3 with one worker each: do 93 minutes of self-play on one core learn a game of 61 million positions?

Trains with the game's preset and measures the agent on 1,200 positions of the solved game, spread over all plies. Their
values, distances and the values of every move come from tests/golden/solved. The measures are the share of moves that
keep a win, the share that keep a win of 7 plies or more, and the share of values with the right sign. The same search
without a network is measured too. Then the mistakes of the last network are counted on all 44 million unfinished
positions. The solution does not enter training.

    python experiments/santorini_3x3.py

Training took 93 minutes on one CPU core. A run that exists is resumed or reused. Writes
experiments/results/santorini_3x3.json and docs/santorini_3x3.png.
"""

import gzip
import json
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from rich.console import Console
from rich.table import Table
from study import (
    COLORS,
    DOCS,
    GRAY,
    RESULTS,
    ROOT,
    RUNS,
    run_study,
    save_figure,
    style,
    trained,
    wide_figure,
    write_results,
)

import azjax
from azjax.evaluation import Player, choose, mistakes, network_player, search_player, solve, tabulate
from azjax.games.game import Game
from azjax.games.registry import options_of
from azjax.networks import Variables
from azjax.runs import load_variables
from azjax.search import evaluators
from azjax.training import Config

SAMPLE = ROOT / "tests" / "golden" / "solved" / "santorini_3_1_public.jsonl.gz"
LONG_WIN = 7  # plies


class Solved(NamedTuple):
    """P positions with their exact values; A actions.

    Attributes:
      states: every leaf [P, ...].
      values: int [P]; values for the side to move.
      plies: int [P]; plies to the end with best play.
      keeps: bool [P, A]; the moves that keep the value.
    """

    states: Any
    values: np.ndarray
    plies: np.ndarray
    keeps: np.ndarray


def main(
    iterations: int | None = None,
    seed: int = 0,
    num_simulations: int = 128,
    folder: Path | None = None,
    output: Path = RESULTS / "santorini_3x3.json",
    plot: Path = DOCS / "santorini_3x3.png",
) -> None:
    """Trains, measures, prints, writes and draws the results.

    Args:
      iterations: iterations of training; by default those of the preset.
      seed: seed of the run.
      num_simulations: simulations of each search.
      folder: run folder; by default runs/santorini_3x3-SEED.
      output: file of the results.
      plot: picture of the shares against the training time.
    """
    console = Console()
    game = azjax.make("santorini", size=3, workers=1)
    solved = load_sample(game)
    run = trained(game, folder or RUNS / f"santorini_3x3-{seed}", console, seed=seed, iterations=iterations)
    plain = search_player(game, evaluators.uniform(game), num_simulations=num_simulations)
    rows = [{"player": f"uniform + {num_simulations}", **shares(plain, solved)}]
    for step in run.steps:
        _, variables = load_variables(run.folder, step)
        for name, player in players(game, run.config, variables, num_simulations).items():
            row = {"player": name, "iteration": step, "seconds": run.seconds(step)}
            rows.append({**row, **shares(player, solved)})
    console.print(table(rows))
    console.print("solving the game to count the mistakes of the last network on all positions")
    every = on_all_positions(network_player(game, run.config.make_network(game), variables), game)
    console.print(f"{every['mistakes']:,.0f} mistakes on {every['positions']:,} positions: {every['share']:.2%}")
    settings = {"game": "santorini", "options": options_of(game), "seed": seed, "num_simulations": num_simulations}
    write_results(output, "santorini_3x3.py", settings, rows=rows, all_positions=every)
    draw(rows, plot)
    console.print(f"written to {output}, drawn to {plot}", soft_wrap=True)


def load_sample(game: Game) -> Solved:
    """The unfinished positions of the golden file."""
    with gzip.open(SAMPLE, "rt", encoding="utf-8") as file:
        lines = [line for line in map(json.loads, file) if line["legal"]]
    states = [jax.device_get(game.from_text(line["state"])) for line in lines]
    keeps = np.zeros((len(lines), game.num_actions), bool)
    for row, line in zip(keeps, lines, strict=True):
        row[line["legal"]] = np.array(line["action_values"]) == line["value"]
    return Solved(
        states=jax.tree.map(lambda *leaves: np.stack(leaves), *states),
        values=np.array([line["value"] for line in lines]),
        plies=np.array([line["plies"] for line in lines]),
        keeps=keeps,
    )


def players(game: Game, config: Config, variables: Variables, num_simulations: int) -> dict[str, Player]:
    """Two players: the network alone, and the network with a search."""
    network = config.make_network(game)
    search = search_player(game, config.make_evaluator(game, network), variables, num_simulations=num_simulations)
    return {"network": network_player(game, network, variables), f"network + {num_simulations}": search}


def shares(player: Player, solved: Solved) -> dict[str, float]:
    """Shares of moves that keep a win and a long win, and of values with the right sign."""
    choice = jax.device_get(choose(player, jax.random.key(0), solved.states))
    right = (choice.probabilities * solved.keeps).sum(axis=1)
    won = solved.values > 0
    return {
        "wins_kept": round(float(right[won].mean()), 4),
        "long_wins_kept": round(float(right[won & (solved.plies >= LONG_WIN)].mean()), 4),
        "signs_right": round(float((np.sign(choice.value) == solved.values).mean()), 4),
    }


def on_all_positions(player: Player, game: Game) -> dict[str, float]:
    """Counts mistakes on all positions that can be reached from the start."""
    solution = solve(game, max_states=None)
    counted = mistakes(solution, tabulate(player, solution, jax.random.key(0), batch_size=4096))
    return {"positions": counted.states, "mistakes": counted.count, "share": round(counted.share, 5)}


def table(rows: list[dict[str, Any]]) -> Table:
    """The results as a table."""
    shown = Table("", "iteration", "minutes", "wins kept", f"of {LONG_WIN} plies or more", "sign of the value right")
    for row in rows:
        minutes = f"{row['seconds'] / 60:.1f}" if "seconds" in row else ""
        figures = [f"{row[name]:.1%}" for name in ("wins_kept", "long_wins_kept", "signs_right")]
        shown.add_row(row["player"], str(row.get("iteration", "")), minutes, *figures)
    return shown


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Draws the shares of mistakes against training time."""
    names = {"wins_kept": "wins given away", "long_wins_kept": "long wins given away", "signs_right": "wrong signs"}
    figure, panels = wide_figure(len(names), height=3.4)
    for panel, (name, title) in zip(panels, names.items(), strict=True):
        plain, *of_run = rows
        panel.axhline(1 - plain[name], color=GRAY, linestyle="--", label=plain["player"])
        for player, color in zip(dict.fromkeys(row["player"] for row in of_run), COLORS, strict=False):
            chosen = [row for row in of_run if row["player"] == player]
            minutes = [row["seconds"] / 60 for row in chosen]
            panel.plot(minutes, [1 - row[name] for row in chosen], color=color, marker="o", markersize=3, label=player)
        panel.set_ylim(bottom=0)
        style(panel, title, "minutes of training", shares=True)
    save_figure(figure, path)


if __name__ == "__main__":
    run_study(main)
