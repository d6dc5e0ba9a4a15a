"""A solved game as a table."""

from collections.abc import Sequence

import jax
from rich.table import Table

from azjax.evaluation import Solution
from azjax.games.game import Game
from azjax.games.protocols import action_to_text


def solution_table(solution: Solution) -> Table:
    """Counts, the value of the start and its best moves; without what is not known of a large game."""
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
    return _table(
        f"{game.name}: solved",
        [
            ("value for the first player", f"{facts.value_first_player:+g}" if facts.value_first_player else "0"),
            ("best first moves (action)", best),
            ("longest game", f"{facts.longest_game} plies"),
            *((label, f"{count:,}") for label, count in counts if count is not None),
        ],
    )


def perft_table(game: Game, counts: Sequence[int]) -> Table:
    """Sequences of legal moves by length."""
    return _table(f"{game.name}: perft", [(str(depth), f"{count:,}") for depth, count in enumerate(counts, start=1)])


def _table(title: str, rows: Sequence[tuple[str, str]]) -> Table:
    table = Table(title=title, title_justify="left", show_header=False, min_width=len(title) + 2)
    table.add_column()
    table.add_column(justify="right")
    for row in rows:
        table.add_row(*row)
    return table
