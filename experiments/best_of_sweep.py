"""Does the best setting of a sweep beat the preset from before it, with seeds that the sweep did not use?

The sweep is `experiments/sweeps/tictactoe.toml`, whose journal is committed. Its best point and the earlier preset of
tic-tac-toe are trained with five new seeds each, for an equal number of simulations of self-play. Mistakes on all
positions are counted during training. It takes about twenty minutes on 2 CPU cores.

    python experiments/best_of_sweep.py

Runs that exist are resumed or reused. Writes experiments/results/best_of_sweep.json.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from study import RESULTS, ROOT, RUNS, run_study, write_results

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
FIRST_SEED = 100  # the seeds of the sweep begin at 0
PARTS = 50  # how many times a run counts mistakes


def config_of(settings: dict[str, Any], simulations: int) -> Config:
    """A configuration that spends `simulations` and measures at equal numbers of them, whatever the settings."""
    config = load_study(STUDY).config(settings)
    each = config.num_games * config.steps_per_iteration * config.num_simulations
    iterations = PARTS * max(1, round(simulations / each / PARTS))
    return config.replace(
        iterations=iterations, evaluate_every=iterations // PARTS, checkpoint_every=iterations, evaluation_share=1.0
    )


def summary(counts: list[list[int]]) -> dict[str, Any]:
    """Means and 95% intervals of the mistakes [seeds][parts], and of the first part without a mistake."""

    def interval(values: list[float]) -> dict[str, float]:
        student = Interval.of(values)
        return {"mean": round(student.mean, 3), "low": round(student.low, 3), "high": round(student.high, 3)}

    table = np.array(counts)
    # A seed that never reaches zero mistakes gets one part more than exist.
    until = [int(np.append(row, 0).argmin()) + 1 for row in table]
    return {
        "mistakes_at_the_end": interval(table[:, -1].tolist()),
        "mean_mistakes_on_the_way": interval(table.mean(axis=1).tolist()),
        "share_of_simulations_until_no_mistake": interval([part / table.shape[1] for part in until]),
    }


def main(
    seeds: int = 5,
    simulations: int = 32_768_000,
    journal: Path = JOURNAL,
    runs: Path = RUNS / "best_of_sweep",
    output: Path = RESULTS / "best_of_sweep.json",
) -> None:
    """Trains both settings, counts mistakes and writes the results.

    Args:
      seeds: number of seeds of each setting.
      simulations: simulations of self-play of each run; by default those of the earlier preset.
      journal: journal of the sweep.
      runs: parent of the run folders.
      output: file of the results.
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
    run_study(main)
