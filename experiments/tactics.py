"""How many simulations does the search need to find a forced win, without a network?

The study asks three questions, with the uniform evaluator (equal priors, all values 0) and the default `c_puct`:

* Mate in one: some actions win at once. In how many positions does the search choose one of them, by number of
  simulations?
* Mate in two: no action wins at once, but after some actions every reply allows a win at once. In how many positions
  does the search choose one of them, with the solver off and on?
* Proofs: how many of all unfinished positions of tic-tac-toe and of Santorini 2x2 does the solver prove, and is it
  always right?

The positions come from random games. An exhaustive check with the game's rules finds the mating actions. The trees of
50,000 simulations take most of the time.

    python experiments/tactics.py

Writes experiments/results/tactics.json and docs/tactics.png.
"""

import functools
import itertools
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn
from study import DOCS, RESULTS, run_study, save_figure, style, wide_figure, write_results

import azjax
from azjax.evaluation import solve
from azjax.evaluation.positions import batches
from azjax.games.game import Game, random_legal_action, reward_of_mover
from azjax.games.protocols import next_game, without_history
from azjax.search import SearchResult, alphazero_policy, evaluators

SEED = 0
GAMES = {
    "Connect Four": azjax.make("connect_four"),
    "Santorini 5x5": azjax.make("santorini", size=5, workers=2),
    "Brandub": azjax.make("brandub"),
}
# Positions of each game, and numbers of simulations; the key is the number of moves to the mate.
NUM_POSITIONS = {1: 200, 2: 100}
BUDGETS = {1: (25, 50, 100, 200, 400), 2: (100, 200, 400, 1000, 2000, 5000, 10_000, 20_000, 50_000)}
BATCH = 25  # trees of 50,000 nodes side by side; a node of Brandub takes about 1 KB
SOLVED = {"tic-tac-toe": azjax.make("tictactoe"), "Santorini 2x2": azjax.make("santorini", size=2)}
PROOF_BUDGETS = (100, 1000, 10_000, 100_000)
PROOF_NODES = 2_000_000  # nodes of all trees of a batch

# The random games that positions are taken from.
NUM_GAMES = 256
NUM_PLIES = 64


# Positions and their mates. Axis letters: `B` positions, `A` actions, `K` slots of the table of legal actions.


def wins_at_once(game: Game, state: Any) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The legal actions of one state, their validity (see `legal_slots`), and bool [K]: the action wins at once."""
    actions, valid = game.legal_slots(state)
    following = jax.vmap(game.step, (None, 0))(state, actions)
    return actions, valid, valid & following.terminated & (reward_of_mover(state, following) == 1)


def leaves_no_defense(game: Game, player: jax.Array, state: Any) -> jax.Array:
    """bool []: the opponent of `player` moves, and after each reply `player` has won or wins at once."""
    replies, valid = game.legal_slots(state)

    def loses(reply: jax.Array) -> jax.Array:
        following = game.step(state, reply)
        wins = (following.current_player == player) & jnp.any(wins_at_once(game, following)[2])
        return jnp.where(following.terminated, following.rewards[player] == 1, wins)

    def defend(carry: tuple) -> tuple:
        slot, lost = carry
        return slot + 1, lost & (~valid[slot] | loses(replies[slot]))

    lost = ~state.terminated & (state.current_player != player) & jnp.any(valid)
    return jax.lax.while_loop(lambda carry: carry[1] & (carry[0] < len(valid)), defend, (jnp.int32(0), lost))[1]


@functools.partial(jax.jit, static_argnums=(0, 2))
def mating_actions(game: Game, states: Any, moves: int) -> jax.Array:
    """bool [B, A]: the actions of the states [B, ...] that win at once, or that force a mate in two.

    Args:
      game: the rules.
      states: positions; their history is ignored, because no position repeats within three plies.
      moves: 1, or 2 for actions that do not end the game and allow a win at once after every reply (static).
    """

    def of_one(state: Any) -> jax.Array:
        actions, valid, mates = wins_at_once(game, state)
        if moves == 2:
            following = jax.vmap(game.step, (None, 0))(state, actions)
            no_defense = jax.vmap(functools.partial(leaves_no_defense, game, state.current_player))(following)
            mates = valid & no_defense
        return jnp.zeros(game.num_actions, bool).at[actions].max(mates)

    positions = jax.vmap(functools.partial(without_history, game))(states)
    return jax.vmap(of_one)(positions) if moves == 1 else jax.lax.map(of_one, positions)


@functools.partial(jax.jit, static_argnums=0)
def random_positions(game: Game, key: jax.Array) -> tuple[Any, jax.Array, jax.Array]:
    """Positions of random games.

    Returns:
      The positions without history, [NUM_PLIES * NUM_GAMES, ...]; bool [B]: some, but not all, actions win at once;
      bool [B]: the game is unfinished, and no action wins at once.
    """

    def play(states: Any, key: jax.Array) -> tuple[Any, Any]:
        start_keys, move_keys = jax.random.split(key, (2, NUM_GAMES))
        states = jax.vmap(functools.partial(next_game, game))(start_keys, states)
        actions = jax.vmap(functools.partial(random_legal_action, game))(move_keys, states)
        return jax.vmap(game.step)(states, actions), jax.vmap(functools.partial(without_history, game))(states)

    first_key, key = jax.random.split(key)
    states = jax.vmap(game.init)(jax.random.split(first_key, NUM_GAMES))
    _, positions = jax.lax.scan(play, states, jax.random.split(key, NUM_PLIES))
    positions = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), positions)
    _, valid, wins = jax.vmap(functools.partial(wins_at_once, game))(positions)
    some, every = jnp.any(wins, axis=1), jnp.all(wins == valid, axis=1)
    return positions, some & ~every, ~some & ~positions.terminated


def find_positions(game: Game, moves: int, number: int, key: jax.Array) -> list[str]:
    """Texts of `number` different positions with a mate in `moves`, in which not every action mates.

    Raises:
      ValueError: the random games have too few such positions.
    """
    positions, *candidates = jax.device_get(random_positions(game, key))
    rows = np.random.default_rng(SEED).permutation(np.flatnonzero(candidates[moves - 1]))
    texts: dict[str, None] = {}
    for size, piece in batches(jax.tree.map(lambda leaf: leaf[rows], positions), 64):
        mating, legal = mating_actions(game, piece, moves), jax.vmap(game.legal_action_mask)(piece)
        fitting = jnp.any(mating, axis=1) & jnp.any(legal & ~mating, axis=1)
        for row in np.flatnonzero(fitting[:size]):
            texts[game.to_text(jax.tree.map(lambda leaf: leaf[row], piece))] = None
            if len(texts) == number:
                return list(texts)
    raise ValueError(f"{game.name}: expected {number} positions with a mate in {moves}, got {len(texts)}")


def read(game: Game, texts: list[str]) -> Any:
    """The states of these texts, every leaf [B, ...]."""
    return jax.tree.map(lambda *leaves: np.stack(leaves), *jax.device_get(list(map(game.from_text, texts))))


# The measurements.


def search(game: Game, states: Any, num_simulations: int, **options: Any) -> SearchResult:
    """Runs the search that the study measures."""
    options = {"game": game, "evaluator": evaluators.uniform(game), "num_simulations": num_simulations, **options}
    return alphazero_policy(None, jax.random.key(SEED), states, **options)


def count_mates(
    game: Game, states: Any, mating: np.ndarray, budgets: tuple[int, ...], *, solver: bool, progress: Progress
) -> list[int]:
    """For each budget: the number of states [B, ...] for which the search chooses one of `mating`, bool [B, A].

    The search continues its tree from one budget to the next.
    """
    counts = np.zeros(len(budgets), int)
    task = progress.add_task(f"{game.name}, solver {'on' if solver else 'off'}", total=len(mating) * len(budgets))
    for number, (size, piece) in enumerate(batches(states, BATCH)):
        expected = mating[number * BATCH :][:size]
        tree, done = None, 0
        for index, budget in enumerate(budgets):
            options = {"solver": solver, "tree": tree, "max_nodes": budgets[-1] + 1}
            result = search(game, piece, budget - done, **options)
            tree, done = result.tree, budget
            counts[index] += int(expected[np.arange(size), np.asarray(result.action)[:size]].sum())
            progress.advance(task, size)
    return counts.tolist()


def measure_mates(name: str, moves: int, progress: Progress) -> dict[str, Any]:
    """A row of the results: the mates of one game."""
    game, number = GAMES[name], NUM_POSITIONS[moves]
    texts = find_positions(game, moves, number, jax.random.key(SEED))
    states = read(game, texts)
    mating = np.asarray(mating_actions(game, states, moves))
    legal = np.asarray(jax.vmap(game.legal_action_mask)(states))
    counts = {
        f"solver_{'on' if solver else 'off'}": count_mates(
            game, states, mating, BUDGETS[moves], solver=solver, progress=progress
        )
        for solver in (False, True)
    }
    return {
        "game": name,
        "moves": moves,
        "positions": len(texts),
        "mean_legal_actions": round(float(legal.sum(axis=1).mean()), 1),
        "mean_mating_actions": round(float(mating.sum(axis=1).mean()), 1),
        "simulations": BUDGETS[moves],
        "found": counts,
        "texts": texts,
    }


def measure_proofs(name: str, progress: Progress) -> dict[str, Any]:
    """A row of the results: how many unfinished positions of a solved game are proven, and how many wrongly.

    A proven position is not searched again with a larger budget, because the search would run the same way.
    """
    game = SOLVED[name]
    states, values = unfinished(game)
    left = np.arange(len(values))
    proven, wrong = [], 0
    for budget in PROOF_BUDGETS:
        task = progress.add_task(f"{name}, {budget:,} simulations", total=len(left))
        bounds = []
        for size, piece in batches(jax.tree.map(lambda leaf: leaf[left], states), min(1024, PROOF_NODES // budget)):
            bounds.append(np.asarray(search(game, piece, budget, solver=True).bounds)[:size])
            progress.advance(task, size)
        lower, upper = np.concatenate(bounds).T
        wrong += int(((lower > values[left]) | (upper < values[left])).sum())
        left = left[lower < upper]
        proven.append(len(values) - len(left))
        if not len(left):
            break
    proven += [len(values)] * (len(PROOF_BUDGETS) - len(proven))
    return {
        "game": name,
        "positions": len(values),
        "simulations": PROOF_BUDGETS,
        "proven": proven,
        "wrong_bounds": wrong,
    }


def unfinished(game: Game) -> tuple[Any, np.ndarray]:
    """All unfinished positions of the game, every leaf [B, ...], and their exact values, float32 [B]."""
    blocks = [block for _, block in solve(game).blocks()]
    everything = jax.tree.map(lambda *leaves: np.concatenate(leaves), *blocks)
    return everything.states, everything.values


def draw(mates: list[dict[str, Any]], proofs: list[dict[str, Any]], path: Path) -> None:
    """Draws the shares against simulations."""
    figure, panels = wide_figure(3, width=12, height=3.8)
    for panel, moves in zip(panels, (1, 2), strict=False):
        rows = [row for row in mates if row["moves"] == moves]
        for row, color in zip(rows, ("#2a6fbb", "#c8553d", "#3f8f5b"), strict=True):
            for solver, line in (("solver_off", "--"), ("solver_on", "-")):
                share = 100 * np.array(row["found"][solver]) / row["positions"]
                label = row["game"] if solver == "solver_on" else None
                panel.plot(row["simulations"], share, line, color=color, label=label, marker="o", markersize=3)
        panel.plot([], [], "-", color="#777777", label="solver on")
        panel.plot([], [], "--", color="#777777", label="solver off")
    for row, color in zip(proofs, ("#7a5195", "#e0a458"), strict=True):
        share = 100 * np.array(row["proven"]) / row["positions"]
        panels[2].plot(row["simulations"], share, color=color, label=row["game"], marker="o", markersize=3)
    titles = ("mate in one found", "mate in two found", "all positions: value proven")
    for panel, title in zip(panels, titles, strict=True):
        panel.set_xscale("log")
        panel.set_ylim(0, 103)
        panel.yaxis.set_major_formatter("{x:.0f}%")
        style(panel, title, "simulations")
    # Label the five budgets instead of powers of ten.
    panels[0].set_xticks(BUDGETS[1], map(str, BUDGETS[1]))
    panels[0].minorticks_off()
    save_figure(figure, path)


def main(output: Path = RESULTS / "tactics.json", plot: Path = DOCS / "tactics.png") -> None:
    """Measures everything, writes and draws the results.

    Args:
      output: file of the results.
      plot: picture of the shares against simulations.
    """
    mates, proofs = [], []
    with Progress(*Progress.get_default_columns(), MofNCompleteColumn(), TimeElapsedColumn()) as progress:
        for moves, name in itertools.product(BUDGETS, GAMES):
            row = measure_mates(name, moves, progress)
            progress.console.print({key: row[key] for key in ("game", "moves", "positions", "simulations", "found")})
            mates.append(row)
        for name in SOLVED:
            row = measure_proofs(name, progress)
            progress.console.print(row)
            proofs.append(row)
    settings = {"seed": SEED, "evaluator": "uniform", "policy": "alphazero_policy", "c_puct": "default"}
    write_results(output, "tactics.py", settings, mates=mates, proofs=proofs)
    draw(mates, proofs, plot)
    progress.console.print(f"written to {output}, drawn to {plot}", soft_wrap=True)


if __name__ == "__main__":
    run_study(main)
