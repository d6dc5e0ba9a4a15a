"""Which change of the training makes an agent stronger after half an hour on 2 CPU cores?

The base is the preset of the game with a constant learning rate, since the length of a run is not known beforehand.
Each variant changes one thing: the network, what it learns from a game, where games begin, which positions are learned
from, the searches. All learn from self-play alone. The measure is

- for Santorini 3x3 and Connect Four: the share of exact mistakes of the network alone, and with a search, on the solved
  positions of `santorini_3x3.py` and `connect_four.py`;
- for Santorini 5x5 and Brandub: points a game against the packaged agent, both with a search, from random openings.

The rule by which variants are dropped is successive halving (Jamieson and Talwalkar 2016): all train for 5 minutes, the
better half goes on to 10, and half of those to 30. The base always goes on. A variant trains for as many iterations as
take that time on an idle machine: the seconds of an iteration of the base are measured first, when nothing else may
run, and those of a variant in turn with the base, when other work may.

    python experiments/what_learns.py GAME [--seed 0]

The same command continues a study that was stopped, and adds variants to one that has ended. If the preset has changed
since, it needs another --output, or --again, which drops the rows of the game that have other configurations. A game
takes some hours. Writes experiments/results/what_learns.json and docs/what_learns_GAME.png.
"""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import connect_four
import jax
import numpy as np
import santorini_3x3
import tyro
from rich.console import Console
from rich.table import Table
from study import (
    COLORS,
    DOCS,
    RESULTS,
    RUNS,
    check_outputs,
    config_digest,
    refuse_unknown,
    results_so_far,
    run_study,
    save_figure,
    seconds_per_iteration,
    style,
    trained,
    wide_figure,
    write_results,
)

import azjax
from azjax.core.errors import InputError
from azjax.evaluation import network_player, play_match, search_player
from azjax.games.game import AnyGame
from azjax.games.protocols import is_numbered
from azjax.networks import Variables
from azjax.packaged import load_agent
from azjax.runs import load_run, load_variables
from azjax.runs.precision import settle_precision
from azjax.runs.run_folder import CONFIG
from azjax.search import evaluators
from azjax.training import Config
from azjax.training.schedules import iterations_within, mean_simulations, simulation_counts

GAMES: dict[str, dict[str, Any]] = {
    "santorini_3x3": {"name": "santorini", "size": 3, "workers": 1},
    "connect_four": {"name": "connect_four"},
    "santorini_5x5": {"name": "santorini", "size": 5, "workers": 2},
    "brandub": {"name": "brandub"},
}
BOARD = {"network": "board", "width": 64, "depth": 4, "symmetries": True}
AXIAL = {"network": "axial", "width": 32, "depth": 4, "symmetries": True}
EQUIVARIANT = {"network": "equivariant_mlp", "width": 1024, "depth": 2, "symmetries": False}
MLP = {"network": "mlp", "width": 512, "depth": 4, "symmetries": True}
ADAM = {"optimizer": "adam", "learning_rate": 1e-3}
STRETCHED = {"value_scale": 0.1, "rescale_values": True}
AS_THEY_ARE = {"value_scale": 0.5, "rescale_values": False}
ALL_LOSSES = {"auxiliary_losses": ("outcome", "plies_left", "short_term", "soft_policy", "opponent_policy")}
PUCT = {"policy": "alphazero", "num_simulations": 32, "first_simulations": 0}
BASE = "base"
VARIANTS: dict[str, dict[str, Any]] = {
    BASE: {},
    "board": BOARD,
    "board, outcome": BOARD | {"auxiliary_losses": ("outcome",)},
    "board, all losses": BOARD | ALL_LOSSES,
    "axial": AXIAL,
    "axial, outcome": AXIAL | {"auxiliary_losses": ("outcome",)},
    "axial, all losses": AXIAL | ALL_LOSSES,
    "equivariant": EQUIVARIANT,
    "mlp": MLP,
    "Adam": ADAM,
    "Muon": {"optimizer": "muon", "learning_rate": 4e-3},
    "mlp, Adam": MLP | ADAM,
    "mlp, Adam, stretched values, 0 to 16 random plies": MLP | ADAM | STRETCHED | {"random_start_plies": 16},
    "512 wide": {"width": 512},
    "board, PUCT": BOARD | PUCT,
    "board, PUCT, uncertainty weighting": BOARD
    | PUCT
    | {"auxiliary_losses": ("value_error",), "uncertainty_weighting": True},
    "0 to 16 random plies": {"random_start_plies": 16},
    "no exploring starts": {"exploring_starts": 0.0, "exploring_plies": 0},
    "exploring starts: 0.75": {"exploring_starts": 0.75, "exploring_plies": 3},
    "exploring starts, games of 4 plies": {"exploring_starts": 0.5, "truncate_at_ply": 4, "root_value_fraction": 0.75},
    "mostly the search's values": {"root_value_fraction": 0.75},
    "results up to exploratory moves": {"trace_cut": 0.2},
    "64 updates an iteration": {"updates_per_iteration": 64},
    "l2 of 1e-5": {"l2": 1e-5},
    "lambda-returns": {"root_value_fraction": 0.0, "td_lambda": 0.9},
    "8 actions at the root": {"max_num_considered_actions": 8},
    "16 actions at the root": {"max_num_considered_actions": 16},
    "restarts anywhere": {"restart_candidates": 1},
    "restarts by regret": {"restart_candidates": 8},
    "restarts by regret alone": {"restart_candidates": 8, "random_start_plies": 0},
    "surprise weighting": {"surprise_weighting": True},
    "equal positions merged": {"merge_equal_positions": True},
    "stretched values": STRETCHED,
    "values as they are": AS_THEY_ARE,
    "reanalysis of as many": {"reanalyzed_steps": 8},
    "reused trees": {"reuse_tree": True},
    "playout cap": {"num_simulations": 64, "fast_simulations": 8, "first_simulations": 0},
    "8 simulations": {"num_simulations": 8, "first_simulations": 0},
    "16 simulations": {"num_simulations": 16, "first_simulations": 0},
    "32 simulations": {"num_simulations": 32, "first_simulations": 0},
    "progressive simulations": {"first_simulations": 4, "doubling_iterations": 500},
    "PUCT": PUCT,
    "variance-scaled PUCT": PUCT | {"selection": "variance_scaled"},
}
RUNGS, LONGEST = (5.0, 10.0, 30.0), 60.0  # minutes
SIMULATIONS = 64
OPENING_PLIES = 4
QUICK = {"network": "mlp", "width": 8, "depth": 1, "num_games": 16, "num_simulations": 2, "batch_size": 16}
QUICK |= {"updates_per_iteration": 1, "replay_size": 4096}
QUICK |= {"fast_simulations": 0, "first_simulations": 0, "auxiliary_losses": (), "uncertainty_weighting": False}

Row = dict[str, Any]
Measure = Callable[[Config, Variables], dict[str, float]]
"""`measure(config, variables)`: the results of a network, the first of which is the score: higher is better."""


def main(
    game: tyro.conf.Positional[Literal["santorini_3x3", "connect_four", "santorini_5x5", "brandub"]],
    seed: int = 0,
    minutes: tuple[float, ...] = RUNGS,
    variants: tuple[str, ...] = tuple(VARIANTS),
    match_games: int = 200,
    again: bool = False,
    quick: bool = False,
    folder: Path | None = None,
    output: Path | None = None,
    plot: Path | None = None,
) -> None:
    """Trains the variants, measures, prints, writes and draws.

    Args:
      game: what is learned.
      seed: of all runs.
      minutes: of training at each rung, ascending.
      variants: names of those that take part; the base always does.
      match_games: games of each match, an even number.
      again: drop the rows of the game that have other configurations, such as those of an earlier preset.
      quick: tiny sizes, for a test.
      folder: of the runs; by default runs/what_learns.
      output: file of the results; by default experiments/results/what_learns.json, with `quick` in the folder.
      plot: picture; by default docs/what_learns_GAME.png, with `quick` in the folder.
    """
    refuse_unknown("variant", variants, VARIANTS)
    if not 0 < max(minutes) <= LONGEST:
        raise InputError(f"minutes must be 0..{LONGEST:g}, got {max(minutes):g}")
    console = Console()
    options = dict(GAMES[game])
    rules = azjax.make(options.pop("name"), **options)
    folder = folder or RUNS / ("what_learns_quick" if quick else "what_learns")
    output = output or (folder if quick else RESULTS) / "what_learns.json"
    plot = plot or (folder if quick else DOCS) / f"what_learns_{game}.png"
    check_outputs(output, plot)
    settings = {"match_games": match_games, "num_simulations": SIMULATIONS, "opening_plies": OPENING_PLIES}
    before: list[Row] = results_so_far(output, settings, rows=[])["rows"]
    rows = [row for row in before if row["game"] != game or row.get("config") == digest(rules, row["variant"], quick)]
    if len(rows) < len(before) and not again:
        found = f"{output} has {len(before) - len(rows)} rows of {game} with other configurations"
        raise InputError(f"{found}: --again drops them, or name another --output")
    measure = measure_of(game, rules, match_games)
    runs = folder / f"{game}-{seed}"
    names = [BASE, *(name for name in variants if differs(rules, name))]
    base_run = runs / f"{BASE}-{digest(rules, BASE, quick)}"
    base = settle_precision(rules, config_of(rules, BASE, quick), base_run, console)
    for rung in minutes:
        for name in names:
            if find(rows, game, seed, name, rung):
                continue
            config = config_of(rules, name, quick)
            digested = digest(rules, name, quick)
            run = runs / f"{name.replace(' ', '_')}-{digested}"
            row = train_and_measure(rules, config, base, run, rung, seed, measure, console)
            known = {"config": digested, "game": game, "seed": seed, "variant": name, "minutes": rung}
            rows.append({**known, **row})
            write_results(output, "what_learns.py", settings, rows=rows)
        names = go_on([row for name in names for row in find(rows, game, seed, name, rung)])
    own = [row for row in rows if (row["game"], row["seed"]) == (game, seed)]
    console.print(table(own))
    draw(own, plot)
    console.print(f"written to {output}, drawn to {plot}", soft_wrap=True)


def find(rows: list[Row], game: str, seed: int, name: str, minutes: float) -> list[Row]:
    """The row of a variant at a rung, in a list."""
    wanted = game, seed, name, minutes
    return [row for row in rows if (row["game"], row["seed"], row["variant"], row["minutes"]) == wanted]


def config_of(game: AnyGame, name: str, quick: bool) -> Config:
    """The configuration of a variant, without its length."""
    base = azjax.preset(game).replace(decay_updates=0, evaluate_every=0, ladder_every=0, keep_checkpoints=1)
    base = base.replace(**VARIANTS[name])
    return base.replace(**QUICK) if quick else base


def digest(game: AnyGame, name: str, quick: bool) -> str | None:
    """Of the configuration of a variant; None for one that the study no longer has."""
    if name not in VARIANTS:
        return None
    return config_digest(config_of(game, name, quick))


def differs(game: AnyGame, name: str) -> bool:
    """Whether the game can have the variant, and it changes something there."""
    config = config_of(game, name, quick=False)
    return config != config_of(game, BASE, quick=False) and (is_numbered(game) or not config.exploring_starts)


def go_on(rows: list[Row]) -> list[str]:
    """The better half of the variants of a rung, rounded up, and the base."""
    ranked = sorted(rows, key=lambda row: -row["score"])
    better = [row["variant"] for row in ranked[: math.ceil(len(ranked) / 2)]]
    return [BASE, *(name for name in better if name != BASE)]


def train_and_measure(
    game: AnyGame,
    config: Config,
    base: Config,
    folder: Path,
    minutes: float,
    seed: int,
    measure: Measure,
    console: Console,
) -> Row:
    """Trains the run in `folder` up to that many minutes, and measures it."""
    config = settle_precision(game, config, folder, console)
    costs = seconds_of(game, config, base, folder)
    iterations = max(1, round(iterations_within(config, 60 * minutes, costs)))
    config = config.replace(checkpoint_every=iterations)
    if (folder / CONFIG).exists():  # iterations are the one setting that may change
        config = load_run(folder)[1]
    run = trained(game, folder, console, seed=seed, config=config, iterations=iterations)
    results = measure(run.config, load_variables(run.folder)[1])
    searched = sum(mean_simulations(config, iteration) + 1 for iteration in range(iterations))
    learned = iterations * config.updates_per_iteration * config.batch_size
    evaluations = round(config.num_games * config.steps_per_iteration * searched + learned)
    return {
        "iterations": iterations,
        "evaluations": evaluations,
        "seconds": run.seconds(iterations),
        "precision": load_run(run.folder)[1].precision,
        "score": next(iter(results.values())),
        **results,
    }


def seconds_of(game: AnyGame, config: Config, base: Config, folder: Path) -> list[float]:
    """Of an iteration on an idle machine, with the numbers of simulations that `config` reaches; kept beside the run.

    The seconds of the base are kept too. Those of a variant are its share of the base's, measured in turn.
    """
    kept_base = folder.with_name(f"base-{config_digest(base)}.json")
    kept = folder.with_suffix(".json")
    folder.parent.mkdir(parents=True, exist_ok=True)
    base = base.replace(num_simulations=simulation_counts(base)[0], first_simulations=0)
    if not kept_base.exists():
        kept_base.write_text(json.dumps(seconds_per_iteration(game, [base], rounds=9)[0]))
    if not kept.exists():
        idle: float = json.loads(kept_base.read_text())
        # More simulations take longer: later numbers are not reached.
        most = math.ceil(60 * LONGEST / idle / max(1, config.doubling_iterations))
        counts = simulation_counts(config)[: max(1, most)]
        each = [config.replace(first_simulations=0, num_simulations=count) for count in counts]
        of_base, *own = seconds_per_iteration(game, [base, *each], rounds=5)
        kept.write_text(json.dumps([idle * seconds / of_base for seconds in own]))
    costs: list[float] = json.loads(kept.read_text())
    return costs


def measure_of(name: str, game: AnyGame, match_games: int) -> Measure:
    """What is measured in a game."""
    if name == "santorini_3x3":
        sample = santorini_3x3.load_sample(game)

        def of_sample(config: Config, variables: Variables) -> dict[str, float]:
            alone, searching = santorini_3x3.players(game, config, variables, 2 * SIMULATIONS).values()
            by_player = {
                "alone": santorini_3x3.shares(alone, sample),
                "search": santorini_3x3.shares(searching, sample),
            }
            return {f"{kind}, {player}": share for player, of in by_player.items() for kind, share in of.items()}

        return of_sample
    if name == "connect_four":
        positions = connect_four.load_positions(game, json.loads(connect_four.POSITIONS.read_text()))

        def of_positions(config: Config, variables: Variables) -> dict[str, float]:
            network = config.make_network(game)
            evaluator = config.make_evaluator(game, network)
            search = search_player(game, evaluator, variables, num_simulations=400, c_puct=config.hyper.c_puct)
            players = {"alone": network_player(game, network, variables), "search": search}
            found = {
                player: connect_four.mistakes(connect_four.move_probabilities(each, positions), positions)
                for player, each in players.items()
            }
            shares = {
                f"{kind} kept, {player}": 1 - mistakes[kind]
                for player, mistakes in found.items()
                for kind in ("all", "narrow")
            }
            evaluate = jax.jit(lambda states: evaluator(variables, jax.random.key(0), states)[1])
            error = np.mean((np.asarray(evaluate(positions.states)) - positions.values) ** 2)
            return shares | {"squared error": round(float(error), 4)}

        return of_positions
    packed = load_agent(name)
    rival = search_player(
        game, evaluators.network(packed.network, game), packed.variables, num_simulations=SIMULATIONS, name="packaged"
    )

    def of_match(config: Config, variables: Variables) -> dict[str, float]:
        evaluator = config.make_evaluator(game, config.make_network(game))
        player = search_player(game, evaluator, variables, num_simulations=SIMULATIONS)
        match = play_match(game, player, rival, match_games, jax.random.key(0), opening_plies=OPENING_PLIES)
        low, high = match.interval
        return {"points": round(match.score, 4), "low": round(low, 4), "high": round(high, 4)}

    return of_match


def table(rows: list[Row]) -> Table:
    """The last rung of each variant, best first."""
    last = list({row["variant"]: row for row in sorted(rows, key=lambda row: row["minutes"])}.values())
    known = {"game", "seed", "variant", "config", "minutes", "iterations"}
    known |= {"evaluations", "seconds", "precision", "score"}
    names = [name for name in last[0] if name not in known]
    shown = Table("", "minutes", "evaluations", *names)
    for row in sorted(last, key=lambda row: (-row["minutes"], -row["score"])):
        figures = [f"{row[name]:.3f}" if "error" in name else f"{row[name]:.1%}" for name in names]
        shown.add_row(row["variant"], f"{row['minutes']:g}", f"{row['evaluations'] / 1e6:,.0f} M", *figures)
    return shown


def draw(rows: list[Row], path: Path) -> None:
    """Draws the scores against minutes and against evaluations."""
    figure, panels = wide_figure(2, sharey=True)
    scales = {"minutes": "minutes of training", "evaluations": "positions evaluated"}
    for panel, (axis, label) in zip(panels, scales.items(), strict=True):
        for number, name in enumerate(dict.fromkeys(row["variant"] for row in rows)):
            own = sorted((row for row in rows if row["variant"] == name), key=lambda row: row["minutes"])
            color, line = COLORS[number % len(COLORS)], "-" if number < len(COLORS) else "--"
            points = [row[axis] for row in own], [row["score"] for row in own]
            panel.plot(*points, color=color, linestyle=line, marker="o", markersize=3, label=name)
        style(panel, "score", label, shares=True)
    save_figure(figure, path)


if __name__ == "__main__":
    run_study(main)
