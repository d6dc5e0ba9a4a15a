"""How many positions does a proof take?

Proof-number search (`azjax solve GAME --prove POSITION`) is given

* the mates in one and in two of `tactics.py`, which it must find to be wins;
* the starts of games that are not solved here.

A start whose value is not found within the limit of positions keeps the bounds that were found.

    python experiments/proofs.py

Rows that the result file has are kept; remove the file to measure again. Writes experiments/results/proofs.json.
"""

import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn
from study import RESULTS, results_so_far, run_study, write_results
from tactics import GAMES

import azjax
from azjax.evaluation import prove
from azjax.games.protocols import action_to_text

MAX_MATE_POSITIONS = 1_000_000
MAX_START_POSITIONS = 40_000_000
STARTS: dict[str, tuple[str, dict[str, Any]]] = {"santorini_4x4": ("santorini", {"size": 4})}


def main(
    max_mate_positions: int = MAX_MATE_POSITIONS,
    max_start_positions: int = MAX_START_POSITIONS,
    mates: Path = RESULTS / "tactics.json",
    output: Path = RESULTS / "proofs.json",
) -> None:
    """Proves, prints and writes.

    Args:
      max_mate_positions: limit of the positions of a proof of a mate.
      max_start_positions: limit of the positions of a proof of a start.
      mates: results of `tactics.py`, whose positions are taken.
      output: file of the results.
    """
    settings = {"max_mate_positions": max_mate_positions, "max_start_positions": max_start_positions}
    report = results_so_far(output, settings, mates=[], starts=[])

    def save(part: str, row: dict[str, Any]) -> None:
        report[part].append(row)
        write_results(output, "proofs.py", settings, mates=report["mates"], starts=report["starts"])
        progress.console.print(row)

    with Progress(*Progress.get_default_columns(), MofNCompleteColumn(), TimeElapsedColumn()) as progress:
        for row in json.loads(mates.read_text())["mates"]:
            if not any((row["game"], row["moves"]) == (done["game"], done["moves"]) for done in report["mates"]):
                save("mates", prove_mates(row, max_mate_positions, progress))
        for name in STARTS:
            if not any(name == done["board"] for done in report["starts"]):
                save("starts", prove_start(name, max_start_positions, progress))


def prove_mates(mates: dict[str, Any], max_positions: int, progress: Progress) -> dict[str, Any]:
    """A row of the results: the proofs of some mates."""
    game, proofs = GAMES[mates["game"]], []
    for text in progress.track(mates["texts"], description=f"{mates['game']}, mates in {mates['moves']}"):
        proofs.append(prove(game, game.from_text(text), max_positions=max_positions))
    positions, seconds = np.array([(proof.positions, proof.seconds) for proof in proofs]).T
    return {
        "game": mates["game"],
        "moves": mates["moves"],
        "mates": len(proofs),
        "proven": sum(proof.value == 1 for proof in proofs),
        "refuted": sum(proof.at_most < 1 for proof in proofs),
        "positions": {f"{share:.0%}": round(float(np.quantile(positions, share))) for share in (0.5, 0.95, 1)},
        "median_seconds": round(float(np.median(seconds)), 3),
    }


def prove_start(name: str, max_positions: int, progress: Progress) -> dict[str, Any]:
    """A row of the results: the value of a game, or its bounds."""
    game_name, options = STARTS[name]
    game = azjax.make(game_name, **options)
    task = progress.add_task(name, total=max_positions)
    start = game.init(jax.random.key(0))
    proof = prove(
        game,
        start,
        max_positions=max_positions,
        progress=lambda goal, done, _: progress.update(task, description=f"{name}, {goal}", completed=done),
    )
    return {
        "board": name,
        "value": proof.value,
        "at_least": proof.at_least,
        "at_most": proof.at_most,
        "best_move": None if proof.best_action is None else action_to_text(game, start, proof.best_action),
        "positions": proof.positions,
        "seconds": round(proof.seconds, 1),
    }


if __name__ == "__main__":
    run_study(main)
