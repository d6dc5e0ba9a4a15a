"""Does the Connect Four agent keep the first player's win against best play?

The agent moves first. Its opponent is bitbully (https://pypi.org/project/bitbully), an exact solver, which draws among
the moves that lose as late as possible, and among those that win as soon as possible once the agent has given its win
away. The agent plays the best move of its search; so games differ by the opponent's draws alone.

    pip install 'azjax[interop]'
    python experiments/connect_four_best_play.py [--run RUN]

Measures the packaged agent, or the newest checkpoint of a run, with several numbers of simulations. Writes
experiments/results/connect_four_best_play.json.
"""

from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from connect_four import play_first, players, results_of
from connect_four_positions import board, exact_solver
from rich.console import Console
from rich.table import Table
from study import RESULTS, run_study, write_results

import azjax
from azjax.evaluation import Player, network_player, search_player
from azjax.evaluation.players import act
from azjax.games.game import Game
from azjax.packaged import load_agent
from azjax.runs import load_run, load_variables
from azjax.runs.throughput import median_seconds

TIMED = 5


class Played(NamedTuple):
    """Games of the agent, which moved first.

    Attributes:
      points: of the agent in each game: 1, 0 or -1.
      given_away: the ply, from 0, of the move that gave the win away; -1 in games without such a move.
    """

    points: np.ndarray
    given_away: np.ndarray


def main(
    run: Path | None = None,
    num_simulations: tuple[int, ...] = (0, 100, 400, 1600, 6400),
    games: int = 200,
    seed: int = 0,
    output: Path = RESULTS / "connect_four_best_play.json",
) -> None:
    """Plays, prints and writes.

    Args:
      run: a run folder; the packaged agent by default.
      num_simulations: simulations of the searches, each measured in turn; 0 for the network alone.
      games: games with each.
      seed: of the opponent's draws.
      output: file of the results.
    """
    console, solver = Console(), exact_solver()
    game = azjax.make("connect_four")
    rows = []
    for simulations in num_simulations:
        player = make_player(game, run, simulations)
        seconds = seconds_per_move(game, player)
        played = play(game, player, solver, games, seed)
        row = {"num_simulations": simulations, "seconds_per_move": round(seconds, 4), **counts(played)}
        rows.append(row)
        console.print(row)
    console.print(table(rows))
    settings = {"games": games, "seed": seed, "agent": "packaged" if run is None else run.name}
    write_results(output, "connect_four_best_play.py", settings, rows=rows)
    console.print(f"written to {output}", soft_wrap=True)


def make_player(game: Game, run: Path | None, num_simulations: int) -> Player:
    """The agent with this many simulations."""
    if run is not None:
        alone, searching = players(game, load_run(run)[1], load_variables(run)[1], max(num_simulations, 1)).values()
        return searching if num_simulations else alone
    agent = load_agent("connect_four")
    if not num_simulations:
        return network_player(game, agent.network, agent.variables)
    return search_player(
        game, agent.evaluator, agent.variables, num_simulations=num_simulations, c_puct=agent.hyper.c_puct
    )


def seconds_per_move(game: Game, player: Player) -> float:
    """For the first move of one game, the median of some."""
    states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), 1))
    return median_seconds(lambda: act(player, jax.random.key(0), states)[0], TIMED)


def play(game: Game, player: Player, solver: Any, games: int, seed: int) -> Played:
    """Plays games side by side, in which the player moves first."""
    rng, given_away = np.random.default_rng(seed), np.full(games, -1)

    def reply(row: int, moves: str) -> int:
        column, wins = best_reply(solver, moves, rng)
        if not wins and given_away[row] < 0:
            given_away[row] = len(moves) - 1
        return column

    return Played(play_first(game, player, reply, games), given_away)


def best_reply(solver: Any, moves: str, rng: np.random.Generator) -> tuple[int, bool]:
    """One of the best columns after `moves`, and whether the other player wins nevertheless."""
    scores = solver.score_all_moves(board(moves))
    best = max(scores.values())
    return int(rng.choice([column for column, score in scores.items() if score == best])), best < 0


def counts(played: Played) -> dict[str, Any]:
    """How many games were won, drawn and lost, and how many wins were given away at each ply."""
    plies, numbers = np.unique(played.given_away[played.given_away >= 0], return_counts=True)
    return {
        **results_of(played.points),
        "given_away": {str(ply): int(number) for ply, number in zip(plies, numbers, strict=True)},
    }


def table(rows: list[dict[str, Any]]) -> Table:
    """The results as a table."""
    shown = Table("simulations", "seconds a move", "won", "drawn", "lost", "wins given away at ply (games)")
    for row in rows:
        given_away = ", ".join(f"{int(ply) + 1} ({number})" for ply, number in row["given_away"].items())
        figures = [str(row[name]) for name in ("won", "drawn", "lost")]
        shown.add_row(f"{row['num_simulations']:,}", f"{row['seconds_per_move']:.3f}", *figures, given_away)
    return shown


if __name__ == "__main__":
    run_study(main)
