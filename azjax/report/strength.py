"""How strong players are: exactly if the game can be solved, and in matches against fixed opponents."""

import dataclasses
import functools
from collections.abc import Callable, Sequence

import jax
from jaxtyping import PRNGKeyArray

from azjax.core.errors import InputError
from azjax.evaluation import (
    ExactReport,
    MatchResult,
    Player,
    Solution,
    exact_report,
    optimal_player,
    play_match,
    solve,
)
from azjax.evaluation.standard_players import named_player
from azjax.games.game import AnyGame

_MAX_STATES = 200_000  # of games that are solved by default
_OPPONENT = "uct:100"  # in games that are not solved
_GAMES_IF_SOLVED, _GAMES = 10_000, 100  # of each match by default; searches of a game that is not solved take longer


@dataclasses.dataclass(frozen=True)
class Strength:
    """The measurements of one player; `exact` is None if the game was not solved."""

    player: str
    exact: ExactReport | None
    matches: tuple[MatchResult, ...]

    def exact_rows(self) -> dict[str, str]:
        """The rows of the exact report without the names of player and game; empty without a report."""
        rows = [] if self.exact is None else self.exact.rows()
        return {label: text for label, text in rows if label not in ("player", "game")}


def try_solve(game: AnyGame) -> Solution | None:
    """The solution of a small game whose result is the reward of its last move; None of other games."""
    try:
        solution = solve(game, max_states=_MAX_STATES)
        solution.check_results()
    except InputError:
        return None
    return solution


def measure(
    game: AnyGame,
    players: Sequence[Player],
    *,
    num_games: int | None = None,
    key: PRNGKeyArray,
    solution: Solution | None = None,
    epsilons: Sequence[float] = (),
    progress: Callable[[str], None] = lambda task: None,
) -> list[Strength]:
    """Measures each player against the same opponents.

    Args:
      game: the game.
      players: the players to measure.
      num_games: of each match; an even number. None for 10,000 if the game is solved, else 100.
      key: consumed by the players.
      solution: of the game; None to solve small games here.
      epsilons: for each, an exact result against an opponent that plays a random move with this probability and an
        optimal one otherwise.
      progress: called with a description of each task before it starts.
    """
    if solution is None:
        progress("solving the game")
        solution = try_solve(game)
    best = named_player(_OPPONENT, game) if solution is None else optimal_player(solution)
    opponents = [named_player("random", game), best]
    if num_games is None:
        num_games = _GAMES if solution is None else _GAMES_IF_SOLVED

    def report(player: str, task: str, done: int, total: int | None) -> None:
        of_total = "" if total is None else f" of {total:,}"
        progress(f"{player}: {task}, {done:,}{of_total} positions")

    strengths = []
    for number, player in enumerate(players):
        exact_key, *match_keys = jax.random.split(jax.random.fold_in(key, number), 1 + len(opponents))
        exact = None
        if solution is not None:
            report_player = functools.partial(report, player.name)
            exact = exact_report(player, solution, exact_key, epsilons=epsilons, progress=report_player)
        matches = []
        for opponent, match_key in zip(opponents, match_keys, strict=True):
            progress(f"{player.name}: {num_games:,} games against {opponent.name}")
            matches.append(play_match(game, player, opponent, num_games, match_key, batch_size=1024))
        strengths.append(Strength(player.name, exact, tuple(matches)))
    return strengths
