"""How strong players are: exactly where their game can be solved, and in matches against fixed opponents."""

import dataclasses
from collections.abc import Callable, Sequence

import chex
import jax
from rich import box
from rich.table import Table

from azjax.core.errors import InputError
from azjax.evaluation import (
    ExactReport,
    MatchResult,
    Player,
    Solution,
    exact_report,
    optimal_player,
    play_match,
    random_player,
    search_player,
    solve,
)
from azjax.games.game import Game
from azjax.search import evaluators

_MAX_STATES = 200_000  # beyond it an exact report takes longer than a user waits
_SEARCH_OPPONENT = 100  # simulations, where no optimal one can be had


@dataclasses.dataclass(frozen=True)
class Strength:
    """What was measured of one player; `exact` is None where the game is too large to solve."""

    player: str
    exact: ExactReport | None
    matches: tuple[MatchResult, ...]


def try_solve(game: Game) -> Solution | None:
    """The game's solution, or None where it has too many positions or repeats them."""
    try:
        return solve(game, max_states=_MAX_STATES)
    except ValueError:
        return None


def measure(
    game: Game,
    players: Sequence[Player],
    *,
    num_games: int,
    key: chex.PRNGKey,
    solution: Solution | None = None,
    epsilons: Sequence[float] = (),
    progress: Callable[[str], None] = lambda what: None,
) -> list[Strength]:
    """Measures each player against the same opponents.

    Args:
      game: the game of all of them.
      players: whom to measure.
      num_games: of each match, even.
      key: consumed by the players.
      solution: of the game; None to solve it here where that is soon done.
      epsilons: of opponents who play best but for so many random moves, where the game is solved.
      progress: told what is measured next.
    """
    if solution is None:
        progress("solving the game")
        solution = try_solve(game)
    opponents = [random_player(game)]
    if solution is not None:
        opponents.append(optimal_player(solution))
    else:
        rollouts = f"rollout:{_SEARCH_OPPONENT}"
        evaluator = evaluators.rollout(game)
        opponents.append(search_player(game, evaluator, num_simulations=_SEARCH_OPPONENT, name=rollouts))
    found = []
    for number, player in enumerate(players):
        exact_key, *match_keys = jax.random.split(jax.random.fold_in(key, number), 1 + len(opponents))

        def report_progress(what: str, done: int, total: int | None) -> None:
            progress(f"{player.name}: {what}, {done:,} of {total:,} positions")

        exact = (
            None
            if solution is None
            else exact_report(player, solution, exact_key, epsilons=epsilons, progress=report_progress)
        )
        matches = []
        for opponent, match_key in zip(opponents, match_keys, strict=True):
            progress(f"{player.name}: {num_games:,} games against {opponent.name}")
            matches.append(play_match(game, player, opponent, num_games, match_key, batch_size=1024))
        found.append(Strength(player.name, exact, tuple(matches)))
    return found


def strength_table(game: Game, strengths: Sequence[Strength]) -> Table:
    """A column a player, a row a measure."""
    table = Table(title=f"{game.name}: strength", title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1))
    table.add_column("", no_wrap=True)
    for strength in strengths:
        table.add_column(strength.player, justify="right")
    columns = [_rows(strength) for strength in strengths]
    for label in columns[0]:
        table.add_row(label, *[column[label] for column in columns])
    return table


def by_ply_table(game: Game, strengths: Sequence[Strength]) -> Table:
    """A column a player, a row a ply: of its positions, those in which the player makes a mistake.

    Raises:
      ValueError: the game is too large to solve.
    """
    table = Table(title=f"{game.name}: mistakes by ply", title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1))
    for heading in ("ply", "positions", *(strength.player for strength in strengths)):
        table.add_column(heading, justify="right")
    counts = [strength.exact.mistakes for strength in strengths if strength.exact is not None]
    if not counts:
        raise InputError(f"mistakes by ply need the values of all positions, and {game.name} was not solved")
    for ply, positions in enumerate(counts[0].states_by_ply):
        if not positions:  # where all games are over
            continue
        shown = [f"{count.count_by_ply[ply]:,.1f} ({count.count_by_ply[ply] / positions:.2%})" for count in counts]
        table.add_row(str(ply), f"{positions:,}", *shown)
    return table


def _rows(strength: Strength) -> dict[str, str]:
    rows: dict[str, str] = {}
    if strength.exact is not None:
        # The player's name heads the column, and the game the table.
        rows.update(row for row in strength.exact.rows() if row[0] not in ("player", "game"))
    for match in strength.matches:
        low, high = match.interval
        rows[f"{match.games:,} games against {match.second}: won"] = f"{match.wins:,}"
        rows[f"  drawn, against {match.second}"] = f"{match.draws:,}"
        rows[f"  lost, against {match.second}"] = f"{match.losses:,}"
        rows[f"  score against {match.second}, 95%"] = f"{low:.4f} to {high:.4f}"
    return rows
