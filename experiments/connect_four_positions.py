"""Makes the positions of Connect Four on which agents are measured, with the exact value of every move.

For each ply from 0 to 40 it takes up to --each positions of each kind, all of them different:

- `random`: from games of random moves;
- `search`: from games between searches without a network (UCT, 100 random rollouts a move), whose moves are drawn by
  their visits;
- `balanced`: from games of random moves among those that keep the exact value, after 0 to 8 random plies.

bitbully (https://pypi.org/project/bitbully, an alpha-beta solver with an opening book, by M. Thill) solves each move.

    pip install 'azjax[interop]'
    python experiments/connect_four_positions.py

It takes four minutes on 2 CPU cores. Writes experiments/results/connect_four_positions.json, one line for each
position: its moves as a string of columns 1 to 7, its kind, and a character for each column: `+`, `=` or `-` if the
player to move then wins, draws or loses with best play, and `.` if the column is full.
"""

import collections
import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.progress import track
from study import run_study

import azjax
from azjax.core.errors import InputError
from azjax.evaluation.players import draw

OUTPUT = Path(__file__).parent / "results" / "connect_four_positions.json"
PLIES = 41  # 0 to 40; at ply 41 only one move is left
COLUMNS = range(7)


def main(each: int = 30, games: int = 400, seed: int = 0, output: Path = OUTPUT) -> None:
    """Plays games, picks positions, solves and writes them.

    Args:
      each: largest number of positions of a ply and a kind.
      games: number of balanced games to take positions from; the other kinds have five times as many.
      seed: seed of all random choices.
      output: file of the positions.
    """
    solver = exact_solver()
    rng = np.random.default_rng(seed)
    played = {
        # More games, because few of them reach the late plies.
        "random": [random_game(rng) for _ in range(5 * games)],
        "search": searched_games(5 * games, seed),
        "balanced": [balanced_game(solver, rng) for _ in track(range(games), "balanced games")],
    }
    taken: set[tuple] = set()
    chosen = []
    for ply in range(PLIES):
        for kind, all_games in played.items():
            left = each
            for moves in rng.permutation(np.array(all_games, dtype=object)):
                # A game that ended earlier has no position at this ply.
                if left and len(moves) > ply and (key := tuple(map(tuple, board(moves[:ply]).to_array()))) not in taken:
                    taken.add(key)
                    chosen.append((kind, moves[:ply]))
                    left -= 1
    lines = [
        json.dumps({"moves": moves, "kind": kind, "values": values(solver, moves)})
        for kind, moves in track(chosen, "solving")
    ]
    output.write_text("[\n" + ",\n".join(lines) + "\n]\n")
    counts = collections.Counter(kind for kind, _ in chosen)
    print(f"{len(lines)} positions written to {output}: {dict(counts)}")


def bitbully() -> Any:
    """The package of the solver.

    Raises:
      InputError: it is not installed.
    """
    try:
        return importlib.import_module("bitbully")
    except ModuleNotFoundError as error:
        raise InputError(f"this study needs {error.name}: pip install 'azjax[interop]'") from error


def exact_solver() -> Any:
    """The solver, with its opening book."""
    return bitbully().BitBully(opening_book="12-ply-dist")


def board(moves: str) -> Any:
    """bitbully's board after moves such as `4453`."""
    return bitbully().Board([int(move) - 1 for move in moves])


def values(solver: Any, moves: str) -> str:
    """The value of each column as a character; see the docstring of the module."""
    position = board(moves)
    scores = solver.score_all_moves(position)
    return "".join("." if column not in scores else "-=+"[np.sign(scores[column]) + 1] for column in COLUMNS)


def random_game(rng: np.random.Generator, plies: int = 42) -> str:
    """Random moves of a whole game, or of its first `plies`."""
    position, moves = bitbully().Board(), ""
    while not position.is_game_over() and len(moves) < plies:
        column = int(rng.choice(position.legal_moves()))
        position.play(column)
        moves += str(column + 1)
    return moves


def balanced_game(solver: Any, rng: np.random.Generator) -> str:
    """Random moves that keep the exact value, after 0 to 8 moves without this condition."""
    moves = random_game(rng, plies=int(rng.integers(9)))
    position = board(moves)
    while not position.is_game_over():
        now = values(solver, moves)
        best = max(now, key=".-=+".index)
        column = int(rng.choice([column for column in COLUMNS if now[column] == best]))
        position.play(column)
        moves += str(column + 1)
    return moves


def searched_games(games: int, seed: int) -> list[str]:
    """The moves of each game between searches with random rollouts."""
    game = azjax.make("connect_four")

    @jax.jit
    def ply(key: jax.Array, states: object) -> tuple[jax.Array, object]:
        search_key, draw_key = jax.random.split(key)
        result = azjax.uct_policy(None, search_key, states, game=game, num_simulations=100)
        actions = draw(draw_key, result.policy)
        return actions, jax.vmap(game.step)(states, actions)

    def play() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        states = jax.vmap(game.init)(jax.random.split(jax.random.key(seed), games))
        for number in track(range(game.max_plies), "searched games"):
            running = ~np.asarray(states.terminated)
            actions, states = ply(jax.random.fold_in(jax.random.key(seed), number), states)
            yield running, np.asarray(actions)

    moves = [""] * games
    for running, actions in play():
        for row in np.flatnonzero(running):
            moves[row] += str(actions[row] + 1)
    return moves


if __name__ == "__main__":
    run_study(main)
