"""What matches gave: tables for terminals, and ratings as a picture."""

import collections
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich import box
from rich.table import Table

from azjax.evaluation import MatchResult, Ratings
from azjax.games.game import Game
from azjax.report.learning_curve import figure_of_size


def match_table(game: Game, matches: Sequence[MatchResult]) -> Table:
    """Each match as its first player sees it, and its halves."""
    table = Table(title=f"{game.name}: matches", title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1))
    table.add_column("")
    for head in ("score", "95%", "won", "drawn", "lost"):
        table.add_column(head, justify="right", no_wrap=True)
    for match in matches:
        rows = {
            f"{match.first} against {match.second}": match.total,
            "  moving first": match.moving_first,
            "  moving second": match.moving_second,
        }
        for what, record in rows.items():
            low, high = record.interval
            counts = (f"{count:,}" for count in (record.wins, record.draws, record.losses))
            table.add_row(what, f"{record.score:.1%}", f"{100 * low:.1f} to {100 * high:.1f}", *counts)
        low, high = np.quantile(match.plies, (0.05, 0.95))
        # Few different games mean less than their number: two players may have no chance in them.
        different = len(set(zip(match.actions, np.arange(match.games) % 2, strict=True)))
        table.add_row(f"  plies {match.mean_length:.1f} ({low:.0f} to {high:.0f})")
        table.add_row(f"  different games {different:,}")
        for reason, count in collections.Counter(filter(None, match.forfeits)).most_common():
            table.add_row(f"  broken off, {count:,} times: {reason}")
        if match.accepted is not None:
            table.add_row(f"  stopped, sure of {match.accepted:+g} Elo")
        table.add_section()
    return table


def ratings_table(game: Game, ratings: Ratings) -> Table:
    """A row for each player, the strongest first."""
    table = Table(title=f"{game.name}: ratings", title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1))
    table.add_column("")
    for head in ("Elo", "95%", "games"):
        table.add_column(head, justify="right")
    rows = zip(ratings.players, ratings.elo, ratings.intervals, ratings.games, strict=True)
    for player, elo, (low, high), games in rows:
        table.add_row(player, f"{elo:+.0f}", f"{low:+.0f} to {high:+.0f}", f"{games:,}")
    table.add_section()
    table.add_row("moving first", f"{ratings.first_move_advantage:+.0f}")
    table.add_row("draws of equal players", f"{ratings.draw_rate:.0%}")
    return table


def draw_ratings(game: Game, ratings: Ratings, path: str | Path) -> None:
    """A picture of the ratings with their intervals.

    Raises:
      ValueError: Matplotlib is not installed.
    """
    figure = figure_of_size(7, 1.2 + 0.32 * len(ratings.players))
    panel = figure.subplots()
    places = range(len(ratings.players), 0, -1)
    ends = [
        [elo - low for elo, (low, _) in zip(ratings.elo, ratings.intervals, strict=True)],
        [high - elo for elo, (_, high) in zip(ratings.elo, ratings.intervals, strict=True)],
    ]
    panel.errorbar(ratings.elo, places, xerr=ends, fmt="o", color="#2a6fbb", ms=4)
    panel.set_yticks(places, ratings.players)
    panel.set_xlabel("Elo, with 95% intervals")
    panel.set_title(game.name, fontsize=10)
    panel.spines[["top", "right"]].set_visible(False)
    panel.grid(axis="x", color="#e6e6e6", linewidth=0.8)
    panel.set_axisbelow(True)
    figure.savefig(path, dpi=150)
