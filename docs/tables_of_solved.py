"""The tables of solved games."""

from tables import board_title, result_of, rows_of, table

_MOST_MOVES = 8  # in a cell
_TOLD = ("connect_four_5x5", "connect_four_6x4", "breakthrough_3x6", "hex_4x4")  # in the text on solved boards


def solved() -> str:
    """The table of the boards that are solved."""
    heads = (
        *("board", "positions", "value", "best first moves", "won", "drawn", "lost", "longest win"),
        *("seconds", "memory"),
    )
    values = {1: "first player wins", 0: "draw", -1: "second player wins"}
    lines = []
    for name, row in result_of("solved")["rows"].items():
        known = {"reachable", "value", "num_best_first_moves"} & row.get("published", {}).keys()
        best = row["best_first_moves"]
        moves = ", ".join(best) if len(best) <= _MOST_MOVES else f"{len(best)} moves"
        counts = [f"{row['reachable']:,}", values[row["value"]], moves]
        for index, fact in enumerate(("reachable", "value", "num_best_first_moves")):
            counts[index] += " *" * (fact in known)
        unfinished = row["reachable"] - row["terminal"]
        shares = [f"{row[outcome] / unfinished:.1%}" for outcome in ("won", "drawn", "lost")]
        longest = str(row.get("longest_win", ""))
        cost = f"{row['seconds']:,.0f}", f"{row['peak_megabytes'] / 1000:.1f} GB"
        lines.append([board_title(name), *counts, *shares, longest, *cost])
    return table(heads, lines)


def solved_pictures() -> str:
    """Where the longest wins of the boards begin, without those that the page tells of."""
    cells = [
        f"![{board_title(name)}](pictures/solved_{name}.svg)<br>{board_title(name)}: {row['longest_win']} plies"
        for name, row in result_of("solved")["rows"].items()
        if name not in _TOLD and "longest_win" in row
    ]
    lines = [cells[start : start + 4] for start in range(0, len(cells), 4)]
    return table(("", "", "", ""), [line + [""] * (4 - len(line)) for line in lines])


def solved_lines() -> str:
    """The moves of the longest wins."""
    lines = [
        (board_title(name), f"`{row['longest_win_in']}`", row["longest_win_moves"])
        for name, row in result_of("solved")["rows"].items()
        if "longest_win" in row
    ]
    return table(("board", "from", "moves"), lines)


def table_files() -> str:
    """The table of the files of solved boards."""
    heads = ("board", "unfinished positions", "file", "bits each", "bits, mapped", "unpacked in", "read in", "memory")
    lines = []
    for name, row in result_of("table_files")["rows"].items():
        bits, mapped = (row[size] * 8e6 / row["unfinished"] for size in ("megabytes", "mapped_megabytes"))
        seconds = (f"{row[key]:.1f} s" for key in ("unpacking_seconds", "reading_seconds"))
        sizes = f"{row['megabytes']:.0f} MB", f"{bits:.1f}", f"{mapped:.1f}"
        lines.append([board_title(name), f"{row['unfinished']:,}", *sizes, *seconds, f"{row['memory_megabytes']:,} MB"])
    return table(heads, lines)


def brandub_endings() -> str:
    """The table of the solved endings."""
    heads = ("pieces", "to move", "positions", "won", "drawn", "lost", "longest win")
    lines = [
        [
            each["name"],
            ("attackers", "defenders")[each["player"]],
            *(f"{each[key]:,}" for key in ("positions", "won", "drawn", "lost")),
            str(each["longest_win"]),
        ]
        for each in result_of("brandub_endings")["endings"]
    ]
    return table(heads, lines)


def brandub_longest_wins() -> str:
    """Where the longest wins of the endings begin."""
    most = result_of("brandub_endings")["endings"]
    rows = [row for row in most if row["longest_win"] > 10]
    lines = [
        [("attackers", "defenders")[row["player"]], f"{row['longest_win']} plies", f"`{row['longest_win_in']}`"]
        for row in sorted(rows, key=lambda row: -row["longest_win"])
    ]
    return table(("won by", "in", "from"), lines)


def brandub_endings_agent() -> str:
    """How many moves of the packaged agent keep the value of endings."""
    heads = (
        "positions",
        "moves by",
        "decisions",
        "right",
        "attackers to win",
        "defenders to win",
        "signs of the value right",
    )
    names = {"own_games": "of its own games", "even_draws": "sampled uniformly"}
    lines = []
    for name, players in result_of("brandub_endings")["agent"].items():
        for player, row in players.items():
            sides = [row["by_side"][f"won, {side} to move"] for side in ("attackers", "defenders")]
            shares = [f"{side['kept']:,} of {side['positions']:,}" for side in sides]
            right = f"{row['kept'] / row['positions']:.2%}"
            signs = f"{row['right_signs'] / row['decided']:.1%}"
            lines.append([names[name], player, f"{row['positions']:,}", right, *shares, signs])
    return table(heads, lines)


def small_boards() -> str:
    """The mistakes of networks on whole boards: of each run at its end, and when there were 0.5% or less."""
    lines = []
    rows = rows_of("small_boards")
    for board, seed in dict.fromkeys((row["board"], row["seed"]) for row in rows):
        own = [row for row in rows if (row["board"], row["seed"]) == (board, seed)]
        minutes = [row["seconds"] / 60 for row in own if row["mistakes"] <= 0.005 * row["positions"]]
        last = own[-1]
        lines.append(
            [
                board_title(board),
                f"{last['positions']:,}",
                str(seed),
                f"{last['seconds'] / 60:.1f}",
                f"{last['mistakes']:,} ({last['mistakes'] / last['positions']:.2%})",
                f"{min(minutes):.1f}" if minutes else "not reached",
            ]
        )
    return table(("board", "positions", "seed", "minutes", "mistakes", "minutes to 0.5%"), lines)


def proofs() -> str:
    """The table of proofs of mates."""
    heads = ("game", "mate in", "positions", "proven", "looked at, median", "at most", "median seconds")
    return table(
        heads,
        (
            [
                row["game"],
                str(row["moves"]),
                str(row["mates"]),
                str(row["proven"]),
                f"{row['positions']['50%']:,}",
                f"{row['positions']['100%']:,}",
                f"{row['median_seconds']:.2f}",
            ]
            for row in result_of("proofs")["mates"]
        ),
    )
