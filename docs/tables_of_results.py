"""The tables of what agents learned and of what runs survive."""

import json
import math
import re
import statistics
from pathlib import Path

import jax
from tables import RESULTS, board_title, result_of, rows_of, table

import azjax
from azjax.evaluation import Record
from azjax.report import elo_interval
from azjax.training.presets import games_with_presets

PACKAGED = Path(__file__).parents[1] / "azjax" / "packaged"


def presets() -> str:
    """The table of the presets."""
    heads = ("`azjax train`", "network", "policy", "simulations", "games", "plies", "optimizer steps", "iterations")
    lines = []
    for arguments, game in games_with_presets().items():
        config = azjax.preset(game)
        first = f"{config.first_simulations} to " if config.first_simulations else ""
        squared = ", squared ReLU" if config.activation == "squared_relu" else ""
        network = f"`{config.network}`, {config.depth} x {config.width}{squared}"
        steps = f"{config.updates_per_iteration} of {config.batch_size:,}"
        lines.append(
            [
                *(f"`{arguments}`", network, f"`{config.policy}`", f"{first}{config.num_simulations}"),
                *(f"{config.num_games:,}", str(config.steps_per_iteration), steps, f"{config.iterations:,}"),
            ]
        )
    return table(heads, lines)


def notation() -> str:
    """How moves and positions of the games are written."""
    games = {
        name: azjax.make(name) for name in ("tictactoe", "chomp", "othello", "breakthrough", "brandub", "santorini")
    }
    games |= {"connect_four --columns 5 --rows 4": azjax.make("connect_four", columns=5, rows=4)}
    games |= {"hex --size 3": azjax.make("hex", size=3)}
    starts = {arguments: game.to_text(game.init(jax.random.key(0))) for arguments, game in games.items()}
    heads = ("GAME", "moves", "the start of the game")
    return table(
        heads, [[f"`{arguments}`", game.move_notation(), f"`{starts[arguments]}`"] for arguments, game in games.items()]
    )


def best_of_sweep() -> str:
    """The table of a preset from before a sweep and the best trial of the sweep."""

    def cell(value: dict[str, float], form: str) -> str:
        mean, low, high = (format(value[name], form) for name in ("mean", "low", "high"))
        return f"{mean} ({low} to {high})"

    heads = ("settings", "simulations until no mistake for the first time", "mistakes on the way", "at the end")
    return table(
        heads,
        (
            [
                row["name"],
                cell(row["share_of_simulations_until_no_mistake"], ".0%"),
                cell(row["mean_mistakes_on_the_way"], ".1f"),
                cell(row["mistakes_at_the_end"], ".0f"),
            ]
            for row in rows_of("best_of_sweep")
        ),
    )


def holding_back() -> str:
    """The table of mistakes of networks with equal training time."""
    heads = ("", "positions", "positions a game", "network", "narrow", "with 400", "narrow, with 400")
    return table(
        heads,
        (
            [
                row["name"],
                f"{row['positions']:,}",
                f"{row['positions_per_game']:.1f}",
                *(f"{row[player][kind]:.1%}" for player in ("network", "search") for kind in ("mistakes", "narrow")),
            ]
            for row in rows_of("holding_back")
        ),
    )


def what_learns_connect_four() -> str:
    """The table of the variants of Connect Four: shares of mistakes, and the error of the value."""
    heads = ("", "iterations", "alone", "narrow", "with 400 simulations", "narrow", "squared error")
    kept = [f"{kind} kept, {player}" for player in ("alone", "search") for kind in ("all", "narrow")]
    return table(
        heads,
        (
            [
                row["variant"],
                f"{row['iterations']:,}",
                *(f"{1 - row[share]:.1%}" for share in kept),
                f"{row['squared error']:.3f}",
            ]
            for row in rows_of("what_learns")
            if row["game"] == "connect_four"
        ),
    )


def connect_four_seconds() -> str:
    """The table of the mistakes of Connect Four's agent by the seconds of a move."""
    heads = ("simulations", "leaves a step", "seconds a move", "all positions", "to ply 12, at most 2 right moves")
    return table(
        (*heads, "begin, hard"),
        (
            [
                f"{row['num_simulations']:,}",
                str(row["leaves_per_step"]),
                f"{row['seconds_per_move']:.3f}",
                f"{row['all']:.2%}",
                f"{row['narrow']:.1%}",
                f"{row['begin, hard']:.1%}",
            ]
            for row in rows_of("connect_four_seconds")
        ),
    )


def exhibition() -> str:
    """The table of agents on the page without a server."""
    heads = ("agent", "files", "a simulation", "in Python", "ratio")
    return table(
        heads,
        (
            [
                row["agent"],
                f"{row['bytes'] / 1e6:.1f} MB",
                *(f"{row[time]:.2f} ms" for time in ("milliseconds", "milliseconds_in_python")),
                f"{row['milliseconds'] / row['milliseconds_in_python']:.0f}",
            ]
            for row in rows_of("exhibition")
        ),
    )


def networks() -> str:
    """The table of what networks learn from exact targets, the last measurement of each."""
    last = {(row["network"], row["optimizer"]): row for row in rows_of("networks")}
    return table(
        ("network", "optimizer", "steps", "mistakes", "signs right"),
        (
            [*names, f"{row['steps']:,}", f"{row['mistakes']:.2%}", f"{row['signs_right']:.1%}"]
            for names, row in last.items()
        ),
    )


def targets() -> str:
    """The table of what searches tell a network, beside the truth."""
    heads = ("simulations", "actions at the root", "mistakes: network", "policy target")
    signs = ("wrong signs: network", "mean of the simulations", "value target")
    names = ("mistakes, network", "mistakes, policy")
    names += tuple(f"wrong signs, {name}" for name in ("network", "mean of the simulations", "value"))
    return table(
        (*heads, *signs),
        (
            [f"{row['num_simulations']}", f"{row['considered']}", *(f"{row[name]:.1%}" for name in names)]
            for row in rows_of("targets")
        ),
    )


def value_targets() -> str:
    """The table of the errors of value targets, in openings of Connect Four."""
    return table(
        ("value target", "squared error of the mean", "of one game"),
        (
            [row["target"], f"{row['systematic']:.3f} ± {row['standard_error']:.3f}", f"{row['of_one_game']:.3f}"]
            for row in rows_of("value_targets")
        ),
    )


def scaling() -> str:
    """The table of mistakes of the last checkpoints, means over the seeds."""
    rows = rows_of("scaling")
    last = max(row["iteration"] for row in rows)
    shares: dict[int, dict[int, list[float]]] = {}
    for row in rows:
        if row["iteration"] == last:
            shares.setdefault(row["width"], {}).setdefault(row["num_simulations"], []).append(row["mistakes"])
    counts = sorted(shares[min(shares)])
    return table(
        ("width", "network alone", *(f"{count} simulations" for count in counts if count)),
        ([f"{width}", *(f"{statistics.mean(of[count]):.1%}" for count in counts)] for width, of in shares.items()),
    )


def first_minutes() -> str:
    """The table of games after the first minutes of training, each below its random moves."""
    heads = ("game", "iterations", "minutes", "player", "score", "95%", "moving first", "moving second", "drawn")
    rows = rows_of("first_minutes")
    games = list(dict.fromkeys(row["game"] for row in rows))
    lines = []
    for row in sorted(rows, key=lambda row: (games.index(row["game"]), row["player"] != "random")):
        low, high = row["interval"]
        sides = [(won + drawn / 2) / (won + drawn + lost) for won, drawn, lost in (row["first"], row["second"])]
        lines.append(
            [
                f"`{row['game']}`",
                f"{row['iterations']:,}" if "iterations" in row else "",
                f"{row['minutes']:.1f}" if "minutes" in row else "",
                row["player"].replace("network + ", ""),
                f"{row['score']:.1%}",
                f"{low:.0%} to {high:.0%}",
                *(f"{side:.0%}" for side in sides),
                str(row["total"][1]),
            ]
        )
    return table(heads, lines)


def survival() -> str:
    """The table of faults that tests repeat."""
    return table(
        ("fault", "tries", "failed", "what must happen", "test"),
        (
            (
                row["fault"],
                f"{row['tries']:,}",
                str(row["failed"]),
                row["outcome"],
                ", ".join(dict.fromkeys(f"`{test.partition('::')[0]}`" for test in row["tests"])),
            )
            for row in rows_of("survival")
        ),
    )


def notebooks() -> str:
    """The table of results of the original notebooks and of the studies that replace them."""
    uct, connect2, santorini, brandub = map(result_of, ("tictactoe_uct", "connect2", "santorini_small", "brandub_game"))
    before = uct["settings"]["notebook"]
    (searched,) = [row for row in uct["rows"] if row["simulations"] == before["simulations"]]
    most = uct["rows"][-1]
    lost = [row["against"]["optimal"]["won_drawn_lost"] for row in (searched, most)]
    preset = connect2["agents"]["preset"]
    random, optimal = (santorini["notebook"]["improvements"][rival][-1] for rival in ("random", "optimal"))
    (best,) = [row for row in santorini["rows"] if row["player"] == "preset, network"]
    matches = result_of("brandub")["rows"]
    (match,) = [
        row
        for row in matches
        if (row["iteration"], row["player"], row["rival"])
        == (matches[-1]["iteration"], "network + 100 simulations", "uct:1000")
    ]
    return table(
        ("", "notebook", "azjax", "study"),
        [
            (
                "tic-tac-toe: simulations a second, one position and 1,000 games side by side",
                f"{before['simulations_per_second']:,}",
                f"{searched['one_position']:,.0f} and {searched['batch_of_1000']:,.0f}",
                "`tictactoe_uct.py`",
            ),
            (
                f"games lost of {sum(lost[0]):,} against best play, with {searched['simulations']:,} and "
                f"{most['simulations']:,} simulations",
                "not counted",
                f"{lost[0][2]} and {lost[1][2]}",
                "`tictactoe_uct.py`",
            ),
            (
                "Santorini 2x2: points a game against random and optimal play",
                f"{random:.4f} and {optimal:.4f}",
                f"{best['against_random']:.4f} and {best['against_optimal']:.4f}",
                "`santorini_small.py`",
            ),
            (
                "Connect-2: training; mistakes on all 23 positions",
                f"{connect2['settings']['notebook_minutes']:.0f} minutes; not counted",
                f"{preset['seconds']:.1f} seconds; {preset['mistakes']:.0f}",
                "`connect2.py`",
            ),
            (
                "Brandub: simulations a second, one position; the notebook's with a dummy for a network",
                "106 to 137",
                f"{brandub['simulations_per_second']:,}",
                "`brandub.py`",
            ),
            (
                "Brandub: points a game of the trained agent against UCT with 1,000 rollouts",
                "not trained",
                f"{match['score']:.1%}",
                "`against_uct.py`",
            ),
        ],
    )


def ratings() -> str:
    """The tables of the ratings of all pools."""
    parts = []
    for row in rows_of("ratings"):
        lines = (
            (
                f"`{player}`",
                f"{elo:+,.0f}",
                elo_interval(-math.inf if low is None else low, math.inf if high is None else high),
                f"{games:,}",
            )
            for player, elo, (low, high), games in zip(
                row["players"], row["elo"], row["intervals"], row["games"], strict=True
            )
        )
        parts.append(f"**{row['agent']}**\n\n{table(('player', 'Elo', '95%', 'games'), lines)}")
    return "\n\n".join(parts)


def against_santorini_ai() -> str:
    """The games of `santorini_5x5` against santorini-ai, by the seconds of the agent for a move."""
    path = RESULTS / "pools" / "santorini_5x5_against_santorini_ai.jsonl"
    rewards: dict[tuple[float, str], tuple[list[float], list[float]]] = {}
    for game in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
        (seat,) = (seat for seat, name in enumerate(game["players"]) if name.startswith("santorini_5x5"))
        search, seconds = game["players"][seat].removesuffix(" s").split(", ")
        _, *options = search.split(" + ")
        if game["end"] is not None:
            raise ValueError(f"{path} has a game that was forfeited")
        player = (
            float(seconds),
            " and ".join({"solver": "proofs", "reused tree": "kept tree"}[each] for each in options),
        )
        rewards.setdefault(player, ([], []))[seat].append(game["rewards"][seat])
    lines = []
    for seconds, option in sorted(rewards):
        first, second = map(Record.of, rewards[seconds, option])
        whole = first + second
        scores = (f"{record.score:.0%}" for record in (whole, first, second))
        low, high = whole.interval
        score, *by_side = scores
        lines.append([f"{seconds:g}", option, str(whole.games), score, f"{low:.0%} to {high:.0%}", *by_side])
    return table(("seconds a move", "option", "games", "score", "95%", "moving first", "moving second"), lines)


def where_games_begin() -> str:
    """The mistakes on whole boards by where games of self-play begin: the mean, the best and the worst seed."""
    rows = rows_of("where_games_begin")
    boards, starts = (list(dict.fromkeys(row[name] for row in rows)) for name in ("board", "starts"))
    lines = []
    for start in starts:
        line = [start]
        for board in boards:
            own = [row for row in rows if (row["board"], row["starts"]) == (board, start)]
            shares = [row["mistakes"] / row["positions"] for row in own]
            line.append(f"{statistics.mean(shares):.2%} ({min(shares):.2%} to {max(shares):.2%})")
        lines.append(line)
    return table(("games begin at", *map(board_title, boards)), lines)


def cards() -> str:
    """The cards of the packaged agents, one after the other."""
    texts = (path.read_text(encoding="utf-8") for path in sorted(PACKAGED.glob("*.md")))
    return "\n\n".join(re.sub(r"^#", "###", text, flags=re.M) for text in texts)
