"""How do several leaves per step change the strength and the speed of a search?

With a virtual loss a search selects several leaves of a tree before it evaluates them together. A search of a single
position, as in play against a person, then calls the network less often. Measured on Connect Four:

  strength: matches against the plain search at equal simulations, both with random rollouts;
  speed: milliseconds of a search of one position, with a network of 4 blocks of 64 channels and without a network.

    python experiments/leaves_per_step.py

It takes some minutes on 2 CPU cores. Writes experiments/results/leaves_per_step.json and docs/leaves_per_step.png. Axis
letters: `W` leaves of a step, `N` simulations.
"""

import statistics
from pathlib import Path
from typing import Any

import jax
import tyro
from rich.console import Console
from rich.progress import track
from study import COLORS, DOCS, RESULTS, save_figure, style, wide_figure, write_results

import azjax
from azjax.benchmark.search import time_in_turn
from azjax.benchmark.searches import azjax_search, openings
from azjax.evaluation import play_match, search_player
from azjax.networks import make_network
from azjax.search import evaluators

WIDTHS = (1, 2, 4, 8, 16)
REPEATS = 31
SECONDS = 60.0  # no round starts after this time


def main(
    num_simulations: int = 256,
    games: int = 512,
    output: Path = RESULTS / "leaves_per_step.json",
    plot: Path = DOCS / "leaves_per_step.png",
) -> None:
    """Measures strength and speed, writes and draws the results.

    Args:
      num_simulations: simulations of each search.
      games: games of each match.
      output: file of the results.
      plot: picture of strength and speed against W.
    """
    console = Console()
    speeds = speed(num_simulations)
    rows = [
        {"leaves_per_step": width, **strength(width, num_simulations, games), **speeds[width]}
        for width in track(WIDTHS, "leaves per step", console=console)
    ]
    for row in rows:
        console.print(row)
    settings = {"game": "connect_four", "num_simulations": num_simulations, "games": games}
    write_results(output, "leaves_per_step.py", settings, rows=rows)
    draw(rows, num_simulations, plot)
    console.print(f"written to {output}, drawn to {plot}", soft_wrap=True)


def strength(width: int, num_simulations: int, games: int) -> dict[str, Any]:
    """Points a game against W = 1 and their 95% interval."""
    game = azjax.make("connect_four")
    evaluator = evaluators.rollout(game)
    wide, plain = (
        search_player(game, evaluator, num_simulations=num_simulations, leaves_per_step=leaves) for leaves in (width, 1)
    )
    result = play_match(game, wide, plain, games, jax.random.key(width))
    return {"score": round(result.score, 4), "interval": [round(bound, 4) for bound in result.interval]}


def speed(num_simulations: int) -> dict[int, dict[str, float]]:
    """Milliseconds of a search of one position for each width; the widths are timed in turn."""
    game = azjax.make("connect_four")
    net = make_network("resnet", game, width=64, depth=4)
    params = net.init(jax.random.key(0), game)
    states, milliseconds = openings(game, 1), {width: {} for width in WIDTHS}
    for name, evaluator, variables in (
        ("network", evaluators.network(net, game), params),
        ("uniform", evaluators.uniform(game), None),
    ):
        sides = {
            str(width): azjax_search(game, evaluator, states, num_simulations, params=variables, leaves_per_step=width)
            for width in WIDTHS
        }
        for width, rates in time_in_turn(sides, "none", REPEATS, SECONDS).items():
            median = statistics.median(rates)
            milliseconds[int(width)][f"{name}_milliseconds"] = round(1e3 * num_simulations / median, 2)
    return milliseconds


def draw(rows: list[dict[str, Any]], num_simulations: int, path: Path) -> None:
    """Draws the score, and the speed relative to W = 1."""
    figure, (left, right) = wide_figure(2, width=8, height=3.4)
    widths = [row["leaves_per_step"] for row in rows]
    scores = [row["score"] for row in rows]
    spread = [[row["score"] - row["interval"][0], row["interval"][1] - row["score"]] for row in rows]
    left.errorbar(widths, scores, yerr=list(zip(*spread, strict=True)), fmt="o-", color=COLORS[0], capsize=3)
    left.axhline(0.5, color="#999999", linewidth=0.8)
    left.set_ylim(0.2, 0.8)
    for name, color in zip(("network", "uniform"), COLORS, strict=False):
        times = [row[f"{name}_milliseconds"] for row in rows]
        right.plot(widths, [times[0] / time for time in times], "o-", color=color, label=f"{name} evaluator")
    titles = (f"points a game against W = 1, N = {num_simulations}", "speed beside W = 1, one position")
    for panel, title in zip((left, right), titles, strict=True):
        panel.set_xscale("log", base=2)
        panel.set_xticks(widths, [str(width) for width in widths])
        panel.minorticks_off()
        style(panel, title, "leaves of a step W", legend=panel is right)
    save_figure(figure, path)


if __name__ == "__main__":
    tyro.cli(main)
