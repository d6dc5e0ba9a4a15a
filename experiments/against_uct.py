"""How strong is the agent of a game that nobody has solved, and what made it so: time, or simulations?

Trains the preset of Brandub, or of Santorini on 5x5 with two workers, from self-play alone.
Then it plays matches, one half of the games on each side, against UCT with random rollouts and against random moves:

- each kept checkpoint with 100 simulations against `uct:1000`: strength against training time;
- the last one alone and with 25, 100 and 400 simulations: strength against simulations.

    python experiments/against_uct.py brandub
    python experiments/against_uct.py santorini_5x5

A run that is there already goes on or is taken as it is. Writes experiments/results/NAME.json and docs/NAME.png.
"""

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any, Literal

import jax
import numpy as np
import tyro
from matplotlib.figure import Figure
from rich.console import Console
from rich.progress import track
from rich.table import Table

import azjax
from azjax.benchmark.search import machine
from azjax.evaluation import MatchResult, Player, Record, play_match
from azjax.games.game import Game
from azjax.training import Checkpoints
from azjax.training.metrics import TIMING, read_rows

ROOT = Path(__file__).parents[1]
GAMES: dict[str, tuple[str, dict[str, Any]]] = {
    "brandub": ("brandub", {}),
    "santorini_5x5": ("santorini", {"size": 5, "workers": 2}),
}
SIDES = {"brandub": ("attackers", "defenders"), "santorini_5x5": ("moving first", "moving second")}


def main(
    name: tyro.conf.Positional[Literal["brandub", "santorini_5x5"]],
    iterations: int | None = None,
    seed: int = 0,
    rival: str = "uct:1000",
    num_simulations: int = 100,
    other_simulations: tuple[int, ...] = (25, 400),
    games: int = 200,
    games_on_the_way: int = 100,
    folder: Path | None = None,
    output: Path | None = None,
    plot: Path | None = None,
) -> None:
    """Trains, plays, prints, writes and draws.

    Args:
      name: of the game.
      iterations: of training; those of the preset by default.
      seed: of the run.
      rival: a search without a network.
      num_simulations: of the agent's searches.
      other_simulations: with which the last checkpoint plays too.
      games: of each match of the last checkpoint.
      games_on_the_way: of each match of the others.
      folder: of the run; runs/NAME-SEED by default.
      output: the results.
      plot: the scores against time and simulations.
    """
    console = Console()
    game_name, options = GAMES[name]
    game = azjax.make(game_name, **options)
    config = dataclasses.replace(azjax.preset(game), seed=seed)
    if iterations is not None:
        config = dataclasses.replace(config, iterations=iterations)
    folder = ROOT / "runs" / f"{name}-{seed}" if folder is None else folder
    result = azjax.train(game, config, folder, resume=True, console=console)
    if result.stopped_by is not None:
        sys.exit(128 + result.stopped_by)

    seconds = np.cumsum([row["seconds"] for row in read_rows(folder / TIMING)])
    *steps, last = Checkpoints(folder / "checkpoints").steps()
    against = azjax.load_player(rival, game)
    rows = []
    for step in track(steps, "checkpoints"):
        agent = azjax.load_player(f"{folder}@{step}", num_simulations=num_simulations)
        rows.append(row_of(game, agent, against, games_on_the_way, step, seconds))
    contests = [(azjax.load_player(f"{folder}@{last}", level="medium"), against)]
    for count in sorted({num_simulations, *other_simulations}):
        agent = azjax.load_player(f"{folder}@{last}", num_simulations=count)
        contests.append((agent, against))
        if count == num_simulations:
            contests.append((agent, azjax.load_player("random", game)))
    for agent, other in track(contests, "last checkpoint"):
        rows.append(row_of(game, agent, other, games, last, seconds))

    console.print(table(name, rows))
    report = {
        "command": f"python experiments/against_uct.py {name}",
        "settings": {"game": game_name, "options": game.options, "seed": seed, "config": dataclasses.asdict(config)},
        "machine": machine(),
        "rows": rows,
    }
    output = output or ROOT / "experiments" / "results" / f"{name}.json"
    plot = plot or ROOT / "docs" / f"{name}.png"
    output.write_text(json.dumps(report, indent=2) + "\n")
    draw(rows, f"network + {num_simulations} simulations", plot)
    console.print(f"written to {output}, drawn to {plot}", soft_wrap=True)


def row_of(game: Game, agent: Player, other: Player, games: int, step: int, seconds: np.ndarray) -> dict[str, Any]:
    """A match, told."""
    match = play_match(game, agent, other, games, jax.random.key(step))
    return {
        "player": agent.name,
        "rival": other.name,
        "iteration": step,
        "seconds": round(float(seconds[step - 1])),
        "games": match.games,
        **told("", match.total),
        **told("first_", match.moving_first),
        **told("second_", match.moving_second),
        "interval": [round(end, 4) for end in match.interval],
        "drawn_before_the_last_ply": early_draws(match, game.max_plies),
        "plies": {f"{share:.0%}": float(np.quantile(match.plies, share)) for share in (0.05, 0.5, 0.95)},
        "mean_plies": round(match.mean_length, 1),
    }


def told(prefix: str, record: Record) -> dict[str, Any]:
    """Score, wins, draws and losses."""
    counts = [record.wins, record.draws, record.losses]
    return {f"{prefix}score": round(record.score, 4), f"{prefix}won_drawn_lost": counts}


def early_draws(match: MatchResult, max_plies: int) -> int:
    """Draws that are not for length: in Brandub by repetition, or where a side could not move."""
    return sum(reward == 0 and plies < max_plies for reward, plies in zip(match.rewards, match.plies, strict=True))


def table(name: str, rows: list[dict[str, Any]]) -> Table:
    """For people."""
    first, second = SIDES[name]
    shown = Table("", "against", "minutes", "score", "95%", first, second, "drawn", "plies", title=name)
    for row in rows:
        low, high = row["interval"]
        shown.add_row(
            row["player"],
            row["rival"],
            f"{row['seconds'] / 60:.0f}",
            f"{row['score']:.1%}",
            f"{low:.0%} to {high:.0%}",
            f"{row['first_score']:.1%}",
            f"{row['second_score']:.1%}",
            str(row["won_drawn_lost"][1]),
            f"{row['mean_plies']:.0f}",
        )
    return shown


def draw(rows: list[dict[str, Any]], agent: str, path: Path) -> None:
    """Scores against time and against simulations."""
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    time, simulations = figure.subplots(1, 2, sharey=True)
    last = rows[-1]["iteration"]
    against_uct = [row for row in rows if row["rival"] != "random"]
    on_the_way = [row for row in against_uct if row["player"] == agent]
    deeper = [row for row in against_uct if row["iteration"] == last]
    counts = [1 if row["player"] == "network" else int(row["player"].split()[2]) for row in deeper]
    for panel, chosen, places in (
        (time, on_the_way, [row["seconds"] / 60 for row in on_the_way]),
        (simulations, deeper, counts),
    ):
        scores = np.array([row["score"] for row in chosen])
        ends = np.array([row["interval"] for row in chosen])
        panel.errorbar(places, scores, [scores - ends[:, 0], ends[:, 1] - scores], color="#2a6fbb", marker="o", ms=3)
        panel.set_ylim(0, 1.02)
        panel.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(axis="y", color="#e6e6e6", linewidth=0.8)
    time.set_title(f"points of {agent} against {against_uct[0]['rival']}", fontsize=10)
    time.set_xlabel("minutes of training")
    simulations.set_title("points of the last network", fontsize=10)
    simulations.set_xlabel("simulations a move (the network alone at 1)")
    simulations.set_xscale("log")
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    tyro.cli(main)
