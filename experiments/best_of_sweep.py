"""Is the best setting of a sweep better than the settings it began with, with seeds that the sweep never saw?

The sweep is `experiments/sweeps/tictactoe.toml`, whose journal is committed. Its best point and the preset of
tic-tac-toe from before it are trained with five fresh seeds each, for equally many simulations of self-play, and their
mistakes on all positions are counted on the way. About twenty minutes on 2 CPU cores.

    python experiments/best_of_sweep.py

Runs that are there already are finished or taken as they are. Writes experiments/results/best_of_sweep.json.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import tyro
from rich.console import Console
from study import RESULTS, ROOT, RUNS, write_results

from azjax.report.intervals import Interval
from azjax.runs import train_population
from azjax.runs.metrics import METRICS, read_rows
from azjax.sweep import Trials, best_first, connect, load_study
from azjax.training import Config

STUDY = ROOT / "experiments" / "sweeps" / "tictactoe.toml"
JOURNAL = RESULTS / "sweep_tictactoe.journal"
BEFORE: dict[str, Any] = {
    "learning_rate": 1e-3,
    "c_puct": 1.25,
    "dirichlet_fraction": 0.25,
    "num_simulations": 32,
    "width": 128,
}
FIRST_SEED = 100  # those of the sweep begin at 0
PARTS = 50  # of the simulations, after each of which mistakes are counted


def config_of(settings: dict[str, Any], simulations: int) -> Config:
    """A run with these settings that spends so many simulations, measured at equal ones whatever the settings."""
    config = load_study(STUDY).config(settings)
    each = config.num_games * config.steps_per_iteration * config.num_simulations
    iterations = PARTS * max(1, round(simulations / each / PARTS))
    return config.replace(
        iterations=iterations, evaluate_every=iterations // PARTS, checkpoint_every=iterations, evaluation_share=1.0
    )


def summary(counts: list[list[int]]) -> dict[str, Any]:
    """Of the mistakes [seeds][parts]: their means and 95% intervals, and when there is none for the first time."""

    def told(values: list[float]) -> dict[str, float]:
        interval = Interval.of(values)
        return {"mean": round(interval.mean, 3), "low": round(interval.low, 3), "high": round(interval.high, 3)}

    table = np.array(counts)
    # Of a seed that always errs, one part more than there are.
    until = [int(np.append(row, 0).argmin()) + 1 for row in table]
    return {
        "mistakes_at_the_end": told(table[:, -1].tolist()),
        "mean_mistakes_on_the_way": told(table.mean(axis=1).tolist()),
        "share_of_simulations_until_no_mistake": told([part / table.shape[1] for part in until]),
    }


def main(
    seeds: int = 5,
    simulations: int = 32_768_000,
    journal: Path = JOURNAL,
    runs: Path = RUNS / "best_of_sweep",
    output: Path = RESULTS / "best_of_sweep.json",
) -> None:
    """Trains, counts and writes.

    Args:
      seeds: of each side.
      simulations: of self-play, of each run; the preset's before.
      journal: of the sweep.
      runs: where the run folders lie.
      output: the results.
    """
    console = Console()
    study = load_study(STUDY)
    trials = Trials(study, connect(journal, must_exist=True))
    best = best_first(study, trials.points())[0]
    rows = []
    for name, settings in (("before", BEFORE), ("best", best.params)):
        config = config_of(settings, simulations)
        configs = [config.replace(seed=FIRST_SEED + number) for number in range(seeds)]
        folders = [runs / f"{name}-{each.seed}" for each in configs]
        results = train_population(study.game, configs, folders, resume=True, console=console)
        if results[0].stopped_by is not None:
            sys.exit(128 + results[0].stopped_by)
        counts = [
            [int(row["mistakes"]) for row in read_rows(folder / METRICS) if row.get("mistakes") is not None]
            for folder in folders
        ]
        row = {"name": name, "settings": settings, "iterations": config.iterations, **summary(counts)}
        console.print(row)
        rows.append(row | {"mistakes": counts})
    settings = {"seeds": seeds, "simulations": simulations, "trial": best.number, "parts": PARTS}
    write_results(output, "best_of_sweep.py", settings, rows=rows)
    console.print(f"written to {output}", soft_wrap=True)


if __name__ == "__main__":
    tyro.cli(main)
