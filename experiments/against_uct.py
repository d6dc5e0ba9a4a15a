"""How does the strength of an agent depend on training time and on simulations, in a game that is not solved?

Trains the preset of Brandub, or of Santorini on 5x5 with two workers, from self-play alone. Then the agent plays
matches against UCT with random rollouts and against random moves. Each side moves first in half of the games:

- each kept checkpoint with 100 simulations against `uct:1000`: strength against training time;
- the last checkpoint without search and with 25, 100 and 400 simulations: strength against simulations;
- this UCT against itself: the advantage of either side between equal players.

    python experiments/against_uct.py brandub
    python experiments/against_uct.py santorini_5x5

A run that exists is resumed or reused. Writes experiments/results/NAME.json and docs/NAME.png.
"""

import dataclasses
from pathlib import Path
from typing import Any, Literal

import jax
import numpy as np
import tyro
from rich.console import Console
from rich.progress import track
from rich.table import Table
from study import (
    COLORS,
    DOCS,
    RESULTS,
    RUNS,
    Run,
    check_outputs,
    run_study,
    save_figure,
    style,
    trained,
    wide_figure,
    write_results,
)

import azjax
from azjax.evaluation import MatchResult, Player, Record, play_match
from azjax.games.game import Game
from azjax.games.registry import options_of

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
      name: name of the game.
      iterations: iterations of training; by default those of the preset.
      seed: seed of the run.
      rival: a search without a network.
      num_simulations: simulations of each search of the agent.
      other_simulations: further numbers of simulations for the last checkpoint.
      games: games of each match of the last checkpoint.
      games_on_the_way: games of each match of the other checkpoints.
      folder: run folder; by default runs/NAME-SEED.
      output: file of the results.
      plot: picture of the scores against time and simulations.
    """
    console = Console()
    game_name, options = GAMES[name]
    game = azjax.make(game_name, **options)
    run = trained(game, folder or RUNS / f"{name}-{seed}", console, seed=seed, iterations=iterations)
    *steps, last = run.steps
    against = azjax.load_player(rival, game)
    rows = []
    for step in track(steps, "checkpoints"):
        agent = azjax.load_player(f"{run.folder}@{step}", num_simulations=num_simulations)
        rows.append(row_of(game, agent, against, games_on_the_way, run, step))
    contests = [(azjax.load_player(f"{run.folder}@{last}", level="medium"), against)]
    for count in sorted({num_simulations, *other_simulations}):
        agent = azjax.load_player(f"{run.folder}@{last}", num_simulations=count)
        contests.append((agent, against))
        if count == num_simulations:
            contests.append((agent, azjax.load_player("random", game)))
    for agent, other in track(contests, "last checkpoint"):
        rows.append(row_of(game, agent, other, games, run, last))
    equals = play_match(game, against, against, games, jax.random.key(seed))
    itself = {"games": equals.games, "mean_plies": round(equals.mean_length, 1)}
    itself |= record_row("", equals.total) | record_row("first_", equals.moving_first)

    console.print(table(name, rows))
    console.print(f"{rival} against itself: {SIDES[name][0]} {itself['first_score']:.1%}")
    output, plot = output or RESULTS / f"{name}.json", plot or DOCS / f"{name}.png"
    check_outputs(output, plot)
    settings = {"game": game_name, "options": options_of(game), "config": dataclasses.asdict(run.config)}
    write_results(output, f"against_uct.py {name}", settings, rows=rows, rival_against_itself=itself)
    draw(rows, f"network + {num_simulations} simulations", plot)
    console.print(f"written to {output}, drawn to {plot}", soft_wrap=True)


def row_of(game: Game, agent: Player, other: Player, games: int, run: Run, step: int) -> dict[str, Any]:
    """Plays a match and returns its row of the results."""
    match = play_match(game, agent, other, games, jax.random.key(step))
    return {
        "player": agent.name,
        "rival": other.name,
        "iteration": step,
        "seconds": run.seconds(step),
        "games": match.games,
        **record_row("", match.total),
        **record_row("first_", match.moving_first),
        **record_row("second_", match.moving_second),
        "interval": [round(end, 4) for end in match.interval],
        "drawn_before_the_last_ply": early_draws(match, game.max_plies),
        "plies": {f"{share:.0%}": float(np.quantile(match.plies, share)) for share in (0.05, 0.5, 0.95)},
        "mean_plies": round(match.mean_length, 1),
    }


def record_row(prefix: str, record: Record) -> dict[str, Any]:
    """The score and the counts of wins, draws and losses; `prefix` begins each key."""
    counts = [record.wins, record.draws, record.losses]
    return {f"{prefix}score": round(record.score, 4), f"{prefix}won_drawn_lost": counts}


def early_draws(match: MatchResult, max_plies: int) -> int:
    """Draws before the limit of plies: in Brandub by repetition, or because a side cannot move."""
    return sum(reward == 0 and plies < max_plies for reward, plies in zip(match.rewards, match.plies, strict=True))


def table(name: str, rows: list[dict[str, Any]]) -> Table:
    """The results as a table."""
    first, second = SIDES[name]
    shown = Table("", "against", "min", "score", "95%", first, second, "drawn", "plies", title=name)
    for row in rows:
        low, high = row["interval"]
        shown.add_row(
            row["player"].removesuffix(" simulations"),
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
    figure, (time, simulations) = wide_figure(2, sharey=True)
    last = rows[-1]["iteration"]
    against_uct = [row for row in rows if row["rival"] != "random"]
    on_the_way = [row for row in against_uct if row["player"] == agent]
    deeper = [row for row in against_uct if row["iteration"] == last]
    counts = [1 if row["player"] == "network" else int(row["player"].split()[2]) for row in deeper]
    simulations.set_xscale("log")
    simulations.xaxis.set_major_formatter("{x:g}")
    title = f"points of {agent} against {against_uct[0]['rival']}"
    for panel, chosen, x_values, panel_title, x in (
        (time, on_the_way, [row["seconds"] / 60 for row in on_the_way], title, "minutes of training"),
        (simulations, deeper, counts, "points of the last network", "simulations a move (the network alone at 1)"),
    ):
        scores = np.array([row["score"] for row in chosen])
        ends = np.array([row["interval"] for row in chosen])
        errors = [scores - ends[:, 0], ends[:, 1] - scores]
        panel.errorbar(x_values, scores, errors, color=COLORS[0], marker="o", ms=3)
        panel.set_ylim(0, 1.02)
        style(panel, panel_title, x, shares=True, legend=False)
    save_figure(figure, path)


if __name__ == "__main__":
    run_study(main)
