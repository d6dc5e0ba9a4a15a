"""Does the preset of each small game reach perfect play, from self-play alone, with every seed?

Trains `tictactoe`, `connect2` and Santorini on 2x2 with their presets and a few seeds each, and counts the mistakes of
the last network, alone and with 64 simulations, on all positions. About a minute a seed on 2 CPU cores.

    python experiments/perfect_play.py [--seeds 3] [--runs runs/perfect_play]

Runs that are there already are finished or taken as they are. Writes experiments/results/perfect_play.json.
"""

import dataclasses
import json
import sys
from pathlib import Path

import jax
import tyro
from rich.console import Console

import azjax
from azjax.benchmark.search import machine
from azjax.evaluation import exact_report, solve
from azjax.training.metrics import TIMING, read_rows

RESULTS = Path(__file__).parent / "results" / "perfect_play.json"
GAMES: tuple[tuple[str, dict[str, int]], ...] = (
    ("connect2", {}),
    ("tictactoe", {}),
    ("santorini", {"size": 2, "workers": 1}),
)


def main(seeds: int = 3, runs: Path = Path("runs/perfect_play")) -> None:
    """Trains and measures.

    Args:
      seeds: how many of each game, from 0.
      runs: where the run folders lie.
    """
    console = Console()
    rows = []
    for name, options in GAMES:
        game = azjax.make(name, **options)
        solution = solve(game)
        for seed in range(seeds):
            folder = runs / f"{name}-{seed}"
            config = dataclasses.replace(azjax.preset(game), seed=seed)
            result = azjax.train(game, config, folder, resume=True, console=console)
            if result.stopped_by is not None:
                sys.exit(128 + result.stopped_by)
            row = {"game": name, "seed": seed, "iterations": config.iterations}
            row["seconds"] = round(
                sum(step["seconds"] + step["evaluation_seconds"] for step in read_rows(folder / TIMING)), 1
            )
            for level, label in (("medium", "network"), ("hard", "network_and_64_simulations")):
                player = azjax.load_player(str(folder), level=level)
                report = exact_report(player, solution, jax.random.key(0))
                row[label] = {
                    "positions": report.mistakes.states,
                    "mistakes": report.mistakes.count,
                    "mistakes_in_own_games": report.mistakes.own_count,
                    "score_against_random": round(report.against_random.alternating.score, 4),
                    "loses_against_random": report.against_random.alternating.loss,
                    "score_against_optimal": round(report.against_optimal.alternating.score, 4),
                    "loses_against_optimal": report.against_optimal.alternating.loss,
                }
            console.print(row)
            rows.append(row)
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps({"machine": machine(), "rows": rows}, indent=2) + "\n")
    console.print(f"written to {RESULTS}")


if __name__ == "__main__":
    tyro.cli(main)
