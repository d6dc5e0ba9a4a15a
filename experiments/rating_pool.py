"""How strong are the packaged agents, searches without a network and outside engines, on one scale?

Each game has a pool: a file of game records under experiments/results/pools, which `azjax match --pool` and this study
add to. The study plays the games between its players that the pool lacks, from balanced openings that both sides play,
and rates all players of the pool:

    python experiments/rating_pool.py

Programs from outside are not part of the project. They join a pool by a match, here OpenTafl with a second for each
move in its settings; `opentafl-1s` is a program on the PATH that starts it:

    azjax match brandub:400 brandub:1600 opentafl:opentafl-1s --game brandub --repetitions 3 --games 20 \\
        --opening-plies 4 --judge brandub:400 --pool experiments/results/pools/brandub.jsonl

and again for brandub:1600 alone with --games 100 --seed 1. Then the study rates it too. Writes
experiments/results/ratings.json and docs/ratings.png. The games of an agent that was packaged before stay in its pool:
another agent under its name needs another --pools and --output.
"""

import dataclasses
import math
from pathlib import Path
from typing import Any, Literal

import jax
import tyro
from rich.console import Console
from rich.progress import Progress
from study import (
    COLORS,
    DOCS,
    GRAY,
    RESULTS,
    agent_digest,
    refuse_another_agent,
    results_so_far,
    run_study,
    save_figure,
    style,
    wide_figure,
    write_results,
)

import azjax
from azjax.agents import load_opponent
from azjax.evaluation import play_round_robin, rate
from azjax.evaluation.pool import Pool
from azjax.games.registry import options_of
from azjax.report import elo_errors, ratings_table

Agent = Literal["brandub", "connect_four", "santorini_5x5"]
_AGENTS: tuple[Agent, ...] = ("brandub", "connect_four", "santorini_5x5")
_ANCHOR = "100"  # simulations of the agent whose rating is 0
_SEARCHES = ("uct:100", "uct:1000")
_LEVELS = ("easy", "medium", "16", _ANCHOR, "400", "1600")
# By agent: its game with the options, and the other players.
GAMES: dict[str, tuple[str, dict[str, Any], tuple[str, ...]]] = {
    "brandub": ("brandub", {"repetitions": 3}, _SEARCHES),  # OpenTafl draws at the third repetition
    "connect_four": ("connect_four", {}, (*_SEARCHES, "openspiel:mcts:1000")),
    "santorini_5x5": ("santorini", {"size": 5, "workers": 2}, _SEARCHES),
}


def main(
    agents: tyro.conf.Positional[tuple[Agent, ...]] = _AGENTS,
    levels: tuple[str, ...] = _LEVELS,
    games: int = 20,
    opening_plies: int = 4,
    balance: float = 0.3,
    seed: int = 0,
    pools: Path = RESULTS / "pools",
    output: Path = RESULTS / "ratings.json",
    plot: Path = DOCS / "ratings.png",
) -> None:
    """Plays, rates, prints, writes and draws.

    Args:
      agents: whose pools grow and are rated again; the results of the others stay.
      levels: levels and simulations of the agent.
      games: games of each two players.
      opening_plies: random plies of an opening.
      balance: the largest value for one side, after an opening, by the agent with 400 simulations.
      seed: seed of the matches.
      pools: folder of the pools.
      output: file of the results.
      plot: picture of the ratings.
    """
    console = Console()
    pools.mkdir(parents=True, exist_ok=True)
    settings = {"games": games, "opening_plies": opening_plies, "balance": balance, "anchor": _ANCHOR}
    rows = {row["agent"]: row for row in results_so_far(output, settings, rows=[])["rows"]}
    for name in agents:
        refuse_another_agent(output, list(rows.values()), name)
    for name in agents:
        game_name, options, others = GAMES[name]
        game = azjax.make(game_name, **options)
        pool = Pool(pools / f"{name}.jsonl", game)
        players = [load_opponent(spec, game) for spec in (*(f"{name}:{level}" for level in levels), *others)]
        with Progress(console=console) as progress:
            task = progress.add_task(name, total=None)
            play_round_robin(
                game,
                players,
                games,
                jax.random.key(seed),
                opening_plies=opening_plies,
                judge=azjax.load_player(name, game, num_simulations=400),
                balance=balance,
                played=pool.games_between,
                on_batch=pool.add,
                progress=lambda done, total, task=task, bar=progress: bar.update(task, completed=done, total=total),
            )
        ratings = rate(pool.pairings(), anchor=f"{name}:{_ANCHOR}")
        console.print(ratings_table(game, ratings))
        # JSON has no infinite numbers: null is an end that the results do not set.
        ends = [[end if math.isfinite(end) else None for end in interval] for interval in ratings.intervals]
        row = {"agent": name, "agent_digest": agent_digest(name), "options": options_of(game)}
        rows[name] = row | dataclasses.asdict(ratings) | {"intervals": ends}
    ordered = [rows[name] for name in GAMES if name in rows]
    write_results(output, "rating_pool.py", settings, rows=ordered)
    draw(ordered, plot)
    console.print(f"written to {output}, drawn to {plot}", soft_wrap=True)


def ends_of(interval: list[float | None]) -> tuple[float, float]:
    """The ends of an interval of the result file."""
    low, high = interval
    return -math.inf if low is None else low, math.inf if high is None else high


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Draws the ratings with their intervals, a panel for each game."""
    most = max(len(row["players"]) for row in rows)
    figure, panels = wide_figure(len(rows), width=5 * len(rows), height=1.2 + 0.32 * most)
    for row, panel in zip(rows, panels, strict=True):
        heights = range(len(row["players"]), 0, -1)
        errors = zip(*elo_errors(row["elo"], list(map(ends_of, row["intervals"]))), strict=True)
        for player, elo, (left, right), height in zip(row["players"], row["elo"], errors, heights, strict=True):
            color = COLORS[0] if player.startswith(row["agent"]) else GRAY if player.startswith("uct") else COLORS[1]
            panel.errorbar(elo, height, xerr=[[left], [right]], fmt="o", color=color, markersize=4)
        panel.set_yticks(list(heights), row["players"])
        style(panel, row["agent"], f"Elo above {row['agent']}:{_ANCHOR}, with 95% intervals", legend=False)
        panel.grid(axis="x", color="#e6e6e6", linewidth=0.8)
    save_figure(figure, path)


if __name__ == "__main__":
    run_study(main)
