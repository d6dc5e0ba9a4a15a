"""Brandub: one game as the notebook plays it, with predicted policies and values, search policies and the result.

The notebook from which this game comes plays a game with a dummy in place of a network. It returns, for each position,
the predicted policy, the search policy, the predicted value and the result. Here the packaged agent plays, and
`play_game` returns the same data. The table shows, for every position, the three most likely moves of the network and
of the search. `against_uct.py brandub` trains the agent and plays its matches.

    python experiments/brandub.py

It takes half a minute on 2 CPU cores. Writes experiments/results/brandub_game.json and docs/brandub_game.svg.
"""

import time
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from rich.console import Console
from rich.table import Table
from study import DOCS, RESULTS, run_study, write_results

import azjax
from azjax.agents import game_of
from azjax.core.errors import InputError
from azjax.evaluation import Player, act, choose
from azjax.evaluation.host_games import host_step
from azjax.render import animate

NOTEBOOK_SIMULATIONS_PER_SECOND = (106, 137)  # measured on a machine of 2 cores


class PlayedGame(NamedTuple):
    """A game of T moves. Values are from the point of view of the player to move.

    Attributes:
      states: T + 1 positions.
      actions: T actions.
      predicted_policies: float [T, A]; policies of the network.
      search_policies: float [T, A]; shares of visits.
      predicted_values: float [T]; values of the network.
      results: float [T]; result of the game for the player to move.
    """

    states: list[Any]
    actions: list[int]
    predicted_policies: np.ndarray
    search_policies: np.ndarray
    predicted_values: np.ndarray
    results: np.ndarray


def main(
    agent: str = "brandub",
    num_simulations: int = 400,
    seed: int = 0,
    output: Path = RESULTS / "brandub_game.json",
    picture: Path = DOCS / "brandub_game.svg",
) -> None:
    """Plays the game, prints it, writes the results and draws it.

    Args:
      agent: a packaged agent, or a run folder.
      num_simulations: simulations of each search.
      seed: seed of the players.
      output: file of the game.
      picture: animated picture of the game.
    """
    console = Console(highlight=False)
    network = azjax.load_player(agent, level="medium")
    search = azjax.load_player(agent, num_simulations=num_simulations)
    game = game_of(agent)
    if game is None:
        raise InputError(f"{agent} is not a trained agent")
    played = play_game(game, network, search, seed)
    began = time.perf_counter()
    play_game(game, network, search, seed)  # compiled now
    rate = len(played.actions) * num_simulations / (time.perf_counter() - began)
    console.print(table(game, played))
    end = played.results[0]
    console.print("a draw" if end == 0 else f"won by {game.player_names[0 if end > 0 else 1]}")
    low, high = NOTEBOOK_SIMULATIONS_PER_SECOND
    console.print(f"{rate:,.0f} simulations a second, one position at a time; the notebook: {low} to {high}")
    rows = [
        {"move": game.action_to_text(state, action), "value": round(float(value), 3), "result": float(result)}
        for state, action, value, result in zip(
            played.states, played.actions, played.predicted_values, played.results, strict=False
        )
    ]
    settings = {"agent": agent, "num_simulations": num_simulations, "seed": seed}
    write_results(output, "brandub.py", settings, simulations_per_second=round(rate), moves=rows)
    picture.write_text(animate(game, played.states, played.actions))
    console.print(f"written to {output}, drawn to {picture}", soft_wrap=True)


def play_game(game: Any, network: Player, search: Player, seed: int) -> PlayedGame:
    """Plays a game of the search against itself; the network evaluates every position too."""
    key = jax.random.key(seed)
    state = jax.tree.map(lambda leaf: np.asarray(leaf)[None], game.init(key))
    states, actions, predicted, searched, values, movers = [state], [], [], [], [], []
    while not states[-1].terminated[0]:
        key, search_key = jax.random.split(key)
        alone = choose(network, search_key, states[-1])
        action, choice, _ = act(search, search_key, states[-1])
        movers.append(int(states[-1].current_player[0]))
        predicted.append(np.asarray(alone.preferences[0]))
        values.append(float(alone.value[0]))
        searched.append(np.asarray(choice.preferences[0]))
        actions.append(int(action[0]))
        states.append(host_step(game, states[-1], action))
    rewards = states[-1].rewards[0]
    return PlayedGame(
        states=[jax.tree.map(lambda leaf: leaf[0], state) for state in states],
        actions=actions,
        predicted_policies=np.array(predicted),
        search_policies=np.array(searched),
        predicted_values=np.array(values),
        results=np.array([rewards[mover] for mover in movers]) + 0.0,  # no -0
    )


def table(game: Any, played: PlayedGame) -> Table:
    """A table with a row for each move."""
    shown = Table("ply", "to move", "move", "network", "search", "value", "result")
    for ply, action in enumerate(played.actions):
        state = played.states[ply]
        most_likely = (
            best(game, state, policies[ply]) for policies in (played.predicted_policies, played.search_policies)
        )
        shown.add_row(
            str(ply),
            game.player_names[int(state.current_player)],
            game.action_to_text(state, action),
            *most_likely,
            f"{played.predicted_values[ply]:+.2f}",
            f"{played.results[ply]:+.0f}",
        )
    return shown


def best(game: Any, state: Any, policy: np.ndarray, count: int = 3) -> str:
    """The `count` most likely moves with their probabilities."""
    most_likely = [action for action in np.argsort(-policy)[:count].tolist() if policy[action] > 0]
    return ", ".join(f"{game.action_to_text(state, action)} {policy[action]:.0%}" for action in most_likely)


if __name__ == "__main__":
    run_study(main)
