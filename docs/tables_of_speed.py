"""The tables of what `azjax benchmark` and the studies of speed measured."""

from typing import Any

from tables import result_of, rows_of, table


def search() -> str:
    """The table of simulations per second."""
    heads = ("game", "A", "B", "N", "evaluator", "azjax", "on 2 devices", "rival", "ratio", "on 2 devices")
    return table(heads, (search_cells(row) for row in rows_of("search")))


def search_cells(row: dict[str, Any]) -> list[str]:
    """The cells of one row of `azjax benchmark search`."""
    rates = row["simulations_per_second"]
    sizes = [f"{row[field]:,}" for field in ("actions", "batch", "num_simulations")]
    own = [f"{rates[side]:,}" if side in rates else "" for side in ("azjax", "azjax on all devices")]
    rival = f"{row['rival']} {rates[row['rival']]:,}"
    return [row["game"], *sizes, f"`{row['evaluator']}`", *own, rival, *_ratios(row)]


def _ratios(row: dict[str, Any]) -> list[str]:
    return [f"{row[name]:,.1f}" if name in row else "" for name in ("ratio", "ratio_on_all_devices")]


def operations() -> str:
    """The table of operations a simulation on a GPU, by loop."""
    levels = ("in each simulation", "in each step of its loops", "in loops within those")
    heads = ("game", "N", "evaluator", "", *levels)
    lines = []
    for row in rows_of("search"):
        for side, counts in row["cuda_operations_by_loop"].items():
            cells = [f"{count:,}" for count in counts] + [""] * (len(levels) - len(counts))
            lines.append([row["game"], f"{row['num_simulations']:,}", f"`{row['evaluator']}`", side, *cells])
    return table(heads, lines)


def growth() -> str:
    """The table of the growth of a simulation with the tree and with the actions."""
    heads = ("growth with", "game", "B", "leaves a step", "A", "N", "microseconds a simulation", "ratio")
    return table(
        heads,
        (
            [
                row["of"],
                row["game"],
                f"{row['batch']:,}",
                f"{row['leaves_per_step']}",
                *(
                    " and ".join(f"{size:,}" for size in dict.fromkeys(row[field]))
                    for field in ("actions", "num_simulations")
                ),
                " and ".join(f"{time:.3g}" for time in row["microseconds"].values()),
                f"{row['ratio']:.2f}",
            ]
            for row in result_of("search_scaling")["growth"]
        ),
    )


def at_play() -> str:
    """The table of the options of a search at play, in equal time."""
    heads = ("agent", "option", "seconds of a move, without = 1", "simulations", "points", "95%", "won, drawn, lost")
    return table(
        heads,
        (
            [
                *(f"`{row['agent']}`", row["variant"], f"{row['seconds_beside_base']:.2f}"),
                *(
                    f"{row['num_simulations'] or ''}",
                    f"{row['score']:.1%}",
                    "{:.1%} to {:.1%}".format(*row["interval"]),
                ),
                ", ".join(map(str, row["won_drawn_lost"])),
            ]
            for row in rows_of("at_play")
        ),
    )


def leaves() -> str:
    """The table of the strength and speed of several leaves a step."""
    result = result_of("leaves_per_step")
    matches = {(row["agent"], row["leaves_per_step"], row["num_simulations"]): row for row in result["strength"]}
    counts = sorted({row["num_simulations"] for row in result["strength"]})

    def score(agent: str, width: int, count: int) -> str:
        row = matches.get((agent, width, count))
        return "" if row is None else "{:.2f} ({:.2f} to {:.2f})".format(row["score"], *row["interval"])

    heads = ("agent", "leaves a step", "simulations a second", *(f"points, N = {count:,}" for count in counts))
    return table(
        heads,
        (
            [
                row["agent"],
                f"{row['leaves_per_step']}",
                f"{row['simulations_per_second']:,}",
                *(score(row["agent"], row["leaves_per_step"], count) for count in counts),
            ]
            for row in result["speed"]
        ),
    )


def games() -> str:
    """The table of steps per second of random play."""
    rows = rows_of("games")
    batches = sorted({row["batch"] for row in rows})
    rivals = list(dict.fromkeys(side for row in rows for side in row["steps_per_second"] if side != "azjax"))
    heads = ["game", *(f"B={batch:,}" for batch in batches), *rivals]
    lines = []
    for game in dict.fromkeys(row["game"] for row in rows):
        own = [row for row in rows if row["game"] == game]
        last = own[-1]
        cells = [f"{row['steps_per_second']['azjax']:,}" for row in own]
        for rival in rivals:
            rate = last["steps_per_second"].get(rival)
            cells.append("" if rate is None else f"{rate:,} ({_factor(last['ratio'][rival])}x)")
        lines.append([game, *cells])
    return table(heads, lines)


def _factor(ratio: float) -> str:
    """Three digits, or more before the point."""
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.3g}"


_MOST_MOVES = 8  # in a cell


def self_play() -> str:
    """The table of positions per second of the learning loop."""
    rivals = "pgx + mctx", "pgx + mctx, convolutions of Flax"
    heads = ("network", "precision", "devices", "azjax")
    heads += (*(head for rival in rivals for head in (rival, "ratio")), "network alone")
    return table(
        heads,
        (
            [
                f"{row['network']} {row['depth']} x {row['width']}",
                row["precision"],
                str(row["devices"]),
                f"{row['positions_per_second']['azjax']:,.0f}",
                *(
                    cell
                    for rival in rivals
                    for cell in (
                        (f"{row['positions_per_second'][rival]:,.0f}", f"{row['ratio'][rival]:.2f}")
                        if rival in row["ratio"]
                        else ("", "")
                    )
                ),
                f"{row['network_positions_per_second']:,}",
            ]
            for row in rows_of("self_play_speed")
        ),
    )


def network_speed() -> str:
    """The table of what networks compute in a second."""
    kinds = "evaluations", "learned"
    heads = ("network", "precision", "MFLOP", *(head for kind in kinds for head in (f"{kind}/s", "GFLOP/s", "share")))
    return table(
        heads,
        (
            [
                f"{row['network']} {row['width']} x {row['depth']}",
                row["precision"],
                f"{row['flops'] / 1e6:.1f}",
                *(
                    cell
                    for kind in kinds
                    for cell in (
                        f"{row[f'{kind}_per_second']:,}",
                        f"{row[f'{kind}_gflops']:.0f}",
                        f"{row[f'{kind}_share']:.0%}",
                    )
                ),
            ]
            for row in rows_of("network_speed")
        ),
    )


def populations() -> str:
    """The table of iterations per second of populations."""
    heads = ("game", "one run", "population, all members together", "ratio")
    return table(
        heads,
        (
            [row["game"], *(f"{rate:,.1f}" for rate in row["iterations_per_second"].values()), f"{row['ratio']:.2f}"]
            for row in rows_of("population")
        ),
    )


def gpu_search() -> str:
    """The table of simulations per second on a GPU."""
    heads = ("game", "A", "B", "N", "azjax", "mctx", "ratio", "memory", "of mctx")
    lines = []
    for row in result_of("gpu")["parts"]["search"]:
        sizes = [f"{row[field]:,}" for field in ("actions", "batch", "num_simulations")]
        own, rival = (f"{row['simulations_per_second'][side]:,}" for side in ("azjax", "mctx"))
        memory = [f"{row['peak_memory_mb'][side]:,.0f} MB" for side in ("azjax", "mctx")]
        lines.append([row["game"], *sizes, own, rival, f"{row['ratio']:.1f}", *memory])
    return table(heads, lines)


def gpu_games() -> str:
    """The table of steps of random play per second on a GPU."""
    return table(
        ("game", "B", "azjax", "pgx", "ratio"),
        (
            [
                row["game"],
                f"{row['batch']:,}",
                *(f"{row['steps_per_second'][side]:,}" for side in ("azjax", "pgx")),
                f"{row['ratio']['pgx']:.1f}",
            ]
            for row in result_of("gpu")["parts"]["games"]
        ),
    )
