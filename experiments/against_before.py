"""Is an agent stronger than the one that was packaged before it, and does it still get stronger at the end?

Trains the preset of Brandub, or of Santorini on 5x5 with two workers, from self-play alone. Then it plays matches from
balanced openings: random plies after which the agent before finds neither side ahead. Each opening is played from both
sides, and all search with as many simulations:

- each kept checkpoint against the agent before: strength against training time;
- the last checkpoint against the one that is nearest to three quarters of the training.

    python experiments/against_before.py santorini_5x5
    python experiments/against_before.py brandub

A run that exists is resumed or reused. The agent before is the one that comes with azjax; run this before
`packaged_agents.py` replaces it. Results against another agent are not replaced: remove their file to measure against
the packaged one. Writes experiments/results/NAME_before.json and docs/NAME_before.png.
"""

import dataclasses
import json
from pathlib import Path
from typing import Any, Literal

import jax
import tyro
from against_uct import GAMES, SIDES, record_row
from rich.console import Console
from rich.progress import track
from rich.table import Table
from study import (
    COLORS,
    DOCS,
    GRAY,
    RESULTS,
    RUNS,
    agent_digest,
    check_outputs,
    run_study,
    save_figure,
    style,
    trained,
    wide_figure,
    write_results,
)

import azjax
from azjax.core.errors import InputError
from azjax.evaluation import play_match
from azjax.games.registry import options_of
from azjax.packaged import archive

Row = dict[str, Any]


def main(
    name: tyro.conf.Positional[Literal["brandub", "santorini_5x5"]],
    iterations: int | None = None,
    seed: int = 0,
    num_simulations: int = 400,
    games: int = 400,
    games_on_the_way: int = 100,
    opening_plies: int = 4,
    balance: float = 0.3,
    folder: Path | None = None,
    output: Path | None = None,
    plot: Path | None = None,
) -> None:
    """Trains, plays, prints, writes and draws.

    Args:
      name: name of the agent.
      iterations: iterations of training; by default those of the preset.
      seed: seed of the run and of the matches.
      num_simulations: simulations of each search.
      games: games of each match of the last checkpoint.
      games_on_the_way: games of each match of the other checkpoints.
      opening_plies: random plies of an opening.
      balance: the largest value for one side, after an opening, by the search of the agent before.
      folder: run folder; by default runs/NAME-SEED.
      output: file of the results.
      plot: picture of the scores against time.
    """
    console = Console()
    output, plot = output or RESULTS / f"{name}_before.json", plot or DOCS / f"{name}_before.png"
    check_outputs(output, plot)
    refuse_another_rival(output, name)
    game_name, options = GAMES[name]
    game = azjax.make(game_name, **options)
    run = trained(game, folder or RUNS / f"{name}-{seed}", console, seed=seed, iterations=iterations)
    before = azjax.load_player(name, num_simulations=num_simulations)
    *others, last = run.steps
    if not others:
        raise InputError(f"{run.folder} has one checkpoint, and this study compares two or more")
    late = min(others, key=lambda step: abs(step - 0.75 * last))
    contests = [(step, None, games_on_the_way) for step in others] + [(last, None, games), (last, late, games)]
    rows: list[Row] = []
    for step, rival, count in track(contests, "matches", console=console):
        agent, other = (
            before if each is None else azjax.load_player(f"{run.folder}@{each}", num_simulations=num_simulations)
            for each in (step, rival)
        )
        match = play_match(
            game,
            agent,
            other,
            count,
            jax.random.key(seed),
            opening_plies=opening_plies,
            judge=before,
            balance=balance,
        )
        rows.append(
            {
                "iteration": step,
                "seconds": run.seconds(step),
                "rival": "before" if rival is None else f"iteration {rival}",
                "games": match.games,
                **record_row("", match.total),
                **record_row("first_", match.moving_first),
                **record_row("second_", match.moving_second),
                "interval": [round(end, 4) for end in match.interval],
            }
        )
    console.print(table(name, rows))
    settings = {
        "game": game_name,
        "options": options_of(game),
        "num_simulations": num_simulations,
        "opening_plies": opening_plies,
        "balance": balance,
        "before": agent_digest(name),
        "config": dataclasses.asdict(run.config),
    }
    write_results(output, f"against_before.py {name}", settings, rows=rows)
    draw(rows, plot)
    console.print(f"written to {output}, drawn to {plot}", soft_wrap=True)


def refuse_another_rival(output: Path, name: str) -> None:
    """Raises an `InputError` if `output` has matches against another agent than the packaged `name` of now."""
    now = agent_digest(name)
    if output.exists() and (other := json.loads(output.read_text())["settings"]["before"]) != now:
        got = f"the agent with digest {other}, not {now}"
        raise InputError(
            f"{output} has matches against {got}: put the agent before into {archive.FOLDER}, or remove the results"
        )


def table(name: str, rows: list[Row]) -> Table:
    """The results as a table."""
    first, second = SIDES[name]
    shown = Table("min", "against", "games", "score", "95%", first, second, "drawn", title=name)
    for row in rows:
        low, high = row["interval"]
        scores = (f"{row[score]:.1%}" for score in ("first_score", "second_score"))
        shown.add_row(
            f"{row['seconds'] / 60:.0f}",
            row["rival"],
            str(row["games"]),
            f"{row['score']:.1%}",
            f"{low:.0%} to {high:.0%}",
            *scores,
            str(row["won_drawn_lost"][1]),
        )
    return shown


def draw(rows: list[Row], path: Path) -> None:
    """Draws the scores against the agent before, by time."""
    figure, (panel,) = wide_figure(1, width=6)
    against = [row for row in rows if row["rival"] == "before"]
    scores = [row["score"] for row in against]
    low, high = zip(*(row["interval"] for row in against), strict=True)
    errors = [
        [score - end for score, end in zip(scores, low, strict=True)],
        [end - score for score, end in zip(scores, high, strict=True)],
    ]
    panel.axhline(0.5, color=GRAY, linestyle="--")
    minutes = [row["seconds"] / 60 for row in against]
    panel.errorbar(minutes, scores, errors, color=COLORS[0], marker="o", ms=3)
    panel.set_ylim(0, 1.02)
    style(panel, "points against the agent before", "minutes of training", shares=True, legend=False)
    save_figure(figure, path)


if __name__ == "__main__":
    run_study(main)
