"""Results as tables for terminals."""

import collections
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich import box
from rich.table import Table

from azjax.core.errors import InputError
from azjax.evaluation import MatchResult, Proof, Ratings, Solution
from azjax.evaluation.retrograde import EndingSolution
from azjax.games.game import AnyGame, State
from azjax.games.protocols import action_to_text, player_names
from azjax.report.intervals import Interval, elo_interval
from azjax.report.plain_table import PlainTable
from azjax.report.strength import Strength
from azjax.runs.metrics import METRICS, read_rows
from azjax.training import Config

_POPULATION_METRICS = ("mistakes", "ladder_rating", "loss")


def strength_table(game: AnyGame, strengths: Sequence[Strength]) -> Table:
    """One column per player and one row per measurement."""
    table = _table(f"{game.name}: strength", [])
    table.add_column("", no_wrap=True)
    for strength in strengths:
        table.add_column(strength.player, justify="right")
    columns = [_strength_rows(strength) for strength in strengths]
    for label in columns[0]:
        table.add_row(label, *[column[label] for column in columns])
    return table


def _strength_rows(strength: Strength) -> dict[str, str]:
    rows = strength.exact_rows()
    for match in strength.matches:
        low, high = match.interval
        rows[f"{match.games:,} games against {match.second}: won"] = f"{match.wins:,}"
        rows[f"  drawn, against {match.second}"] = f"{match.draws:,}"
        rows[f"  lost, against {match.second}"] = f"{match.losses:,}"
        rows[f"  score against {match.second}, 95%"] = f"{low:.4f} to {high:.4f}"
    return rows


def by_ply_table(game: AnyGame, strengths: Sequence[Strength]) -> Table:
    """One column per player and one row per ply: the positions in which the player makes a mistake.

    Raises:
      InputError: the game was not solved.
    """
    names = [strength.player for strength in strengths]
    table = _table(f"{game.name}: mistakes by ply", ["ply", "positions", *names])
    counts = [strength.exact.mistakes for strength in strengths if strength.exact is not None]
    if not counts:
        raise InputError(f"mistakes by ply need the values of all positions, and {game.name} was not solved")
    for ply, positions in enumerate(counts[0].states_by_ply):
        if positions:
            cells = [f"{count.count_by_ply[ply]:,.1f} ({count.count_by_ply[ply] / positions:.2%})" for count in counts]
            table.add_row(str(ply), f"{positions:,}", *cells)
    return table


def match_table(game: AnyGame, matches: Sequence[MatchResult]) -> Table:
    """The results of each match from the view of its first player, in total and by who moves first."""
    table = _table(f"{game.name}: matches", [])
    table.add_column("")
    with_forfeits = any(match.num_forfeits for match in matches)
    for name in ("score", "95%", "won", "drawn", "lost", *["forfeited"] * with_forfeits):
        table.add_column(name, justify="right", no_wrap=True)
    for match in matches:
        forfeits = [forfeit is not None for forfeit in match.forfeits]
        records = [
            (f"{match.first} against {match.second}", match.total, sum(forfeits)),
            ("  moving first", match.moving_first, sum(forfeits[::2])),
            ("  moving second", match.moving_second, sum(forfeits[1::2])),
        ]
        if 0 < sum(forfeits) < match.games:
            records.append(("  not forfeited", match.played_out, 0))
        for label, record, forfeited in records:
            low, high = record.interval
            counts = [f"{count:,}" for count in (record.wins, record.draws, record.losses, forfeited)]
            table.add_row(
                label, f"{record.score:.1%}", f"{100 * low:.1f} to {100 * high:.1f}", *counts[: 3 + with_forfeits]
            )
        low, high = np.quantile(match.plies, (0.05, 0.95))
        table.add_row(f"  plies {match.mean_length:.1f} ({low:.0f} to {high:.0f})")
        table.add_row(f"  different games {match.num_different:,}")
        for reason, count in collections.Counter(filter(None, match.forfeits)).most_common():
            table.add_row(f"  forfeited, {count:,} times: {reason}")
        for name, seconds in zip((match.first, match.second), match.move_seconds, strict=True):
            if seconds:
                table.add_row(f"  {name}: {np.mean(seconds):.2g} s a move, at most {max(seconds):.2g} s")
        if match.accepted is not None:
            table.add_row(f"  decided: {match.accepted:+g} Elo accepted")
        table.add_section()
    return table


def ratings_table(game: AnyGame, ratings: Ratings) -> Table:
    """One row per player, the strongest first."""
    table = _table(f"{game.name}: ratings", ["", "Elo", "95%", "games"])
    rows = zip(ratings.players, ratings.elo, ratings.intervals, ratings.games, strict=True)
    for player, elo, (low, high), games in rows:
        table.add_row(player, f"{elo:+z,.0f}", elo_interval(low, high), f"{games:,}")
    table.add_section()
    table.add_row("moving first", f"{ratings.first_move_advantage:+z.0f}")
    table.add_row("draws of equal players", f"{ratings.draw_rate:.0%}")
    return table


def population_table(configs: Sequence[Config], folders: Sequence[Path]) -> Table:
    """The latest metrics of a population's members: means over seeds, by the hyperparameters that vary.

    Args:
      configs: of the members.
      folders: the run folders of the members.
    """
    hypers = [dataclasses.asdict(config.hyper) for config in configs]
    varying = [name for name, value in hypers[0].items() if any(hyper[name] != value for hyper in hypers)]
    latest = [_latest_metrics(folder) for folder in folders]
    metrics = [name for name in _POPULATION_METRICS if all(name in row for row in latest)]
    table = _table("population", ["members", *varying, "seeds", *metrics])
    points: dict[tuple[Any, ...], list[int]] = {}
    for member, hyper in enumerate(hypers):
        points.setdefault(tuple(hyper[name] for name in varying), []).append(member)
    for point, members in points.items():
        names = folders[members[0]].name + (f" to {folders[members[-1]].name}" if len(members) > 1 else "")
        means = (Interval.of([latest[member][name] for member in members]) for name in metrics)
        table.add_row(names, *(f"{value:g}" for value in point), str(len(members)), *map(str, means))
    table.caption = "means over seeds, with 95% intervals" if len(points) < len(configs) else None
    return table


def _latest_metrics(folder: Path) -> dict[str, Any]:
    """The last measurement of each metric of a run."""
    latest: dict[str, Any] = {}
    for row in read_rows(folder / METRICS):
        latest |= {name: value for name, value in row.items() if value is not None}
    return latest


def solution_table(solution: Solution) -> Table:
    """Counts of positions and games, the value of the start and its best moves. Unknown counts are omitted."""
    game, facts = solution.game, solution.summary()
    start = game.init(jax.random.key(0))
    best = ", ".join(f"{action_to_text(game, start, action)} ({action})" for action in facts.best_first_actions)
    counts = (
        ("reachable positions", facts.reachable),
        ("  of them terminal", facts.terminal),
        ("unfinished positions", facts.won + facts.drawn + facts.lost),
        ("  won for the side to move", facts.won),
        ("  drawn", facts.drawn),
        ("  lost", facts.lost),
        ("up to symmetry", facts.reachable_up_to_symmetry),
        ("  of them terminal", facts.terminal_up_to_symmetry),
        ("games", facts.games),
        ("  first player wins", facts.games_first_wins),
        ("  second player wins", facts.games_second_wins),
        ("  drawn", facts.games_drawn),
    )
    value = facts.value_first_player
    rows = [
        ("value for the first player", f"{value:+g}" if value else "0"),
        ("best first moves (action)", best),
        ("longest game", f"{facts.longest_game} plies"),
        *((label, f"{count:,}") for label, count in counts if count is not None),
    ]
    return _two_columns(f"{game.name}: solved", rows)


def endings_table(solution: EndingSolution) -> Table:
    """Counts of the positions, and the longest wins."""
    game = solution.game
    table = _table(f"{game.name}: solved endings", ("", "to move", "won", "drawn", "lost", "longest win, plies"))
    for part in solution.summary():
        side = player_names(game)[part.player].removeprefix("the ")
        counts = (part.won, part.drawn, part.lost, part.longest_win)
        table.add_row(part.name, side, *(f"{count:,}" for count in counts))
    return table


def proof_table(game: AnyGame, state: State, proof: Proof) -> Table:
    """What was proven of a position."""
    outcomes = {1: "a win", 0: "a draw", -1: "a loss"}
    if proof.value is not None:
        value = f"{outcomes[int(proof.value)]} for the side to move"
    elif proof.at_most < 1 or proof.at_least > -1:
        value = f"between {outcomes[int(proof.at_least)]} and {outcomes[int(proof.at_most)]} for the side to move"
    else:
        value = "not found: --max-states sets another limit"
    rows = [("value", value)]
    if proof.best_action is not None:
        rows.append(("by", f"{action_to_text(game, state, proof.best_action)} ({proof.best_action})"))
    rows += [("positions", f"{proof.positions:,}"), ("seconds", f"{proof.seconds:.1f}")]
    return _two_columns(f"{game.name}: proof", rows)


def perft_table(game: AnyGame, counts: Sequence[int]) -> Table:
    """The number of legal move sequences by length."""
    rows = [(str(depth), f"{count:,}") for depth, count in enumerate(counts, start=1)]
    return _two_columns(f"{game.name}: perft", rows)


def _table(title: str, names: Sequence[str]) -> Table:
    """An empty table with columns of labels or numbers."""
    table = PlainTable(title, box=box.SIMPLE_HEAD, padding=(0, 1))
    for name in names:
        table.add_column(name, justify="left" if name in ("", "members") else "right")
    return table


def _two_columns(title: str, rows: Sequence[tuple[str, str]]) -> Table:
    table = PlainTable(title, show_header=False, min_width=len(title) + 2)
    table.add_column()
    table.add_column(justify="right")
    for row in rows:
        table.add_row(*row)
    return table
