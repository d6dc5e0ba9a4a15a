"""What do the first minutes of training teach in each game?

Each game of the package that has no study of its own is trained with the first fifth of its preset, from self-play
alone. Then the network plays random moves, alone and with a search, each side moving first in half of the games. Random
moves against themselves say how the sides start out.

    python experiments/first_minutes.py

Runs are resumed, and games that the result file has are not played again. Writes
experiments/results/first_minutes.json.
"""

from pathlib import Path
from typing import Any

import jax
from rich.console import Console
from study import RESULTS, RUNS, results_so_far, run_study, trained, write_results

import azjax
from azjax.evaluation import Player, network_player, play_match, random_player
from azjax.games.game import AnyGame
from azjax.runs import load_variables

SHARE = 0.2  # of the iterations of the preset
GAMES: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {}) for name in ("chomp", "othello", "ard_ri")},
    **{name: (name, {}) for name in ("hex", "breakthrough", "tablut", "tawlbwrdd", "hnefatafl")},
    "gomoku 9x9": ("mnk", {"columns": 9, "rows": 9, "in_a_row": 5}),
    "santorini 4x4": ("santorini", {"size": 4, "workers": 1}),
}


def main(
    num_simulations: int = 32,
    games: int = 200,
    runs: Path = RUNS / "first_minutes",
    output: Path = RESULTS / "first_minutes.json",
) -> None:
    """Trains, plays, prints and writes.

    Args:
      num_simulations: of each search.
      games: games of each match.
      runs: parent of the run folders.
      output: file of the results.
    """
    console = Console()
    settings = {"share": SHARE, "num_simulations": num_simulations, "games": games}
    rows: list[dict[str, Any]] = results_so_far(output, settings, rows=[])["rows"]
    for name, (rules, options) in GAMES.items():
        played, game = [row["player"] for row in rows if row["game"] == name], azjax.make(rules, **options)
        if not played:
            iterations = round(SHARE * azjax.preset(game).iterations)
            run = trained(game, runs / name.replace(" ", "_"), console, iterations=iterations)
            variables = load_variables(run.folder, run.steps[-1])[1]
            alone = network_player(game, run.config.make_network(game), variables)
            searching = azjax.load_player(str(run.folder), num_simulations=num_simulations)
            training = {"iterations": run.steps[-1], "minutes": round(run.seconds(run.steps[-1]) / 60, 1)}
            rows += [row_of(name, game, player, games) | training for player in (alone, searching)]
        if "random" not in played:
            rows.append(row_of(name, game, random_player(game), games))
        write_results(output, "first_minutes.py", settings, rows=rows)
        console.print([row for row in rows if row["game"] == name])


def row_of(name: str, game: AnyGame, player: Player, games: int) -> dict[str, Any]:
    """A row of the results: a match against random moves."""
    match = play_match(game, player, random_player(game), games, jax.random.key(0))
    records = {"total": match.total, "first": match.moving_first, "second": match.moving_second}
    return {
        "game": name,
        "player": player.name,
        "games": match.games,
        "score": round(match.total.score, 4),
        "interval": [round(end, 4) for end in match.interval],
        **{side: [record.wins, record.draws, record.losses] for side, record in records.items()},
        "mean_plies": round(match.mean_length, 1),
    }


if __name__ == "__main__":
    run_study(main)
