"""How does the search scale with the batch, the simulations and the actions, and how much of its time is the network?

Measures in one process on one device:
  throughput: simulations per second against B, N and A, beside mctx;
  growth: microseconds a simulation in large and small trees, and with many and few actions;
  network: the share of a search's time that the network needs at its best batch size;
  compile: seconds to trace and compile every policy;
  memory: megabytes of Brandub's trees at B=1024, N=800.

    python experiments/search_scaling.py [--quick]

It takes about 15 minutes on 2 CPU cores. Writes experiments/results/search_scaling.json and docs/search_scaling.png.
Axis letters: `A` actions, `B` batch, `N` simulations of each search.
"""

if __name__ == "__main__":
    from azjax.core.allocator import keep_freed_memory

    keep_freed_memory()

import dataclasses
import functools
import os
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
from rich.console import Console
from rich.progress import Progress
from study import DOCS, RESULTS, RUNS, check_outputs, run_study, save_figure, style, wide_figure, write_results

import azjax
from azjax.benchmark.search import STAND_INS, time_in_turn
from azjax.benchmark.searches import TimedSearch, azjax_search, mctx_search, openings
from azjax.benchmark.stand_ins import with_generic_compaction
from azjax.networks import make_network
from azjax.search import alphazero_policy, evaluators, gumbel_policy, uct_policy
from benchmarks.rules.layered_game import LayeredGame

POLICIES = {"alphazero": alphazero_policy, "gumbel": gumbel_policy, "uct": uct_policy}
SANTORINI = {"size": 5, "workers": 2}
SLOW_CALL = 6.0  # seconds; mctx is not measured on sizes larger than one that took longer


@dataclasses.dataclass(frozen=True)
class Sizes:
    """The sizes of all measurements.

    Attributes:
      search: the fixed B and N of measurements that vary another size.
      batches: B in tic-tac-toe.
      simulations: N in Connect Four.
      boards: sides of square boards with four in a row; Brandub is measured after them.
      small_batch: a second B for the growth with simulations.
      growth: simulations in a small and in a large tree, and actions of a game with few and of one with many.
      deep_growth: simulations in a small and in a large tree of Connect Four.
      leaves: leaves of a step of the searches whose growth is measured.
      network_batches: batch sizes from which the network's best is taken.
      network_search: B and N of the search with a network.
      repeats: largest number of rounds.
      seconds: no round starts after this time.
    """

    search: tuple[int, int] = (128, 100)
    small_batch: int = 16
    batches: tuple[int, ...] = (1, 8, 64, 512, 4096)
    simulations: tuple[int, ...] = (25, 100, 400, 1600)
    boards: tuple[int, ...] = (4, 9, 18, 26)
    growth: tuple[tuple[int, int], tuple[int, int]] = ((50, 1600), (128, 1176))
    deep_growth: tuple[int, int] = (200, 3000)
    leaves: tuple[int, ...] = (1, 8)
    network_batches: tuple[int, ...] = (64, 128, 256, 512, 1024)
    network_search: tuple[int, int] = (256, 64)
    repeats: int = 9
    seconds: float = 4.0


QUICK = Sizes((4, 5), 2, (1, 8), (4, 8), (4, 5), ((4, 8), (40, 80)), (4, 8), (2,), (8, 16), (8, 4), 1, 0.1)


def main(
    quick: bool = False,
    output: Path | None = None,
    plot: Path | None = None,
) -> None:
    """Measures everything, writes and draws the results.

    Args:
      quick: tiny sizes, for a test.
      output: file of the results; by default experiments/results/search_scaling.json, with `quick` in runs/.
      plot: picture of the throughput against B, N and A; by default docs/search_scaling.png, with `quick` in runs/.
    """
    quick_folder = RUNS / "search_scaling_quick"
    output = output or (quick_folder if quick else RESULTS) / "search_scaling.json"
    plot = plot or (quick_folder if quick else DOCS) / "search_scaling.png"
    check_outputs(output, plot)
    sizes = QUICK if quick else Sizes()
    console = Console()
    parts: dict[str, Callable[[Sizes, Console], Any]] = {
        "throughput": throughput,
        "growth": growth,
        "network": network,
        "compile": compile_seconds,
        "memory": memory,
    }
    results: dict[str, Any] = {"load_average": round(os.getloadavg()[0], 2)}
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("", total=len(parts))
        for name, measure in parts.items():
            progress.update(task, description=name)
            results[name] = measure(sizes, console)
            progress.advance(task)
    write_results(output, "search_scaling.py", dataclasses.asdict(sizes), **results)
    draw(results["throughput"], plot)
    console.print(f"written to {output}, drawn to {plot}", soft_wrap=True)


def throughput(sizes: Sizes, console: Console) -> list[dict[str, Any]]:
    """Rows of simulations per second against B, N or A, ascending, beside mctx up to `SLOW_CALL`."""
    tictactoe, connect_four = azjax.make("tictactoe"), azjax.make("connect_four")
    squares = [azjax.make("mnk", columns=side, rows=side, in_a_row=4) for side in sizes.boards]
    brandub = azjax.make("brandub", repetition="never")
    usual_batch, usual_simulations = sizes.search
    against = {
        "B": [(tictactoe, batch, usual_simulations) for batch in sizes.batches],
        "N": [(connect_four, usual_batch, simulations) for simulations in sizes.simulations],
        "A": [(game, usual_batch, usual_simulations) for game in [*squares, brandub]],
    }
    rows = []
    for axis, points in against.items():
        for name, stand_in in STAND_INS.items():
            slowest = 0.0
            for game, batch, simulations in points:
                problem = (game, stand_in(game), openings(game, batch), simulations)
                sides = {"azjax": azjax_search(*problem)}
                if slowest < SLOW_CALL:
                    sides["mctx"] = mctx_search(*problem)
                rates = time_in_turn(sides, "mctx", sizes.repeats, sizes.seconds)
                if "mctx" in sides:
                    slowest = sides["mctx"].simulations / min(rates["mctx"])
                row = {
                    "against": axis,
                    "game": game.name,
                    "actions": game.num_actions,
                    "batch": batch,
                    "num_simulations": simulations,
                    "evaluator": name,
                    "simulations_per_second": {side: round(statistics.median(rate)) for side, rate in rates.items()},
                }
                console.print(row)
                rows.append(row)
    return rows


def growth(sizes: Sizes, console: Console) -> list[dict[str, Any]]:
    """Microseconds a simulation of a large and a small size, measured in turn, and their ratio; uniform evaluator.

    The growth with simulations is measured on a game of 16 actions and 3 plies, so that the large tree is not deeper,
    in the usual batch and in a small batch, whose large trees stay in the processor's cache; and on Connect Four, whose
    large trees are deeper, for every policy. The growth with actions is measured on games with 32 legal actions in each
    position. Either the game enumerates the legal actions, or the generic compaction extracts them from the mask.
    """
    (few_simulations, many_simulations), (few_actions, many_actions) = sizes.growth
    batch, usual = sizes.search
    small, few, many = LayeredGame(16, 16, depth=3), LayeredGame(few_actions, 32), LayeredGame(many_actions, 32)
    of_simulations = (small, few_simulations), (small, many_simulations)
    connect_four = tuple((azjax.make("connect_four"), simulations) for simulations in sizes.deep_growth)
    plain = {"policy": alphazero_policy, "leaves_per_step": 1}
    cases: list[tuple[str, int, tuple[tuple[Any, int], ...], dict[str, Any]]] = [
        ("simulations", sizes.small_batch, of_simulations, plain),
        ("simulations", batch, of_simulations, plain),
        ("actions", batch, ((few, usual), (many, usual)), plain),
        (
            "actions, generic compaction",
            batch,
            tuple((with_generic_compaction(game), usual) for game in (few, many)),
            plain,
        ),
        *(
            (f"simulations, {name}", batch, connect_four, {"policy": policy, "leaves_per_step": leaves})
            for name, policy in POLICIES.items()
            for leaves in sizes.leaves
        ),
    ]
    rows = []
    for name, batch, pair, options in cases:
        sides = {
            side: azjax_search(game, evaluators.uniform(game), openings(game, batch), simulations, **options)
            for side, (game, simulations) in zip(("small", "large"), pair, strict=True)
        }
        rates = time_in_turn(sides, "none", sizes.repeats, sizes.seconds)
        ratios = [one / other for one, other in zip(rates["small"], rates["large"], strict=True)]
        row = {
            "of": name,
            "game": pair[0][0].name,
            "batch": batch,
            "leaves_per_step": options["leaves_per_step"],
            "actions": [game.num_actions for game, _ in pair],
            "num_simulations": [simulations for _, simulations in pair],
            "microseconds": {side: round(1e6 / statistics.median(rate), 3) for side, rate in rates.items()},
            "ratio": round(statistics.median(ratios), 3),
        }
        console.print(row)
        rows.append(row)
    return rows


def network(sizes: Sizes, console: Console) -> list[dict[str, Any]]:
    """The share of a search's time that the network needs at its best batch size."""
    batch, simulations = sizes.network_search
    rows = []
    for name, options in (("brandub", {}), ("connect_four", {}), ("santorini", SANTORINI)):
        game = azjax.make(name, **options)
        net = make_network("resnet", game, width=64, depth=4)
        params = net.init(jax.random.key(0), game)
        evaluator = evaluators.network(net, game)
        apply = jax.jit(functools.partial(net.apply, train=False))
        sides = {}
        for size in sizes.network_batches:
            observations = jax.jit(jax.vmap(game.observe))(openings(game, size))
            call = functools.partial(apply, params, observations)
            sides[str(size)] = TimedSearch(lambda seed, call=call: jax.block_until_ready(call()), size)
        sides["search"] = azjax_search(game, evaluator, openings(game, batch), simulations, params=params)
        rates = time_in_turn(sides, "search", sizes.repeats, 5 * sizes.seconds)
        # The network's best rate of each round, so that both sides ran at the same time.
        best = [max(rates[str(size)][turn] for size in sizes.network_batches) for turn in range(len(rates["search"]))]
        shares = [searched / evaluated for searched, evaluated in zip(rates["search"], best, strict=True)]
        row = {
            "game": name,
            "batch": batch,
            "num_simulations": simulations,
            "evaluations_per_second": {
                str(size): round(statistics.median(rates[str(size)])) for size in sizes.network_batches
            },
            "simulations_per_second": round(statistics.median(rates["search"])),
            "network_share": round(statistics.median(shares), 3),
        }
        console.print(row)
        rows.append(row)
    return rows


def compile_seconds(sizes: Sizes, console: Console) -> list[dict[str, Any]]:
    """Seconds to compile every policy with the uniform evaluator, B=32, N=64."""
    del sizes
    rows = []
    for name, options in (("tictactoe", {}), ("connect_four", {}), ("santorini", SANTORINI), ("brandub", {})):
        game = azjax.make(name, **options)
        states = openings(game, 32)
        row = {"game": name}
        for label, policy in POLICIES.items():
            search = azjax_search(game, evaluators.uniform(game), states, 64, policy=policy)
            row[label] = round(search.compile_seconds, 2)
        console.print(row)
        rows.append(row)
    return rows


def memory(sizes: Sizes, console: Console) -> dict[str, Any]:
    """Megabytes of all temporary arrays of Brandub's search, with exact repetition."""
    del sizes
    game = azjax.make("brandub")
    search = azjax_search(game, evaluators.uniform(game), openings(game, 1024), 800)
    row = {
        "game": "brandub",
        "batch": 1024,
        "num_simulations": 800,
        "peak_memory_mb": round(search.peak_memory / 1e6, 1),
    }
    console.print(row)
    return row


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Draws the throughput against B, N and A; all axes are logarithmic."""
    figure, panels = wide_figure(3, width=12, height=4.2, sharey=True)
    fields = {"B": "batch", "N": "num_simulations", "A": "actions"}
    titles = {
        "B": ("batch B", "tic-tac-toe, N={num_simulations}"),
        "N": ("simulations N", "Connect Four, B={batch}"),
        "A": ("actions A", "n x n boards, then Brandub; B={batch}, N={num_simulations}"),
    }
    colors, styles = {"azjax": "#2a6fbb", "mctx": "#e0a458"}, {"uniform": ("-", "o"), "peaked": ("--", "s")}
    for panel, (axis, field) in zip(panels, fields.items(), strict=True):
        for side, color in colors.items():
            for evaluator, (line, marker) in styles.items():
                points = [
                    (row[field], row["simulations_per_second"][side])
                    for row in rows
                    if (row["against"], row["evaluator"]) == (axis, evaluator) and side in row["simulations_per_second"]
                ]
                if points:
                    x, rates = zip(*points, strict=True)
                    panel.plot(x, rates, line, marker=marker, ms=5, color=color, label=f"{side}, {evaluator}")
        label, title = titles[axis]
        of_axis = [row for row in rows if row["against"] == axis]
        ticks = sorted({row[field] for row in of_axis})
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
        panel.minorticks_off()
        style(panel, title.format(**of_axis[0]), label, legend=False)
    panels[0].set_ylabel("simulations per second")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False)
    save_figure(figure, path)


if __name__ == "__main__":
    run_study(main)
