"""How many points does each level of an agent score against the others?

`beginner` draws its moves from the network's policy at temperature 4, `easy` at temperature 1, `medium` plays the
network's best move, and full strength searches with 64 simulations. Each pair plays 200 games after two random plies,
every opening from both sides; Connect-2, which lasts four plies, begins after one.

    python experiments/levels.py [AGENT ...]

It takes some minutes on 2 CPU cores. Writes experiments/results/levels.json and the section "Levels" of the agents'
cards, the first sentence of which the page shows.
"""

import itertools
from pathlib import Path
from typing import Any

import jax
import tyro
from rich.console import Console
from rich.progress import track
from study import RESULTS, ROOT, refuse_unknown, results_so_far, run_study, write_results

import azjax
from azjax.agents import LEVELS, NUM_SIMULATIONS, game_of
from azjax.evaluation import play_match
from azjax.packaged import packaged

CARDS = ROOT / "azjax" / "packaged"
NAME = "full strength"
OPENING_PLIES = 2
TITLE = "## Levels"

Row = dict[str, Any]


def main(
    agents: tyro.conf.Positional[tuple[str, ...]] = (),
    games: int = 200,
    output: Path = RESULTS / "levels.json",
    cards: Path = CARDS,
) -> None:
    """Plays the levels of agents against each other, writes the points, and tells them in the cards.

    Args:
      agents: names of agents that come with azjax; all by default.
      games: of each pair, an even number.
      output: file of the results; the rows of other agents stay.
      cards: the folder of the cards.
    """
    console = Console()
    refuse_unknown("agent", agents, packaged())
    chosen = agents or tuple(packaged())
    settings = {"num_simulations": NUM_SIMULATIONS, "opening_plies": OPENING_PLIES}
    rows: list[Row] = results_so_far(output, settings, rows=[])["rows"]
    for name in track(chosen, "agents", console=console):
        own = points_of_levels(name, games)
        rows = [*(row for row in rows if row["agent"] != name), *own]
        rows.sort(key=lambda row: row["agent"])
        write_results(output, "levels.py", settings, rows=rows)
        card = cards / f"{name}.md"
        card.write_text(with_levels(card.read_text(), own))
        console.print(f"{name}: {summary(own)}", highlight=False)
    console.print(f"written to {output} and {cards}", soft_wrap=True)


def points_of_levels(name: str, games: int) -> list[Row]:
    """The points a game of each level against each stronger one."""
    game = game_of(name)
    assert game is not None
    players = {level: azjax.load_player(name, level=level) for level in LEVELS}
    rows = []
    for weaker, stronger in itertools.combinations(LEVELS, 2):
        plies = min(OPENING_PLIES, game.max_plies // 4)
        match = play_match(game, players[weaker], players[stronger], games, jax.random.key(0), opening_plies=plies)
        low, high = match.interval
        figures = {"points": round(match.score, 4), "low": round(low, 4), "high": round(high, 4)}
        rows.append({"agent": name, "level": weaker, "against": stronger, "games": games, **figures})
    return rows


def summary(rows: list[Row]) -> str:
    """What the page tells."""
    against_full = {row["level"]: f"{row['points']:.1%}" for row in rows if row["against"] == LEVELS[-1]}
    first, *rest = LEVELS[:-1]
    *others, last = (f"{level} {against_full[level]}" for level in rest)
    scores = ", ".join([f"{first} scores {against_full[first]} of the points", *others])
    return f"Against full strength ({NUM_SIMULATIONS} simulations) {scores} and {last}."


def with_levels(card: str, rows: list[Row]) -> str:
    """The card with the section on levels at its end."""
    found = {(row["level"], row["against"]): row for row in rows}
    lines = [
        *(TITLE, "", summary(rows), ""),
        f"Points with their 95% intervals, {rows[0]['games']} games of each pair (`experiments/results/levels.json`):",
        *("", f"| | {' | '.join([*LEVELS[1:-1], NAME])} |", "| --- | --- | --- | --- |"),
    ]
    for level in LEVELS[:-1]:
        cells = [found.get((level, stronger)) for stronger in LEVELS[1:]]
        told = (f"{row['points']:.1%} ({row['low']:.1%} to {row['high']:.1%})" if row else "" for row in cells)
        lines.append(f"| {level} | {' | '.join(told)} |")
    return "\n".join([card.partition(TITLE)[0].rstrip(), "", *lines, ""])


if __name__ == "__main__":
    run_study(main)
