"""Makes the agents that come with azjax: trains them, packs their weights, and writes their model cards.

    python experiments/packaged_agents.py tictactoe connect2 santorini_2x2
    python experiments/packaged_agents.py            # all

Each agent is trained with the preset of its game, some of them longer (LONGER_TRAINING in study.py), from self-play
alone, with seed 0, in runs/NAME-0. A run that exists is resumed or reused. Small games are measured here, on all
positions. The other agents are measured by studies, which run first: `santorini_3x3.py`, `connect_four.py`,
`against_before.py`, and `against_uct.py`. The model cards show their results. `levels.py` plays the levels of each
agent against each other. Writes azjax/packaged/NAME.npz and NAME.md.
"""

import dataclasses
import json
import os
import subprocess
from collections.abc import Callable
from typing import Any

import jax
import levels
import tyro
from rich.console import Console
from scipy import stats
from study import RESULTS, ROOT, RUNS, Run, config_of, refuse_unknown, run_other, run_study, trained

import azjax
from azjax.benchmark.report import machine
from azjax.core.errors import InputError
from azjax.core.progress import duration
from azjax.evaluation import exact_report, solve
from azjax.games.game import Game
from azjax.packaged import save_agent
from azjax.runs import load_variables
from azjax.runs.metrics import METRICS, read_rows
from azjax.training.schedules import simulations_in_words


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How an agent is made.

    Attributes:
      game: name of the game.
      options: options of the game.
      strength: returns lines of Markdown on the strength of an agent, given its name and its game. The first sums them
        up; README.md and the card that notebooks show of a player have it too.
      studies: the scripts that measure the agent beside this one, in this order, with their arguments.
      curve: returns lines of Markdown on its strength against the minutes of training, given its name.
    """

    game: str
    options: dict[str, Any]
    strength: Callable[[str, Game], list[str]]
    studies: tuple[str, ...] = ()
    curve: Callable[[str], list[str]] | None = None


def main(
    names: tyro.conf.Positional[tuple[str, ...]] = (),
    commit: str | None = None,
    cores: int | None = None,
    studies: bool = True,
) -> None:
    """Trains and measures the agents, packs their weights and writes their cards.

    Args:
      names: names of the agents; by default all.
      commit: commit of the code that trained them, for the cards; by default HEAD.
      cores: how many cores of this machine trained them, for the cards; by default all.
      studies: run the studies that measure an agent; with --no-studies they have run before.
    """
    console = Console(highlight=False)
    refuse_unknown("agent", names, RECIPES)
    for name in names or RECIPES:
        recipe = RECIPES[name]
        game = azjax.make(recipe.game, **recipe.options)
        for study in recipe.studies if studies else ():
            run_other(*study.split())
        run = trained(game, RUNS / f"{name}-0", console, config=config_of(name, game))
        network = {"name": run.config.network, "width": run.config.width, "depth": run.config.depth}
        network["activation"] = run.config.activation
        step, variables = load_variables(run.folder)
        path = save_agent(name, game, network, variables, run.config.hyper.c_puct)
        card = path.with_suffix(".md")
        card.write_text(model_card(name, recipe, game, run, step, commit or head(), cores))
        levels.main((name,))
        console.print(f"{path}: {path.stat().st_size / 1e6:.2f} MB; {card}", soft_wrap=True)


def model_card(name: str, recipe: Recipe, game: Game, run: Run, step: int, commit: str, cores: int | None) -> str:
    """The model card in Markdown."""
    config = run.config
    games = sum(row["games"] for row in read_rows(run.folder / METRICS)[:step])
    positions = step * config.num_games * config.steps_per_iteration
    on, all_cores = machine(), os.cpu_count()
    used = f"{all_cores}" if cores in (None, all_cores) else f"{cores} of {all_cores}"
    rows = {
        "Command": f"`python experiments/packaged_agents.py {name}`",
        "Commit": commit,
        "Game": str(game),
        "Network": str(config.make_network(game)),
        "Training": f"self-play alone: {config.policy}, {simulations_in_words(config)} simulations a move",
        "Time": duration(run.seconds(step)),
        "Hardware": f"{used} cores of {on['cpu']}, jax {on['versions']['jax']}",
        "Games": f"{games:,.0f} of self-play, {positions:,} positions, {step:,} iterations",
        "Weights": "rounded to bfloat16" + ", after the run was measured" * bool(recipe.studies),
        "Limits": "no solver value, outside game or heuristic entered training",
    }
    lines = [f"# {name}", "", f"Plays at once: `azjax play {name}`.", "", "| | |", "| --- | --- |"]
    lines += [f"| {name} | {value} |" for name, value in rows.items()]
    lines += ["", "## Strength", "", *recipe.strength(name, game)]
    if recipe.curve is not None:
        lines += ["", "## Strength against the minutes of training", "", *recipe.curve(name)]
    return "\n".join([*lines, ""])


def on_all_positions(name: str, game: Game) -> list[str]:
    """Mistakes and exact expected scores of the packaged weights."""
    solution, counts = solve(game), []
    lines = [
        f"Exact, on all {solution.num_unfinished:,} unfinished positions, of the packaged weights:",
        "",
        "| | mistakes | points against random | points against optimal |",
        "| --- | --- | --- | --- |",
    ]
    for level, label in (("medium", "network"), ("hard", "network + 64 simulations")):
        report = exact_report(azjax.load_player(name, level=level), solution, jax.random.key(0))
        scores = (versus.alternating.score for versus in (report.against_random, report.against_optimal))
        counts.append(f"{report.mistakes.count:,.0f}")
        lines.append(f"| {label} | {' | '.join([counts[-1], *(f'{score:.4f}' for score in scores)])} |")
    alone, searched = counts
    where = f"{solution.num_unfinished:,} positions"
    if (alone, searched) == ("0", "0"):
        return [f"No mistake on any of the {where}.", "", *lines]
    return [f"{alone} mistakes, {searched} with 64 simulations, on the {where}.", "", *lines]


def on_3x3(name: str, game: Game) -> list[str]:
    """Shares of right moves and values on a sample of positions, and mistakes on all positions."""
    results = _read("santorini_3x3")
    lines = [
        "Shares of the won positions whose win is kept, of those won in 7 plies or more, and of the values whose sign",
        "is right, on 1,200 positions of the solved game (`experiments/results/santorini_3x3.json`):",
        "",
        "| | wins kept | long wins kept | signs right |",
        "| --- | --- | --- | --- |",
    ]
    rows = [results["rows"][0], *results["rows"][-2:]]
    shares = ("wins_kept", "long_wins_kept", "signs_right")
    lines += [f"| {row['player']} | {' | '.join(f'{row[share]:.1%}' for share in shares)} |" for row in rows]
    every = results["all_positions"]
    summary = f"{every['share']:.2%} mistakes on all {every['positions']:,} positions, without search."
    count = f"{every['mistakes']:,.0f} ({every['share']:.2%})"
    lines += ["", f"Mistakes of the network alone on all {every['positions']:,} unfinished positions: {count}."]
    return [summary, "", *lines]


def on_solved_positions(name: str, game: Game) -> list[str]:
    """Mistakes in Connect Four, and the match against MCTS."""
    results = _read("connect_four")
    match, (alone, searched) = results["match"], results["rows"][-2:]
    share = f"{searched['all']:.1%} mistakes with 400 simulations, {alone['all']:.1%} without"
    lines = [
        f"{share}, on {results['positions']['all']:,} solved positions.",
        "",
        f"Moves that give away a win or a draw, on {results['positions']['all']:,} positions solved exactly",
        "(`experiments/results/connect_four.json`; MCTS is OpenSpiel's):",
        "",
        "| | all positions | to ply 12, at most 2 right moves |",
        "| --- | --- | --- |",
    ]
    for row in [*results["rivals"], *results["rows"][-2:]]:
        cells = [with_interval(row[kind], results["positions"][kind]) for kind in ("all", "narrow")]
        lines.append(f"| {row['player']} | {' | '.join(cells)} |")
    score = f"{match['won']} won, {match['drawn']} drawn, {match['lost']} lost"
    return [*lines, "", f"Moving first against MCTS with {match['rollouts']:,} rollouts: {score}."]


def curve_on_3x3(name: str) -> list[str]:
    """Shares of right moves and values of the checkpoints."""
    lines = [
        "| minutes | wins kept | with 128 simulations | signs right, with 128 simulations |",
        "| ---: | ---: | ---: | ---: |",
    ]
    for alone, searched in zip(*_by_player(_read("santorini_3x3")["rows"]), strict=True):
        shares = (alone["wins_kept"], searched["wins_kept"], searched["signs_right"])
        lines.append(f"| {_minutes(alone)} | {' | '.join(f'{share:.1%}' for share in shares)} |")
    return lines


def curve_on_solved_positions(name: str) -> list[str]:
    """Mistakes of every fourth checkpoint in Connect Four."""
    lines = ["| minutes | mistakes of the network | with 400 simulations |", "| ---: | ---: | ---: |"]
    for alone, searched in list(zip(*_by_player(_read("connect_four")["rows"]), strict=True))[3::4]:
        lines.append(f"| {_minutes(alone)} | {alone['all']:.1%} | {searched['all']:.1%} |")
    return lines


def curve_against_before(name: str) -> list[str]:
    """Points of the checkpoints against the agent that was packaged before."""
    lines = [
        "Against the agent that was packaged before it, with as many simulations on both sides:",
        "",
        "| minutes | games | points | 95% |",
        "| ---: | ---: | ---: | ---: |",
    ]
    for row in _read(f"{name}_before")["rows"]:
        if row["rival"] == "before":
            low, high = row["interval"]
            interval = f"{low:.1%} to {high:.1%}"
            lines.append(f"| {_minutes(row)} | {row['games']} | {row['score']:.1%} | {interval} |")
    return lines


def _by_player(rows: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The rows of the checkpoints, for each player that has some."""
    rows = [row for row in rows if "iteration" in row]
    return [[row for row in rows if row["player"] == player] for player in dict.fromkeys(row["player"] for row in rows)]


def _minutes(row: dict[str, Any]) -> str:
    return f"{row['seconds'] / 60:.0f}"


def with_interval(share: float, count: int) -> str:
    """A share of `count` positions with its 95% interval (Wilson's)."""
    low, high = stats.binomtest(round(share * count), count).proportion_ci(method="wilson")
    return f"{share:.1%} ({low:.1%} to {high:.1%})"


def in_matches(name: str, game: Game) -> list[str]:
    """Scores of the last checkpoint in matches."""
    results = _read(name)
    last = results["rows"][-1]["iteration"]
    lines = [
        f"Points a game, one half of the games on each side (`experiments/results/{name}.json`):",
        "",
        "| | against | games | points | 95% | moving first | moving second | drawn | plies |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    summary = ""
    for row in results["rows"]:
        if row["iteration"] == last:
            if (row["player"], row["rival"]) == ("network + 100 simulations", "uct:1000"):
                summary = f"With 100 simulations it scores {row['score']:.1%} against UCT with 1,000 rollouts."
            low, high = row["interval"]
            figures = [f"{row['score']:.1%}", f"{low:.1%} to {high:.1%}"]
            figures += [f"{row['first_score']:.1%}", f"{row['second_score']:.1%}"]
            figures += [str(row["won_drawn_lost"][1]), f"{row['mean_plies']:.0f}"]
            lines.append(f"| {row['player']} | {row['rival']} | {row['games']} | {' | '.join(figures)} |")
    return [summary, "", *lines, *against_before(name)]


def against_before(name: str) -> list[str]:
    """The match against the agent that was packaged before, if `against_before.py` has played it."""
    if not (RESULTS / f"{name}_before.json").exists():
        return []
    results = _read(f"{name}_before")
    count, (row, late) = results["settings"]["num_simulations"], results["rows"][-2:]
    told = []
    for match, rival in ((row, "the agent that was packaged before it"), (late, f"itself after {late['rival']}")):
        low, high = match["interval"]
        told.append(f"against {rival} {match['score']:.1%} ({low:.1%} to {high:.1%})")
    return [
        "",
        f"Points a game with {count} simulations on both sides, {row['games']} games from balanced",
        f"openings (`experiments/results/{name}_before.json`):",
        "",
        *(f"- {line}" for line in told),
    ]


def _read(name: str) -> dict[str, Any]:
    path = RESULTS / f"{name}.json"
    if not path.exists():
        raise InputError(f"{path} does not exist; run the study first")
    return json.loads(path.read_text())


def head() -> str:
    """The hash of the current commit."""
    done = subprocess.run(["git", "rev-parse", "--short=10", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


RECIPES = {
    "tictactoe": Recipe("tictactoe", {}, on_all_positions),
    "connect2": Recipe("connect2", {}, on_all_positions),
    "santorini_2x2": Recipe("santorini", {"size": 2, "workers": 1}, on_all_positions),
    "santorini_3x3": Recipe("santorini", {"size": 3, "workers": 1}, on_3x3, ("santorini_3x3.py",), curve_on_3x3),
    "connect_four": Recipe("connect_four", {}, on_solved_positions, ("connect_four.py",), curve_on_solved_positions),
    "santorini_5x5": Recipe(
        "santorini",
        {"size": 5, "workers": 2},
        in_matches,
        ("against_before.py santorini_5x5", "against_uct.py santorini_5x5"),
        curve_against_before,
    ),
    "brandub": Recipe(
        "brandub", {}, in_matches, ("against_before.py brandub", "against_uct.py brandub"), curve_against_before
    ),
}


if __name__ == "__main__":
    run_study(main)
