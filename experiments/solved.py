"""Solves small boards exactly, and compares the results with what is published and with a second method.

The second method is an alpha-beta search by plain Python rules (benchmarks/rules), from positions of random games near
the end. All boards take about half an hour on one core of an AMD EPYC, and 13.2 GB of memory.

    python experiments/solved.py

Boards that the result file holds already are not solved again. Writes experiments/results/solved.json, and for each
board the position with the longest forced win as docs/pictures/solved_*.svg.
"""

import random
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from study import DOCS, RESULTS, RUNS, refuse_unknown, results_so_far, run_other, run_study, write_results

import azjax
from azjax.benchmark.report import machine
from azjax.evaluation import Solution, save_solution, solve
from azjax.evaluation.numbered import NumberedSolution
from azjax.games.game import AnyGame
from azjax.games.protocols import action_to_text
from azjax.render import svg
from benchmarks.rules.breakthrough import BreakthroughRules
from benchmarks.rules.connect_four import ConnectFourRules
from benchmarks.rules.hex import HexRules
from benchmarks.rules.othello import OthelloRules
from benchmarks.rules.santorini import SantoriniRules

TROMP = "J. Tromp, https://tromp.github.io/c4/c4.html"
REVERSI = "https://en.wikipedia.org/wiki/Reversi"
SAMPLE = 100


class Board(NamedTuple):
    """A board to solve.

    Attributes:
      game: its registered name.
      options: of the game.
      published: facts that others found, by the names of a row; None if we know of none.
      source: of these.
      rules: the plain rules of the second method.
      random_plies: from the start to its positions.
    """

    game: str
    options: dict[str, Any]
    published: dict[str, Any] | None = None
    source: str = ""
    rules: Callable[[], Any] | None = None
    random_plies: int = 0


def _connect_four(columns: int, rows: int, positions: int, value: int) -> Board:
    options = {"columns": columns, "rows": rows}
    published = {"reachable": positions, "value": value}
    return Board("connect_four", options, published, TROMP, lambda: ConnectFourRules(**options), columns * rows - 11)


def _breakthrough(columns: int, rows: int, random_plies: int) -> Board:
    options = {"columns": columns, "rows": rows}
    return Board("breakthrough", options, None, "", lambda: BreakthroughRules(**options), random_plies)


def _santorini(workers: int, random_plies: int) -> Board:
    options = {"size": 3, "workers": workers}
    return Board("santorini", options, None, "", lambda: SantoriniRules(**options), random_plies)


BOARDS = {
    "connect_four_4x4": _connect_four(4, 4, 161_029, 0),
    "connect_four_4x5": _connect_four(4, 5, 1_706_255, 0),
    "connect_four_5x4": _connect_four(5, 4, 3_945_711, 0),
    "connect_four_4x6": _connect_four(4, 6, 15_835_683, 0),
    "connect_four_4x7": _connect_four(4, 7, 135_385_909, 0),
    "connect_four_5x5": _connect_four(5, 5, 69_763_700, 0),
    "connect_four_6x4": _connect_four(6, 4, 94_910_577, -1),
    "hex_3x3": Board("hex", {"size": 3}, {"value": 1}, "J. Nash, by strategy stealing", lambda: HexRules(3), 0),
    "hex_4x4": Board("hex", {"size": 4}, {"value": 1}, "J. Nash, by strategy stealing", lambda: HexRules(4), 6),
    "hex_4x4_swap": Board("hex", {"size": 4, "swap": True}, None, "", lambda: HexRules(4, True), 6),
    "othello_4x4": Board("othello", {"size": 4}, {"value": -1}, REVERSI, lambda: OthelloRules(4), 2),
    "breakthrough_4x4": _breakthrough(4, 4, 4),
    "breakthrough_3x5": _breakthrough(3, 5, 4),
    "breakthrough_3x6": _breakthrough(3, 6, 12),
    "breakthrough_4x5": _breakthrough(4, 5, 8),
    "breakthrough_5x4": _breakthrough(5, 4, 6),
    "santorini_3x3": _santorini(1, 14),
    "santorini_3x3_two_workers": _santorini(2, 16),
    "chomp_8x8": Board("chomp", {"columns": 8, "rows": 8}, {"value": 1, "best_first_moves": ["b2"]}, "D. Gale 1974"),
    "chomp_10x8": Board(
        "chomp", {"columns": 10, "rows": 8}, {"value": 1, "num_best_first_moves": 2}, "K. Thompson, found by a program"
    ),
}


def main(board: str | None = None, output: Path = RESULTS / "solved.json", tables: Path = RUNS / "solved") -> None:
    """Solves all boards, each in a process of its own, or one.

    Args:
      board: solve this one alone, and add it to the results.
      output: file of the results.
      tables: folder of the tables of values, for `optimal:FILE`.
    """
    console = Console()
    settings = {"sample": SAMPLE}
    rows = results_so_far(output, settings, rows={})["rows"]
    if board is None:
        for name in [name for name in BOARDS if name not in rows]:
            run_other("solved.py", "--board", name, "--output", output, "--tables", tables)
        return
    refuse_unknown("board", [board], BOARDS)
    tables.mkdir(parents=True, exist_ok=True)
    rows[board] = solved(board, BOARDS[board], tables / f"{board}.npz")
    console.print(board, rows[board])
    write_results(output, "solved.py", settings, rows={name: rows[name] for name in BOARDS if name in rows})


def solved(name: str, board: Board, table: Path) -> dict[str, Any]:
    """Solves a board, and compares the values."""
    game = azjax.make(board.game, **board.options)
    began = time.perf_counter()
    solution = solve(game, max_states=None)
    seconds = time.perf_counter() - began
    summary = solution.summary()
    start = game.init(jax.random.key(0))
    best = [action_to_text(game, start, action) for action in summary.best_first_actions]
    row = {
        "reachable": summary.reachable,
        "terminal": summary.terminal,
        "won": summary.won,
        "drawn": summary.drawn,
        "lost": summary.lost,
        "value": int(summary.value_first_player),
        "best_first_moves": best,
        "num_best_first_moves": len(best),
        "longest_game": summary.longest_game,
        "cpu": machine()["cpu"],
        "seconds": round(seconds, 1),
        "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    if isinstance(solution, NumberedSolution):
        row |= longest_win(name, game, solution)
        save_solution(solution, table)
        row["table_megabytes"] = round(table.stat().st_size / 1e6, 1)
    if board.published is not None:
        row["published"] = {"source": board.source, **board.published}
        for fact, value in board.published.items():
            if row[fact] != value:
                sys.exit(f"{name}: {fact} is {row[fact]} here, and {value} in {board.source}")
    if board.rules is not None:
        row["second_method"] = compared(name, board, game, solution)
    return row


def longest_win(name: str, game: AnyGame, solution: NumberedSolution) -> dict[str, Any]:
    """The win that takes the most plies against the longest resistance, and a picture of where it begins."""
    scores = solution.table.scores
    row = int(np.flatnonzero(scores == scores[scores > 0].min())[0])
    state = jax.tree.map(lambda leaf: leaf[0], solution.block(np.array([row])).states)
    (DOCS / "pictures" / f"solved_{name}.svg").write_text(svg(game, state), encoding="utf-8")
    return {
        "longest_win": int(solution.distances(np.array([row]))[0]),
        "longest_win_in": game.to_text(state),
        "longest_win_moves": best_line(game, solution, row),
    }


def best_line(game: AnyGame, solution: NumberedSolution, row: int) -> str:
    """The moves from a position on, where the winner hurries and the loser delays; the first of equal moves."""
    moves = []
    while row >= 0:
        block = solution.block(np.array([row]))
        actions, following = block.actions[block.best], block.children[block.best]
        plies = np.where(following < 0, 0, solution.distances(following.clip(0)))
        at = plies.argmin() if block.values[0] > 0 else plies.argmax()
        state = jax.tree.map(lambda leaf: leaf[0], block.states)
        moves.append(action_to_text(game, state, int(actions[at])))
        row = int(following[at])
    return " ".join(moves)


def compared(name: str, board: Board, game: AnyGame, solution: Solution) -> dict[str, Any]:
    """Values by alpha-beta search in positions of random games; they must be those of the solution."""
    assert board.rules is not None
    rules, generator = board.rules(), random.Random(0)
    positions: list[tuple[Any, Any]] = []
    step = jax.jit(game.step)
    while len(positions) < SAMPLE:
        state, plain = game.init(jax.random.key(0)), rules.start()
        for _ in range(board.random_plies + generator.randrange(5)):
            if plain.terminal:
                break
            action = generator.choice(rules.legal_actions(plain))
            state, plain = step(state, jnp.int32(action)), rules.step(plain, action)
        if not plain.terminal:
            positions.append((state, plain))
    states = jax.tree.map(lambda *leaves: np.stack(leaves), *(state for state, _ in positions))
    values = solution.block(solution.index(states)).values
    for (state, plain), value in zip(positions, values, strict=True):
        found = alpha_beta(rules, plain, -1, 1, {})
        if found != value:
            sys.exit(f"{name}: {game.to_text(state)} is {value} here, and {found} by alpha-beta search")
    return {"positions": len(positions), "random_plies": [board.random_plies, board.random_plies + 4]}


def alpha_beta(rules: Any, position: Any, alpha: float, beta: float, bounds: dict[Any, tuple[float, float]]) -> float:
    """The value of an unfinished position for the side to move, if it is between `alpha` and `beta`; else a bound."""
    low, high = bounds.get(position, (-1, 1))
    alpha, beta = max(alpha, low), min(beta, high)
    if alpha >= beta:
        return low if low == high or low >= beta else high
    best, given = -1.0, alpha
    for action in rules.legal_actions(position):
        following = rules.step(position, action)
        sign = 1 if following.player == position.player else -1
        if following.terminal:
            value = following.rewards[position.player]
        else:
            window = (alpha, beta) if sign == 1 else (-beta, -alpha)
            value = sign * alpha_beta(rules, following, *window, bounds)
        best, alpha = max(best, value), max(alpha, value)
        if alpha >= beta:
            break
    low, high = bounds.get(position, (-1, 1))
    bounds[position] = (best if best > given else low, best if best < beta else high)
    return best


if __name__ == "__main__":
    run_study(main)
