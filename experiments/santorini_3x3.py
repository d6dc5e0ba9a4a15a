"""Santorini 3x3 with one worker each: does an hour of self-play on 2 cores learn a game of 61 million positions?

Trains with the game's preset and judges 1,200 positions of the solved game, spread over all plies, whose values,
distances and values of every move are known (tests/golden/solved): how many moves keep the value where the side to move
has a win, how many where that win takes 7 plies or more, and how often the sign of the value is right. Beside it stands
the same search without a network. Nothing of the solution enters training.

    python experiments/santorini_3x3.py

About an hour. A run that is there already is finished or taken as it is. Writes
experiments/results/santorini_3x3.json and docs/santorini_3x3.png.
"""

import dataclasses
import gzip
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import tyro
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

import azjax
from azjax.benchmark.search import machine
from azjax.evaluation import Player, judge, network_player, search_player
from azjax.games.game import Game
from azjax.search import evaluators
from azjax.training import Checkpoints, load_run, load_variables
from azjax.training.metrics import TIMING, read_rows

ROOT = Path(__file__).parents[1]
SAMPLE = ROOT / "tests" / "golden" / "solved" / "santorini_3_1_public.jsonl.gz"
LONG_WIN = 7  # plies


class Solved(NamedTuple):
    """Positions with what is exactly known of them; P positions, A actions.

    states: every leaf [P, ...].
    values: int [P]; for the side to move.
    plies: int [P]; to the end with best play.
    keeps: bool [P, A]; moves that keep the value.
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
    output: Path = ROOT / "experiments" / "results" / "santorini_3x3.json",
    plot: Path = ROOT / "docs" / "santorini_3x3.png",
) -> None:
    """Trains, judges, prints, writes and draws.

    Args:
      iterations: of training; those of the preset by default.
      seed: of the run.
      num_simulations: of each search that is judged.
      folder: of the run; runs/santorini_3x3-SEED by default.
      output: the results.
      plot: the shares against the training time.
    """
    console = Console()
    game = azjax.make("santorini", size=3, workers=1)
    solved = load_sample(game)
    config = dataclasses.replace(azjax.preset(game), seed=seed)
    if iterations is not None:
        config = dataclasses.replace(config, iterations=iterations)
    folder = ROOT / "runs" / f"santorini_3x3-{seed}" if folder is None else folder
    result = azjax.train(game, config, folder, resume=True, console=console)
    if result.stopped_by is not None:
        sys.exit(128 + result.stopped_by)
    plain = search_player(game, evaluators.uniform(game), num_simulations=num_simulations)
    rows = [{"player": f"uniform + {num_simulations}", **shares(plain, solved)}]
    seconds = np.cumsum([row["seconds"] for row in read_rows(folder / TIMING)])
    for step in Checkpoints(folder / "checkpoints").steps():
        for name, player in players(game, folder, step, num_simulations).items():
            told = {"player": name, "iteration": step, "seconds": round(float(seconds[step - 1]))}
            rows.append({**told, **shares(player, solved)})
    console.print(table(rows))
    report = {
        "command": "python experiments/santorini_3x3.py",
        "settings": {"game": "santorini", "options": game.options, "seed": seed, "num_simulations": num_simulations},
        "machine": machine(),
        "rows": rows,
    }
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(report, indent=2) + "\n")
    draw(rows, plot)
    console.print(f"written to {output}, drawn to {plot}", soft_wrap=True)


def load_sample(game: Game) -> Solved:
    """The positions of the golden file that are not the end."""
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


def players(game: Game, folder: Path, step: int, num_simulations: int) -> dict[str, Player]:
    """The agent at a checkpoint, alone and with a search."""
    network, (_, variables) = load_run(folder)[1].make_network(), load_variables(folder, step)
    search = search_player(game, evaluators.network(network, game), variables, num_simulations=num_simulations)
    return {"network": network_player(game, network, variables), f"network + {num_simulations}": search}


def shares(player: Player, solved: Solved) -> dict[str, float]:
    """How much of it is right: moves where the side to move wins, those of long wins, signs of the value."""
    judgement = jax.device_get(judge(player, jax.random.key(0), solved.states))
    right = (judgement.probabilities * solved.keeps).sum(axis=1)
    won = solved.values > 0
    return {
        "wins_kept": round(float(right[won].mean()), 4),
        "long_wins_kept": round(float(right[won & (solved.plies >= LONG_WIN)].mean()), 4),
        "signs_right": round(float((np.sign(judgement.value) == solved.values).mean()), 4),
    }


def table(rows: list[dict[str, Any]]) -> Table:
    """For people."""
    shown = Table("", "iteration", "minutes", "wins kept", f"of {LONG_WIN} plies or more", "sign of the value right")
    for row in rows:
        minutes = f"{row['seconds'] / 60:.1f}" if "seconds" in row else ""
        figures = [f"{row[name]:.1%}" for name in ("wins_kept", "long_wins_kept", "signs_right")]
        shown.add_row(row["player"], str(row.get("iteration", "")), minutes, *figures)
    return shown


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Shares that are wrong against training time."""
    figure = Figure(figsize=(11, 3.4), layout="constrained")
    names = {"wins_kept": "wins given away", "long_wins_kept": "long wins given away", "signs_right": "wrong signs"}
    for panel, (name, title) in zip(figure.subplots(1, 3), names.items(), strict=True):
        (plain, *trained) = rows
        panel.axhline(1 - plain[name], color="#9aa0a6", linestyle="--", label=plain["player"])
        for player, colour in zip(dict.fromkeys(row["player"] for row in trained), ("#c8553d", "#2a6fbb"), strict=True):
            chosen = [row for row in trained if row["player"] == player]
            minutes = [row["seconds"] / 60 for row in chosen]
            panel.plot(minutes, [1 - row[name] for row in chosen], color=colour, marker="o", markersize=3, label=player)
        panel.set_title(title, fontsize=10)
        panel.set_xlabel("minutes")
        panel.set_ylim(bottom=0)
        panel.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(axis="y", color="#e6e6e6", linewidth=0.8)
        panel.legend(frameon=False, fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    tyro.cli(main)
