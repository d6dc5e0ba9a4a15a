"""How do several leaves per step change the strength and the speed of a search?

With a virtual loss a search selects several leaves of a tree before it evaluates them together. A search of a single
position, as in play against a person, then calls the network less often. Measured with packaged agents:

  strength: matches against the plain search at equal simulations, from random openings, both sides;
  speed: simulations per second in one position, at the most simulations.

    python experiments/leaves_per_step.py

It takes about 30 minutes on 2 CPU cores. Writes experiments/results/leaves_per_step.json and docs/leaves_per_step.png.
Axis letters: `W` leaves of a step, `N` simulations.
"""

import statistics
from pathlib import Path
from typing import Any

import jax
from rich.console import Console
from rich.progress import track
from study import COLORS, DOCS, RESULTS, run_study, save_figure, style, wide_figure, write_results

from azjax.benchmark.search import time_in_turn
from azjax.benchmark.searches import azjax_search, openings
from azjax.evaluation import play_match, search_player
from azjax.packaged import load_agent
from azjax.search import evaluators

WIDTHS = (1, 2, 4, 8, 16)
OPENING_PLIES = 4
REPEATS = 15
SECONDS = 30.0  # no round starts after this time


def main(
    agents: tuple[str, ...] = ("brandub", "santorini_5x5"),
    num_simulations: tuple[int, ...] = (400, 1600),
    widths: tuple[int, ...] = (4, 8, 16),
    games: int = 200,
    output: Path = RESULTS / "leaves_per_step.json",
    plot: Path = DOCS / "leaves_per_step.png",
) -> None:
    """Measures strength and speed, writes and draws the results.

    Args:
      agents: names of packaged agents.
      num_simulations: simulations of each search, ascending.
      widths: leaves of a step of the player whose strength is measured.
      games: games of each match.
      output: file of the results.
      plot: picture of strength and speed against W.
    """
    console = Console()
    speeds = [row for agent in agents for row in speed(agent, num_simulations[-1])]
    pairs = [(agent, count, width) for agent in agents for count in num_simulations for width in widths]
    matches = []
    for agent, count, width in track(pairs, "matches", console=console):
        matches.append(strength(agent, count, width, games))
        console.print(matches[-1])
    settings = {"games": games, "opening_plies": OPENING_PLIES}
    write_results(output, "leaves_per_step.py", settings, strength=matches, speed=speeds)
    draw(matches, speeds, plot)
    console.print(f"written to {output}, drawn to {plot}", soft_wrap=True)


def strength(name: str, num_simulations: int, width: int, games: int) -> dict[str, Any]:
    """Points a game against W = 1 and their 95% interval."""
    agent = load_agent(name)
    evaluator = evaluators.network(agent.network, agent.game)
    wide, plain = (
        search_player(
            agent.game,
            evaluator,
            agent.variables,
            num_simulations=num_simulations,
            c_puct=agent.hyper.c_puct,
            leaves_per_step=leaves,
            name=f"{leaves} leaves",
        )
        for leaves in (width, 1)
    )
    result = play_match(agent.game, wide, plain, games, jax.random.key(width), opening_plies=OPENING_PLIES)
    return {
        "agent": name,
        "num_simulations": num_simulations,
        "leaves_per_step": width,
        "score": round(result.score, 4),
        "interval": [round(bound, 4) for bound in result.interval],
    }


def speed(name: str, num_simulations: int) -> list[dict[str, Any]]:
    """Simulations per second in one position for each width; the widths are timed in turn."""
    agent = load_agent(name)
    evaluator, states = evaluators.network(agent.network, agent.game), openings(agent.game, 1)
    sides = {
        str(width): azjax_search(
            agent.game, evaluator, states, num_simulations, params=agent.variables, leaves_per_step=width
        )
        for width in WIDTHS
    }
    return [
        {
            "agent": name,
            "num_simulations": num_simulations,
            "leaves_per_step": int(width),
            "simulations_per_second": round(statistics.median(rates)),
        }
        for width, rates in time_in_turn(sides, "none", REPEATS, SECONDS).items()
    ]


def draw(matches: list[dict[str, Any]], speeds: list[dict[str, Any]], path: Path) -> None:
    """Draws the scores, and the speed relative to W = 1."""
    figure, (left, right) = wide_figure(2, width=8, height=3.4)
    series = sorted({(row["agent"], row["num_simulations"]) for row in matches})
    for number, (agent, count) in enumerate(series):
        rows = [row for row in matches if (row["agent"], row["num_simulations"]) == (agent, count)]
        scores = [row["score"] for row in rows]
        spread = [[row["score"] - row["interval"][0], row["interval"][1] - row["score"]] for row in rows]
        places = [row["leaves_per_step"] * 1.06 ** (number - (len(series) - 1) / 2) for row in rows]
        color = COLORS[number % len(COLORS)]
        options: dict[str, Any] = {"color": color, "capsize": 3, "label": f"{agent}, N = {count:,}"}
        left.errorbar(places, scores, yerr=list(zip(*spread, strict=True)), fmt="o", **options)
    left.axhline(0.5, color="#999999", linewidth=0.8)
    left.set_ylim(0.2, 0.8)
    for agent, color in zip(dict.fromkeys(row["agent"] for row in speeds), COLORS, strict=False):
        rates = {row["leaves_per_step"]: row["simulations_per_second"] for row in speeds if row["agent"] == agent}
        right.plot(list(rates), [rate / rates[1] for rate in rates.values()], "o-", color=color, label=agent)
    for panel, title in ((left, "points a game against W = 1"), (right, "speed beside W = 1, one position")):
        widths = sorted({row["leaves_per_step"] for row in (matches if panel is left else speeds)})
        panel.set_xscale("log", base=2)
        panel.set_xticks(widths, [str(width) for width in widths])
        panel.minorticks_off()
        style(panel, title, "leaves of a step W", legend=True)
    save_figure(figure, path)


if __name__ == "__main__":
    run_study(main)
