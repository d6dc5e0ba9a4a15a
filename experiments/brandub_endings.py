"""How well does the packaged Brandub agent play the endings whose values are known?

The network alone, and with 100 and 1,000 simulations, moves in two sets of positions. A move is right if the position
after it has the same value for the mover.

* Its own games: the network plays against itself, drawing moves from its policy, after 0 to 12 random plies. The
  positions that the table has are collected, each once, its images being the same.
* Even draws: positions of the table in which some moves are right and some wrong, half of them for each side to move.

    mkdir -p runs/solved
    azjax solve brandub --endings 5 --output runs/solved/brandub_endings.npz
    python experiments/brandub_endings.py

Writes experiments/results/brandub_endings.json, and docs/pictures/brandub_ending_*.svg.
"""

import functools
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn
from study import DOCS, RESULTS, RUNS, run_study, write_results

from azjax.agents import load_player
from azjax.core.errors import InputError
from azjax.evaluation import Player, act
from azjax.evaluation.retrograde import EndingSolution, EndingTable, PartSummary, load_endings
from azjax.games.game import AnyGame, State, random_legal_action
from azjax.render import svg

AGENT = "brandub"
SIMULATIONS = (0, 100, 1000)  # 0 is the network alone
GAMES = 512  # side by side
RANDOM_PLIES = 12
BATCH = 500
EXAMPLES = 5
LONG = 20  # plies of a win whose position is drawn
SEED = 0


def main(
    table: Path = RUNS / "solved" / "brandub_endings.npz",
    games: int = 100 * GAMES,
    positions: int = 10_000,
    output: Path = RESULTS / "brandub_endings.json",
) -> None:
    """Judges the agent.

    Args:
      table: the endings, from `azjax solve brandub --endings 5 --output FILE`.
      games: of the network against itself, a multiple of 512.
      positions: drawn evenly, a multiple of 500.
      output: file of the results.
    """
    for name, number, part in (("games", games, GAMES), ("positions", positions, BATCH)):
        if number < 1 or number % part:
            raise InputError(f"{name} must be a multiple of {part}, got {number}")
    solution = load_endings(table)
    game = solution.game
    with Progress(*Progress.get_default_columns(), MofNCompleteColumn(), TimeElapsedColumn()) as progress:
        sets = {"own_games": reached(solution, games, progress), "even_draws": drawn(solution, positions, progress)}
        rows: dict[str, Any] = {}
        for name, numbers in sets.items():
            if not len(numbers):
                continue
            rows[name] = {
                who(count): judged(solution, player_with(count), numbers, progress, f"{name}, {who(count)}")
                for count in SIMULATIONS
            }
    settings = {"agent": AGENT, "pieces": solution.endings.pieces, "games": games, "positions": positions}
    settings |= {"random_plies": RANDOM_PLIES, "seed": SEED}
    write_results(output, "brandub_endings.py", settings, endings=endings(solution), agent=rows)
    for part in solution.summary():
        if part.longest_win_in is not None and part.longest_win >= LONG:
            pieces = part.name.replace(",", "").replace(" ", "_")
            picture = DOCS / "pictures" / f"brandub_ending_{pieces}_{'ad'[part.player]}.svg"
            picture.write_text(svg(game, position(solution, part.longest_win_in)), encoding="utf-8")


def who(num_simulations: int) -> str:
    """What the results call the agent with this many simulations."""
    return f"{num_simulations} simulations" if num_simulations else "network"


def player_with(num_simulations: int) -> Player:
    """The agent with this many simulations; with none it plays the best move of its network."""
    if not num_simulations:
        return load_player(AGENT, level="medium")
    return load_player(AGENT, num_simulations=num_simulations)


def position(solution: EndingSolution, number: int) -> State:
    """The position of a number."""
    state: State = jax.tree.map(lambda leaf: leaf[0], solution.states(np.array([number])))
    return state


def endings(solution: EndingSolution) -> list[dict[str, Any]]:
    """The counts of each part, and where the longest wins begin."""

    def row(part: PartSummary) -> dict[str, Any]:
        text = None
        if part.longest_win_in is not None:
            text = solution.game.to_text(position(solution, part.longest_win_in))  # type: ignore[attr-defined]
        return {**part._asdict(), "longest_win_in": text}

    return [row(part) for part in solution.summary()]


# The positions.


def reached(solution: EndingSolution, games: int, progress: Progress) -> np.ndarray:
    """The numbers of the positions of the table that games of the network reach."""
    player, game, table = load_player(AGENT, level="easy"), solution.game, solution.best_moves()
    found: dict[int, None] = {}
    task, key = progress.add_task("games", total=games), jax.random.key(SEED)
    for _ in range(games // GAMES):
        key, start_key = jax.random.split(key)
        states = opening(game, jax.random.split(start_key, GAMES))
        while not states.terminated.all():
            key, move_key = jax.random.split(key)
            states = steps(game, states, act(player, move_key, states)[0])
            known, numbers = known_numbers(table, states)
            found |= dict.fromkeys(np.asarray(numbers)[np.asarray(known)].tolist())
        progress.advance(task, GAMES)
    return np.array(list(found), np.uint32)


def drawn(solution: EndingSolution, count: int, progress: Progress) -> np.ndarray:
    """The numbers of this many positions with right and wrong moves, half of them for each side to move."""
    table, generator = solution.best_moves(), np.random.default_rng(SEED)
    found: tuple[dict[int, None], dict[int, None]] = ({}, {})
    task, each = progress.add_task("drawing positions", total=count), count // 2
    while min(map(len, found)) < each:
        numbers = generator.integers(solution.endings.num_position_numbers, size=BATCH, dtype=np.uint32)
        states = solution.states(numbers)
        has_one, side = np.asarray(has_choice(solution.game, table, states)), np.asarray(states.current_player)
        for player in range(2):
            found[player].update(dict.fromkeys(numbers[has_one & (side == player)].tolist()))
        progress.update(task, completed=sum(min(len(own), each) for own in found))
    return np.concatenate([np.array(list(own)[:each], np.uint32) for own in found])


@functools.partial(jax.jit, static_argnums=0)
def has_choice(game: AnyGame, table: EndingTable, states: State) -> jax.Array:
    """Whether these are unfinished positions with right and wrong moves."""
    known, score = table.score(states)
    _, scores = table.move_scores(game, states)
    wrong = (scores != -128) & (jnp.sign(scores) < jnp.sign(score)[:, None])
    return known & jnp.any(wrong, axis=1)


@functools.partial(jax.jit, static_argnums=0)
@functools.partial(jax.vmap, in_axes=(None, 0))
def opening(game: AnyGame, key: jax.Array) -> State:
    """The start, after random plies; the game may be over."""
    plies_key, moves_key = jax.random.split(key)
    plies = jax.random.randint(plies_key, (), 0, RANDOM_PLIES + 1)

    def move(ply: jax.Array, state: State) -> State:
        action = random_legal_action(game, jax.random.fold_in(moves_key, ply), state)
        following: State = game.step(state, action)
        return following

    state: State = jax.lax.fori_loop(0, plies, move, game.init(key))
    return state


@functools.partial(jax.jit, static_argnums=0)
def steps(game: AnyGame, states: State, actions: jax.Array) -> State:
    following: State = jax.vmap(game.step)(states, actions)
    return following


@jax.jit
def known_numbers(table: EndingTable, states: State) -> tuple[jax.Array, jax.Array]:
    """Which positions the table has, and the lowest number of their images."""
    numbers = jax.vmap(table.endings.position_number)(states)
    return table.score(states)[0], jnp.min(jax.vmap(table.endings.image_numbers)(numbers), axis=1)


# How the agent plays them.


def judged(
    solution: EndingSolution, player: Player, numbers: np.ndarray, progress: Progress, name: str
) -> dict[str, Any]:
    """Shares of moves that keep the value, by side and value, and the wins that were given away first."""
    game, table = solution.game, solution.best_moves()
    task = progress.add_task(name, total=len(numbers))
    rows = []
    for start in range(0, len(numbers), BATCH):
        states = solution.states(np.resize(numbers[start : start + BATCH], BATCH))
        actions, choice, _ = act(player, jax.random.key(start), states)
        rows.append(np.stack([*map(np.asarray, judge(game, table, states, actions)), np.asarray(choice.value)]))
        progress.advance(task, BATCH)
    side, score, after, value = np.concatenate(rows, axis=1)[:, : len(numbers)]
    kept = np.sign(after) == np.sign(score)
    shares: dict[str, Any] = {}
    for player_number, to_move in enumerate(("attackers", "defenders")):
        for word, sign in (("won", 1), ("drawn", 0)):
            here = (side == player_number) & (np.sign(score) == sign)
            kept_here = int(kept[here].sum())
            shares[f"{word}, {to_move} to move"] = {"positions": int(here.sum()), "kept": kept_here}
    decided = score != 0
    lost = np.flatnonzero(~kept & (score > 0))
    examples = [
        {"position": game.to_text(position(solution, int(numbers[row]))), "win_in": int(127 - score[row])}  # type: ignore[attr-defined]
        for row in lost[np.argsort(-score[lost], kind="stable")][:EXAMPLES]
    ]
    quick = {
        f"won in {low}" + f" to {high}" * (high > low): {
            "positions": int(here.sum()),
            "kept": int(kept[here].sum()),
        }
        for low, high in ((1, 1), (2, 3), (4, 5), (6, 9), (10, 120))
        if (here := (score > 0) & (127 - score >= low) & (127 - score <= high)).any()
    }
    return {
        "kept": int(kept[score >= 0].sum()),
        "positions": int((score >= 0).sum()),
        "right_signs": int((np.sign(value) == np.sign(score))[decided].sum()),
        "decided": int(decided.sum()),
        "by_side": shares,
        "by_distance": quick,
        "wins_given_away": examples,
    }


@functools.partial(jax.jit, static_argnums=0)
def judge(
    game: AnyGame, table: EndingTable, states: State, actions: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The side to move, the score of the position, and that of the action."""
    slots, scores = table.move_scores(game, states)
    chosen = jnp.max(jnp.where(slots == actions[:, None], scores, -128), axis=1)
    return states.current_player, table.score(states)[1], chosen


if __name__ == "__main__":
    run_study(main)
