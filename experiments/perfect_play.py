"""Does the preset of each small game reach perfect play, from self-play alone, with every seed?

Trains `tictactoe`, `connect2` and Santorini on 2x2 with their presets and a few seeds each, and counts the mistakes of
the last network, alone and with 64 simulations, on all positions. Training takes up to 13 seconds a seed on 2 CPU
cores.

    python experiments/perfect_play.py

Runs that exist are resumed or reused. Writes experiments/results/perfect_play.json.
"""

from pathlib import Path

import jax
from rich.console import Console
from study import RESULTS, RUNS, run_study, trained, write_results

import azjax
from azjax.evaluation import exact_report, solve

GAMES: tuple[tuple[str, dict[str, int]], ...] = (
    ("connect2", {}),
    ("tictactoe", {}),
    ("santorini", {"size": 2, "workers": 1}),
)


def main(seeds: int = 3, runs: Path = RUNS / "perfect_play", output: Path = RESULTS / "perfect_play.json") -> None:
    """Trains all games and seeds, counts mistakes and writes the results.

    Args:
      seeds: number of seeds of each game, from 0.
      runs: parent of the run folders.
      output: file of the results.
    """
    console = Console()
    rows = []
    for name, options in GAMES:
        game = azjax.make(name, **options)
        solution = solve(game)
        for seed in range(seeds):
            run = trained(game, runs / f"{name}-{seed}", console, seed=seed)
            last = run.steps[-1]
            row = {"game": name, "seed": seed, "iterations": last, "seconds": run.seconds(last)}
            for level, label in (("medium", "network"), ("hard", "network_and_64_simulations")):
                player = azjax.load_player(str(run.folder), level=level)
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
    write_results(output, "perfect_play.py", {"seeds": seeds}, rows=rows)
    console.print(f"written to {output}", soft_wrap=True)


if __name__ == "__main__":
    run_study(main)
