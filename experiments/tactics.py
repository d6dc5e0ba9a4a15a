"""Does the search find what is there to be found, without a network?

Three questions, with the uniform evaluator (equal priors, all values 0) and the default `c_puct`:

* Mate in one: positions where some actions win at once. In how many is one of them chosen, by number of simulations?
* Mate in two: positions where no action wins at once, but some leave every reply with a win at once. In how many is one
  of them chosen, solver off and on?
* Of all unfinished positions of tic-tac-toe and of Santorini 2x2, how many does the solver prove, and always rightly?

The positions come from random games, and an exhaustive check by the game's own rules says which actions mate. The
trees of 50,000 simulations take most of the time.

    python experiments/tactics.py

Writes experiments/results/tactics.json and docs/tactics.png.
"""

import functools
import itertools
from pathlib import Path
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import tyro
from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn
from study import DOCS, RESULTS, save_figure, style, wide_figure, write_results

import azjax
from azjax.evaluation import solve
from azjax.evaluation.positions import batches
from azjax.games.game import Game, random_legal_action
from azjax.games.protocols import next_game, without_history
from azjax.search import SearchResult, alphazero_policy, evaluators

SEED = 0
GAMES = {
    "Connect Four": azjax.make("connect_four"),
    "Santorini 5x5": azjax.make("santorini", size=5, workers=2),
    "Brandub": azjax.make("brandub"),
}
# By the number of moves to the mate: positions a game at most, and the budgets.
NUM_POSITIONS = {1: 200, 2: 100}
BUDGETS = {1: (25, 50, 100, 200, 400), 2: (100, 200, 400, 1000, 2000, 5000, 10_000, 20_000, 50_000)}
BATCH = 25  # trees side by side; of 50,000 nodes, of about 1 KB each in Brandub
SOLVED = {"tic-tac-toe": azjax.make("tictactoe"), "Santorini 2x2": azjax.make("santorini", size=2)}
PROOF_BUDGETS = (100, 1000, 10_000, 100_000)
PROOF_NODES = 2_000_000  # of all trees of a batch

# The random games that positions are taken from.
NUM_GAMES = 256
NUM_PLIES = 64


# Positions and their mates. Axis letters: `B` positions, `A` actions, `K` slots of the table of legal actions.


def wins_at_once(game: Game, state: Any) -> tuple[chex.Array, chex.Array, chex.Array]:
    """Of one state its legal actions and their validity (see `legal_slots`), and bool [K]: those that win at once."""
    actions, valid = game.legal_slots(state)
    following = jax.vmap(game.step, (None, 0))(state, actions)
    rewards = jnp.where(state.current_player == 0, following.rewards[:, 0], following.rewards[:, 1])
    return actions, valid, valid & following.terminated & (rewards == 1)


def leaves_no_defence(game: Game, player: chex.Array, state: Any) -> chex.Array:
    """bool []; the opponent of `player` is to move, and after each reply `player` wins at once, or has won."""
    replies, valid = game.legal_slots(state)

    def loses(reply: chex.Array) -> chex.Array:
        following = game.step(state, reply)
        wins = (following.current_player == player) & jnp.any(wins_at_once(game, following)[2])
        return jnp.where(following.terminated, following.rewards[player] == 1, wins)

    def defend(carry: tuple) -> tuple:
        slot, lost = carry
        return slot + 1, lost & (~valid[slot] | loses(replies[slot]))

    lost = ~state.terminated & (state.current_player != player) & jnp.any(valid)
    return jax.lax.while_loop(lambda carry: carry[1] & (carry[0] < len(valid)), defend, (jnp.int32(0), lost))[1]


@functools.partial(jax.jit, static_argnums=(0, 2))
def mating_actions(game: Game, states: Any, moves: int) -> chex.Array:
    """bool [B, A]: the actions of the states [B, ...] that win at once, or that force a mate in two.

    Args:
      game: the rules.
      states: positions; their history is not looked at, since no position can come back within three plies.
      moves: 1, or 2 for the actions that do not end the game, but leave every reply with a win at once (static).
    """

    def of_one(state: Any) -> chex.Array:
        actions, valid, mates = wins_at_once(game, state)
        if moves == 2:
            following = jax.vmap(game.step, (None, 0))(state, actions)
            no_defence = jax.vmap(functools.partial(leaves_no_defence, game, state.current_player))(following)
            mates = valid & no_defence
        return jnp.zeros(game.num_actions, bool).at[actions].max(mates)

    positions = jax.vmap(functools.partial(without_history, game))(states)
    return jax.vmap(of_one)(positions) if moves == 1 else jax.lax.map(of_one, positions)


@functools.partial(jax.jit, static_argnums=0)
def random_positions(game: Game, key: chex.PRNGKey) -> tuple[Any, chex.Array, chex.Array]:
    """Positions of random games.

    Returns:
      The positions without history, [NUM_PLIES * NUM_GAMES, ...]; bool [B]: there is something to find for a mate in
      one; bool [B]: the game goes on, and no action wins at once.
    """

    def play(states: Any, key: chex.PRNGKey) -> tuple[Any, Any]:
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


def find_positions(game: Game, moves: int, number: int, key: chex.PRNGKey) -> list[str]:
    """Texts of so many different positions with a mate in `moves`, in which not every action mates.

    Raises:
      ValueError: a round of random games has too few.
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
    raise ValueError(f"{game.name}: {len(texts)} positions with a mate in {moves} found, not {number}")


def read(game: Game, texts: list[str]) -> Any:
    """The positions as states, every leaf [B, ...]."""
    return jax.tree.map(lambda *leaves: np.stack(leaves), *jax.device_get(list(map(game.from_text, texts))))


# What a search finds of them.


def search(game: Game, states: Any, num_simulations: int, **options: Any) -> SearchResult:
    """The search that is asked."""
    options = {"game": game, "evaluator": evaluators.uniform(game), "num_simulations": num_simulations, **options}
    return alphazero_policy(None, jax.random.key(SEED), states, **options)


def count_found(
    game: Game, states: Any, mating: np.ndarray, budgets: tuple[int, ...], *, solver: bool, progress: Progress
) -> list[int]:
    """By budget: in how many of the states [B, ...] the search chooses one of the mating actions, bool [B, A].

    A search goes on from one budget to the next.
    """
    found = np.zeros(len(budgets), int)
    task = progress.add_task(f"{game.name}, solver {'on' if solver else 'off'}", total=len(mating) * len(budgets))
    for number, (size, piece) in enumerate(batches(states, BATCH)):
        expected = mating[number * BATCH :][:size]
        tree, done = None, 0
        for place, budget in enumerate(budgets):
            options = {"solver": solver, "tree": tree, "max_nodes": budgets[-1] + 1}
            result = search(game, piece, budget - done, **options)
            tree, done = result.tree, budget
            found[place] += int(expected[np.arange(size), np.asarray(result.action)[:size]].sum())
            progress.advance(task, size)
    return found.tolist()


def measure_mates(name: str, moves: int, progress: Progress) -> dict[str, Any]:
    """One row of the results: a game's set of mates."""
    game, number = GAMES[name], NUM_POSITIONS[moves]
    texts = find_positions(game, moves, number, jax.random.key(SEED))
    states = read(game, texts)
    mating = np.asarray(mating_actions(game, states, moves))
    legal = np.asarray(jax.vmap(game.legal_action_mask)(states))
    found = {
        f"solver_{'on' if solver else 'off'}": count_found(
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
        "found": found,
        "texts": texts,
    }


def measure_proofs(name: str, progress: Progress) -> dict[str, Any]:
    """One row of the results: how many unfinished positions of a solved game are proven, and how many wrongly.

    What is proven is not searched again with a larger budget, where the search would go the same way.
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
    """All unfinished positions that the start leads to, every leaf [B, ...], and their exact values, float32 [B]."""
    blocks = [block for _, block in solve(game).blocks()]
    everything = jax.tree.map(lambda *leaves: np.concatenate(leaves), *blocks)
    return everything.states, everything.values


def draw(mates: list[dict[str, Any]], proofs: list[dict[str, Any]], path: Path) -> None:
    """Shares against simulations."""
    figure, panels = wide_figure(3, width=12, height=3.8)
    for panel, moves in zip(panels, (1, 2), strict=False):
        rows = [row for row in mates if row["moves"] == moves]
        for row, colour in zip(rows, ("#2a6fbb", "#c8553d", "#3f8f5b"), strict=True):
            for solver, line in (("solver_off", "--"), ("solver_on", "-")):
                share = 100 * np.array(row["found"][solver]) / row["positions"]
                label = row["game"] if solver == "solver_on" else None
                panel.plot(row["simulations"], share, line, color=colour, label=label, marker="o", markersize=3)
        panel.plot([], [], "-", color="#777777", label="solver on")
        panel.plot([], [], "--", color="#777777", label="solver off")
    for row, colour in zip(proofs, ("#7a5195", "#e0a458"), strict=True):
        share = 100 * np.array(row["proven"]) / row["positions"]
        panels[2].plot(row["simulations"], share, color=colour, label=row["game"], marker="o", markersize=3)
    titles = ("mate in one found", "mate in two found", "all positions: value proven")
    for panel, title in zip(panels, titles, strict=True):
        panel.set_xscale("log")
        panel.set_ylim(0, 103)
        panel.yaxis.set_major_formatter("{x:.0f}%")
        style(panel, title, "simulations")
    # Five budgets need no powers of ten.
    panels[0].set_xticks(BUDGETS[1], map(str, BUDGETS[1]))
    panels[0].minorticks_off()
    save_figure(figure, path)


def main(output: Path = RESULTS / "tactics.json", plot: Path = DOCS / "tactics.png") -> None:
    """Measures, writes the results and draws the picture.

    Args:
      output: the results.
      plot: shares against simulations.
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
    tyro.cli(main)
