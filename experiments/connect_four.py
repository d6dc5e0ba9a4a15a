"""How often does the Connect Four agent give away a win or a draw, and how does it score against MCTS?

Trains the packaged agent from self-play alone. Counts mistakes of the network at each kept checkpoint, alone and with
400 simulations, on the positions of `connect_four_positions.py`, where the exact value of every move is available.
Random moves and OpenSpiel's MCTS (random rollouts, the settings of its example) are measured too. Then the last network
moves first in 100 games against that MCTS with 1,000 rollouts. It takes about three hours on 2 CPU cores with
matrix units for bfloat16.

With --sets it also counts mistakes on Pascal Pons' six test sets, beside the published numbers of AlphaZero.jl. The
sets are in games/connect-four/benchmark of https://github.com/jonathan-laurent/AlphaZero.jl.

    pip install 'azjax[interop]'
    python experiments/connect_four.py [--sets FOLDER]

A run that exists is resumed or reused. Results of MCTS with the same rollouts are measured again only with --again.
Writes experiments/results/connect_four.json and docs/connect_four.png.
"""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from study import (
    COLORS,
    DOCS,
    GRAY,
    RESULTS,
    RUNS,
    config_of,
    run_study,
    save_figure,
    style,
    trained,
    wide_figure,
    write_results,
)

import azjax
from azjax.core.errors import InputError
from azjax.evaluation import Player, choose, network_player, random_player, search_player
from azjax.evaluation.players import act
from azjax.games.game import Game
from azjax.networks import Variables
from azjax.runs import load_variables
from azjax.search import evaluators
from azjax.training import Config

POSITIONS = RESULTS / "connect_four_positions.json"
EARLY_PLIES, FEW_MOVES = 12, 2
BATCH = 256

# Pons' sets, of 1,000 positions each: "begin" is up to 14 plies, "end" after 28; "easy" is under 14 more plies with
# best play, "hard" from 28. The numbers are AlphaZero.jl's shares of mistakes after 15 iterations, with 600 simulations
# a move, read off its plot (docs/src/assets/img/connect-four/pons-benchmark-results.png).
SETS = {
    "Test_L3_R1": ("end, easy", 0.0),
    "Test_L2_R1": ("middle, easy", 0.0),
    "Test_L2_R2": ("middle, medium", 0.027),
    "Test_L1_R1": ("begin, easy", 0.0),
    "Test_L1_R2": ("begin, medium", 0.02),
    "Test_L1_R3": ("begin, hard", 0.075),
}


@dataclasses.dataclass(frozen=True)
class Positions:
    """Positions with the exact value of every move.

    Attributes:
      moves: n strings of columns 1 to 7.
      states: the states after these moves, NumPy leaves [n, ...].
      kinds: n names of the kinds of positions.
      plies: int [n]; the number of moves.
      values: int [n]; exact values, -1, 0 or 1 for the player to move.
      keeps: bool [n, 7]; the moves that keep the exact value.
      legal: bool [n, 7]; the legal moves.
    """

    moves: list[str]
    states: Any
    kinds: np.ndarray
    plies: np.ndarray
    values: np.ndarray
    keeps: np.ndarray
    legal: np.ndarray

    @property
    def narrow(self) -> np.ndarray:
        """bool [n]: early positions with few moves that keep the value."""
        return (self.plies <= EARLY_PLIES) & (self.keeps.sum(axis=1) <= FEW_MOVES)

    @property
    def open(self) -> np.ndarray:
        """bool [n]: positions in which some legal move is a mistake."""
        return (self.keeps < self.legal).any(axis=1)


def main(
    iterations: int | None = None,
    seed: int = 0,
    num_simulations: int = 400,
    rollouts: tuple[int, ...] = (1_000, 10_000),
    games: int = 100,
    again: bool = False,
    sets: Path | None = None,
    folder: Path | None = None,
    output: Path = RESULTS / "connect_four.json",
    plot: Path = DOCS / "connect_four.png",
) -> None:
    """Trains, counts mistakes, plays the match, prints, writes and draws the results.

    Args:
      iterations: iterations of training; by default those of the packaged agent.
      seed: seed of the run.
      num_simulations: simulations of each search.
      rollouts: rollouts of OpenSpiel's MCTS, one row for each number.
      games: games of the match against MCTS with the first number of rollouts.
      again: measure MCTS again.
      sets: folder of Pons' test sets.
      folder: run folder; by default runs/connect_four-SEED.
      output: file of the results.
      plot: picture of the mistakes against training time and by ply.
    """
    console = Console()
    game = azjax.make("connect_four")
    config = config_of("connect_four", game)
    run = trained(
        game, folder or RUNS / f"connect_four-{seed}", console, seed=seed, iterations=iterations, config=config
    )
    positions = load_positions(game, json.loads(POSITIONS.read_text()))
    rivals = ([] if again else rivals_so_far(output, rollouts)) or rival_rows(game, positions, rollouts)
    rows = []
    for step in track(run.steps, "checkpoints", console=console):
        _, variables = load_variables(run.folder, step)
        agents = players(game, run.config, variables, num_simulations)
        for name, player in agents.items():
            row = {"player": name, "iteration": step, "seconds": run.seconds(step)}
            rows.append({**row, **mistakes(move_probabilities(player, positions), positions)})
    console.print(table([*rivals, *rows[-2:]]))
    beside = on_sets(game, agents, sets) if sets else {}
    for name, shares in beside.items():
        console.print(f"{name}: {', '.join(f'{kind} {share:.1%}' for kind, share in shares.items())}")
    match = against_mcts(game, player, rollouts[0], games)
    console.print(f"moving first against MCTS, {rollouts[0]:,} rollouts: {match}")
    sizes = {kind: int((positions.kinds == kind).sum()) for kind in dict.fromkeys(positions.kinds.tolist())}
    write_results(
        output,
        "connect_four.py",
        {"num_simulations": num_simulations, "config": dataclasses.asdict(run.config)},
        positions={
            "all": len(positions.moves),
            "narrow": int(positions.narrow.sum()),
            "open": int(positions.open.sum()),
            **sizes,
        },
        rivals=rivals,
        rows=rows,
        match={"rollouts": rollouts[0], **match},
        sets=beside,
    )
    draw(rivals, rows, plot)
    console.print(f"written to {output}, drawn to {plot}", soft_wrap=True)


def on_sets(game: Game, agents: dict[str, Player], folder: Path) -> dict[str, dict[str, float]]:
    """Shares of mistakes on each of Pons' sets, AlphaZero.jl's first."""
    positions = load_sets(game, folder)
    shares = {"AlphaZero.jl": dict(SETS.values())}
    for name, player in agents.items():
        lost = (move_probabilities(player, positions) * ~positions.keeps).sum(axis=1)
        shares[name] = {kind: round(float(lost[positions.kinds == kind].mean()), 4) for kind, _ in SETS.values()}
    return shares


def load_sets(game: Game, folder: Path) -> Positions:
    """The positions of Pons' sets, by kind. Their moves are solved once, in some minutes."""
    if missing := [name for name in SETS if not (folder / name).is_file()]:
        raise InputError(f"{folder} lacks {', '.join(missing)}; it must have the test sets of AlphaZero.jl")
    texts = {name: (folder / name).read_text().splitlines() for name in SETS}
    moves = [(SETS[name][0], line.split()[0]) for name, lines in texts.items() for line in lines]
    solved = RUNS / "pons_sets.json"
    lines = json.loads(solved.read_text()) if solved.exists() else []
    if [(line["kind"], line["moves"]) for line in lines] != moves:
        from connect_four_positions import exact_solver, values

        solver = exact_solver()
        lines = [
            {"kind": kind, "moves": text, "values": values(solver, text)}
            for kind, text in track(moves, "solving Pons' sets")
        ]
        solved.parent.mkdir(parents=True, exist_ok=True)
        solved.write_text(json.dumps(lines))
    return load_positions(game, lines)


def load_positions(game: Game, lines: list[dict[str, str]]) -> Positions:
    """The positions of the lines of a file that `connect_four_positions.py` writes."""
    values = np.array([[".-=+".index(value) for value in line["values"]] for line in lines])
    moves = [line["moves"] for line in lines]
    plies = np.array([len(text) for text in moves])
    actions = np.array([[int(move) - 1 for move in text.ljust(plies.max(), "1")] for text in moves])
    states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), len(moves)))
    step = jax.jit(jax.vmap(game.step))
    for ply in range(plies.max()):
        after = step(states, actions[:, ply])
        unfinished = plies > ply
        states = jax.tree.map(
            lambda new, old: np.where(unfinished.reshape(-1, *[1] * (new.ndim - 1)), new, old), after, states
        )
    return Positions(
        moves=moves,
        states=jax.device_get(states),
        kinds=np.array([line["kind"] for line in lines]),
        plies=plies,
        values=values.max(axis=1) - 2,
        keeps=values == values.max(axis=1, keepdims=True),
        legal=values > 0,
    )


def players(game: Game, config: Config, variables: Variables, num_simulations: int) -> dict[str, Player]:
    """Two players: the network alone, and the network with a search."""
    network = config.make_network(game)
    search = search_player(
        game,
        evaluators.network(network, game),
        variables,
        num_simulations=num_simulations,
        c_puct=config.hyper.c_puct,
    )
    return {"network": network_player(game, network, variables), f"network + {num_simulations}": search}


def move_probabilities(player: Player, positions: Positions) -> np.ndarray:
    """float [n, 7]: the probability of each move of the player."""
    n = len(positions.moves)
    batches = []
    for start in range(0, n, BATCH):
        rows = np.arange(start, start + BATCH) % n  # full batches: one compilation
        states = jax.tree.map(lambda leaf: leaf[rows], positions.states)
        batches.append(np.asarray(choose(player, jax.random.key(start), states).probabilities))
    return np.concatenate(batches)[:n]


def mistakes(probabilities: np.ndarray, positions: Positions) -> dict[str, Any]:
    """Shares of the moves that give away a win or a draw: on all positions, and on parts of them."""
    lost = (probabilities * ~positions.keeps).sum(axis=1)

    def share(rows: np.ndarray) -> float:
        return round(float(lost[rows].mean()), 4)

    kinds = {kind: share(positions.kinds == kind) for kind in dict.fromkeys(positions.kinds.tolist())}
    by_ply = [share(positions.plies == ply) for ply in range(positions.plies.max() + 1)]
    every = share(np.ones(len(lost), bool))
    return {"all": every, "narrow": share(positions.narrow), "open": share(positions.open), **kinds, "by_ply": by_ply}


def rivals_so_far(path: Path, rollouts: tuple[int, ...]) -> list[dict[str, Any]]:
    """The rows of `rival_rows` in a result file; none if they are of other rollouts."""
    rows: list[dict[str, Any]] = json.loads(path.read_text())["rivals"] if path.exists() else []
    return rows if [row["player"] for row in rows] == ["random", *map(mcts_name, rollouts)] else []


def rival_rows(game: Game, positions: Positions, rollouts: tuple[int, ...]) -> list[dict[str, Any]]:
    """Rows of the players that do not learn: random moves and MCTS."""
    random = move_probabilities(random_player(game), positions)
    rows = [{"player": "random", **mistakes(random, positions)}]
    for count in rollouts:
        bot = OpenSpielMcts(count)
        moves = [bot.move(text) for text in track(positions.moves, mcts_name(count))]
        rows.append({"player": mcts_name(count), **mistakes(np.eye(7)[moves], positions)})
    return rows


def mcts_name(rollouts: int) -> str:
    """The name of OpenSpiel's MCTS in the rows."""
    return f"MCTS, {rollouts:,} rollouts"


class OpenSpielMcts:
    """OpenSpiel's MCTS with the settings of its `mcts_example.cc`: UCB 2, solver on, one random rollout a leaf."""

    def __init__(self, rollouts: int, seed: int = 0):
        import pyspiel  # only this player needs it

        self.rules = pyspiel.load_game("connect_four")
        evaluator = pyspiel.RandomRolloutEvaluator(n_rollouts=1, seed=seed)
        self.bot = pyspiel.MCTSBot(
            self.rules,
            evaluator,
            uct_c=2.0,
            max_simulations=rollouts,
            max_memory_mb=1000,
            solve=True,
            seed=seed,
            verbose=False,
        )

    def move(self, moves: str) -> int:
        """The column, 0 to 6, that MCTS plays after moves such as `4453`."""
        state = self.rules.new_initial_state()
        for move in moves:
            state.apply_action(int(move) - 1)
        return int(self.bot.step(state))


def against_mcts(game: Game, player: Player, rollouts: int, games: int) -> dict[str, int]:
    """Counts of games won, drawn and lost by the player, who moves first in all of them."""
    bots = [OpenSpielMcts(rollouts, seed) for seed in range(games)]
    return results_of(play_first(game, player, lambda row, moves: bots[row].move(moves), games))


def play_first(game: Game, player: Player, reply: Callable[[int, str], int], games: int) -> np.ndarray:
    """The points, float [games], of the player, who moves first in games side by side.

    `reply(row, moves)` is the column, 0 to 6, of the opponent in game `row` after moves such as `445`.
    """
    states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), games))
    step = jax.jit(jax.vmap(game.step))
    moves, points = [""] * games, np.zeros(games)
    for ply in track(range(game.max_plies), f"{games} games of {player.name}"):
        running = np.flatnonzero(~np.asarray(states.terminated))
        if not len(running):
            break
        if ply % 2 == 0:
            actions = np.asarray(act(player, jax.random.key(ply), states)[0])
        else:
            actions = np.zeros(games, np.int32)
            actions[running] = [reply(row, moves[row]) for row in running]
        for row in running:
            moves[row] += str(actions[row] + 1)
        states = step(states, actions)
        points += np.asarray(states.rewards[:, 0])
    return points


def results_of(points: np.ndarray) -> dict[str, int]:
    """How many games were won, drawn and lost."""
    return {name: int((points == point).sum()) for name, point in (("won", 1), ("drawn", 0), ("lost", -1))}


def table(rows: list[dict[str, Any]]) -> Table:
    """The results as a table."""
    names = ("all", "random", "search", "balanced", "narrow", "open")
    heads = (*names[:4], f"to ply {EARLY_PLIES}, at most {FEW_MOVES} right", "mistake possible")
    shown = Table("mistakes", "minutes", *heads)
    for row in rows:
        minutes = f"{row['seconds'] / 60:.0f}" if "seconds" in row else ""
        shown.add_row(row["player"], minutes, *(f"{row[name]:.1%}" for name in names))
    return shown


def draw(rivals: list[dict[str, Any]], rows: list[dict[str, Any]], path: Path) -> None:
    """Draws mistakes against training time, and by ply."""
    figure, (time, ply) = wide_figure(2)
    for rival, line in zip(rivals[1:], ("--", ":"), strict=False):
        time.axhline(rival["all"], color=GRAY, linestyle=line, label=rival["player"])
        ply.plot(rival["by_ply"], color=GRAY, linestyle=line, label=rival["player"])
    for player, color in zip(dict.fromkeys(row["player"] for row in rows), COLORS, strict=False):
        of_player = [row for row in rows if row["player"] == player]
        minutes = [row["seconds"] / 60 for row in of_player]
        time.plot(minutes, [row["all"] for row in of_player], color=color, marker="o", markersize=3, label=player)
        ply.plot(of_player[-1]["by_ply"], color=color, label=player)
    for panel, title, axis in ((time, "mistakes on all positions", "minutes of training"), (ply, "by ply", "ply")):
        panel.set_ylim(bottom=0)
        style(panel, title, axis, shares=True)
    save_figure(figure, path)


if __name__ == "__main__":
    run_study(main)
