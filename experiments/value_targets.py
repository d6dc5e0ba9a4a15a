"""What should a position learn as its value: the result of its game, the value of its search, or something between?

The packaged agent plays games of self-play from positions of the opening of Connect Four whose exact value is known
(`connect_four_positions.py`), several from each. The games and the targets are those of training. A target is wrong in
two ways: its mean over many games differs from the truth, which more games do not mend, and single games vary, so that
more of them are needed. Nothing of this enters training.

    python experiments/value_targets.py

It takes half an hour on one CPU core. Writes experiments/results/value_targets.json. Axis letters: `N` positions,
`Q` games of each.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from connect_four import POSITIONS, load_positions
from jaxtyping import Array, Float32, PRNGKeyArray
from rich.console import Console
from rich.progress import track
from rich.table import Table
from study import RESULTS, run_study, write_results

import azjax
from azjax.evaluation import choose, network_player
from azjax.packaged import Agent, load_agent
from azjax.training import Config
from azjax.training.loss import value_target
from azjax.training.replay import Examples, insert, new_replay
from azjax.training.restarts import begin_games
from azjax.training.self_play import Games, self_play

LAST_PLY = 16
AS_THEY_ARE = {"value_scale": 0.5, "rescale_values": False, "max_num_considered_actions": 8}
"""Values that the search does not rescale, and 8 actions at its root."""
VARIANTS: dict[str, dict[str, Any]] = {
    "results": {"root_value_fraction": 0.0},
    "three quarters results, a quarter values": {"root_value_fraction": 0.25},
    "results; values as they are": {"root_value_fraction": 0.0, **AS_THEY_ARE},
    "half results, half values": {"root_value_fraction": 0.5, **AS_THEY_ARE},
    "results up to exploratory moves": {"root_value_fraction": 0.0, "trace_cut": 0.2, **AS_THEY_ARE},
    **{
        f"lambda-returns, {share}": {"root_value_fraction": 0.0, "td_lambda": share, **AS_THEY_ARE}
        for share in (0.95, 0.9, 0.8)
    },
    "values": {"root_value_fraction": 1.0, **AS_THEY_ARE},
    "half temperature, lambda-returns, 0.9": {
        "root_value_fraction": 0.0,
        "td_lambda": 0.9,
        "temperature": 0.5,
        **AS_THEY_ARE,
    },
}
"""Changes of the preset."""

Row = dict[str, Any]


def main(
    agent: str = "connect_four",
    games: int = 8,
    seed: int = 0,
    output: Path = RESULTS / "value_targets.json",
) -> None:
    """Plays, measures, prints and writes.

    Args:
      agent: a packaged agent of Connect Four.
      games: Q, games from each position.
      seed: of the games.
      output: file of the results.
    """
    console = Console()
    player = load_agent(agent)
    positions = load_positions(player.game, json.loads(POSITIONS.read_text()))
    early = np.flatnonzero(positions.plies <= LAST_PLY)
    states, truth = jax.tree.map(lambda leaf: leaf[early], positions.states), positions.values[early]
    predicted = choose(network_player(player.game, player.network, player.variables), jax.random.key(seed), states)
    rows = [{"target": "the network itself", **errors(np.asarray(predicted.value)[:, None], truth)}]
    for name, changes in track(VARIANTS.items(), "games", console=console):
        play = make_play(player, azjax.preset(player.game).replace(**changes), states)
        targets = np.stack([play(key) for key in jax.random.split(jax.random.key(seed), games)], axis=1)
        rows.append({"target": name, **errors(targets, truth)})
    console.print(table(rows))
    settings = {"agent": agent, "positions": len(early), "last_ply": LAST_PLY, "games": games, "variants": VARIANTS}
    write_results(output, "value_targets.py", settings, rows=rows)
    console.print(f"written to {output}", soft_wrap=True)


def make_play(agent: Agent, config: Config, states: Any) -> Callable[[PRNGKeyArray], Float32[Array, "N"]]:
    """Makes `play(key)`: the value targets of the positions, after a game of self-play from each."""
    game, count = agent.game, len(states.terminated)
    plies = game.max_plies
    config = config.replace(num_games=count, steps_per_iteration=plies, replay_size=plies * count)
    hyper = jax.tree.map(jnp.float32, config.hyper)

    @jax.jit
    def play(key: PRNGKeyArray) -> Float32[Array, "N"]:
        games = Games(begin_games(game, states), jnp.zeros(count, jnp.int32))
        _, steps = self_play(game, agent.network, config, agent.variables, hyper, jnp.int32(0), key, games)
        replay = insert(new_replay(game, states, plies), steps, plies)
        first, outcome = jax.tree.map(lambda leaf: leaf[0], (replay.steps, replay.outcome))
        return value_target(hyper, Examples(first.states, first.policy, outcome, first.value, first.proven))

    return play


def errors(targets: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Mean squares over the positions, for targets [N, Q] of positions with exact values [N].

    `systematic` is that of the mean of many games: products of different games leave out what varies. Its standard
    error is over the positions.
    """
    wrong = targets - truth[:, None]
    squares = (wrong**2).mean(axis=1)
    count = targets.shape[1]
    of_the_mean = squares if count == 1 else (wrong.mean(axis=1) ** 2 * count - squares) / (count - 1)
    return {
        "systematic": round(float(of_the_mean.mean()), 4),
        "standard_error": round(float(of_the_mean.std() / np.sqrt(len(truth))), 4),
        "of_one_game": round(float(squares.mean()), 4),
    }


def table(rows: list[Row]) -> Table:
    """The results as a table."""
    shown = Table("value target", "squared error of the mean", "", "of one game", title="openings of Connect Four")
    for row in rows:
        shown.add_row(
            row["target"],
            f"{row['systematic']:.3f}",
            f"± {row['standard_error']:.3f}",
            f"{row['of_one_game']:.3f}",
        )
    return shown


if __name__ == "__main__":
    run_study(main)
