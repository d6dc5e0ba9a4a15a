"""How much does a network learn in 45 seconds if it is told the truth?

Self-play gives a network targets that are noisy, and wrong at first. Here it learns the exact values and the best
moves of positions of Santorini 3x3, drawn evenly from the solved game, so that only the network and the optimizer
matter. The measure is the share of moves that give away value, and of values with the right sign, on positions that it
never saw. No agent comes from this study.

    python experiments/networks.py

It takes about ten minutes on 2 CPU cores. Run it on an idle machine. Writes experiments/results/networks.json and
docs/networks.png.
"""

import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float32
from rich.console import Console
from rich.table import Table
from study import (
    COLORS,
    DOCS,
    RESULTS,
    RUNS,
    action_mask,
    draw_unfinished,
    run_study,
    save_figure,
    style,
    wide_figure,
    write_results,
)

import azjax
from azjax.core.errors import InputError
from azjax.evaluation import solve
from azjax.evaluation.solution import Solution
from azjax.games.game import Game
from azjax.networks import Network, Variables
from azjax.runs.precision import settle_precision
from azjax.training import Config, Hyper
from azjax.training.learner import optimizer

NETWORKS: dict[str, dict[str, Any]] = {
    "mlp": {"network": "mlp", "width": 512, "depth": 4},
    "equivariant_mlp 512": {"network": "equivariant_mlp", "width": 512, "depth": 2},
    "equivariant_mlp 1024": {"network": "equivariant_mlp", "width": 1024, "depth": 2},
}
OPTIMIZERS = {"adam": 1e-3, "muon": 4e-3}
"""The learning rate of each."""
POSITIONS, HELD_OUT = 2_000_000, 50_000
BATCH, STEPS = 1024, 16  # steps of one call
AVERAGE = 0.998  # of the weights that are measured
_READ = 2048  # positions of the solution at once


class Positions(NamedTuple):
    """P positions: what the network sees, the actions that keep the value, the legal ones, and the values."""

    observations: Float32[np.ndarray, "P *observation"]
    best: Bool[np.ndarray, "P A"]
    legal: Bool[np.ndarray, "P A"]
    values: Float32[np.ndarray, "P"]


def main(
    seconds: float = 45,
    size: int = 3,
    positions: int = POSITIONS,
    held_out: int = HELD_OUT,
    points: int = 6,
    output: Path = RESULTS / "networks.json",
    plot: Path = DOCS / "networks.png",
) -> None:
    """Trains, measures, prints, writes and draws.

    Args:
      seconds: of learning, for each network with each optimizer.
      size: of the board.
      positions: to learn from.
      held_out: other positions, to measure on.
      points: measurements of each.
      output: file of the results.
      plot: picture of the mistakes against the time.
    """
    console = Console()
    game = azjax.make("santorini", size=size, workers=1)
    with console.status(f"solving {game.name} {size}x{size}"):
        drawn = draw_positions(solve(game, max_states=None), positions + held_out)
    if len(drawn.values) <= held_out:
        raise InputError(f"held_out must be below {len(drawn.values)}, the positions of the board, got {held_out}")
    measured = Positions(*(part[:held_out] for part in drawn))
    learned = Positions(*(part[held_out:] for part in drawn))
    rows = []
    for (name, network), (rule, rate) in itertools.product(NETWORKS.items(), OPTIMIZERS.items()):
        config = Config(**network, optimizer=rule, batch_size=BATCH, replay_size=BATCH, symmetries=False)
        config = settle_precision(game, config, RUNS / "networks", console)
        hyper = Hyper(learning_rate=rate)
        for row in learn(game, config, hyper, learned, measured, seconds, points):
            rows.append({"network": name, "optimizer": rule, "precision": config.precision, **row})
        console.print(f"{name}, {rule}: {rows[-1]['mistakes']:.2%} mistakes after {rows[-1]['steps']:,} steps")
    console.print(table(rows))
    settings = {"game": game.name, "size": size, "positions": positions, "held_out": held_out, "batch_size": BATCH}
    write_results(output, "networks.py", settings, rows=rows)
    draw(rows, plot)
    console.print(f"written to {output}, drawn to {plot}", soft_wrap=True)


def draw_positions(solution: Solution, count: int) -> Positions:
    """Unfinished positions, drawn evenly without repetition, in random order."""
    game, random = solution.game, np.random.default_rng(0)
    rows = draw_unfinished(solution, count, random)
    observe = jax.jit(jax.vmap(game.observe))
    found = Positions(
        np.zeros((len(rows), *game.observation_shape), np.float32),
        *(np.zeros((len(rows), game.num_actions), bool) for _ in range(2)),
        np.zeros(len(rows), np.float32),
    )
    for start in range(0, len(rows), _READ):
        block = solution.block(rows[start : start + _READ])
        found.observations[start : start + _READ] = observe(block.states)
        found.values[start : start + _READ] = block.values
        for mask, chosen in ((found.best, block.best), (found.legal, block.legal)):
            mask[start : start + _READ] = action_mask(game, block.actions, chosen)
    order = random.permutation(len(rows))
    return Positions(*(part[order] for part in found))


def learn(
    game: Game,
    config: Config,
    hyper: Hyper,
    learned: Positions,
    measured: Positions,
    seconds: float,
    points: int,
) -> Iterator[dict[str, float]]:
    """Yields the measurements at equal intervals of the seconds of learning."""
    network, rule, random = config.make_network(game), optimizer(config, hyper), np.random.default_rng(0)

    def loss(params: Any, variables: Variables, batch: Positions) -> Float32[Array, ""]:
        output, _ = network.apply({**variables, "params": params}, batch.observations, train=True)
        policy = batch.best / batch.best.sum(axis=1, keepdims=True)
        policy_loss = optax.losses.softmax_cross_entropy(output.prior_logits, policy, where=batch.legal)
        return jnp.mean(policy_loss + (output.value - batch.values) ** 2)

    @jax.jit
    def steps(variables: Variables, average: Variables, state: optax.OptState, batches: Positions) -> Any:
        def step(carry: Any, batch: Positions) -> tuple[Any, None]:
            variables, average, state = carry
            gradient = jax.grad(loss)(variables["params"], variables, batch)
            updates, state = rule.update(gradient, state, variables["params"])
            variables = {**variables, "params": optax.apply_updates(variables["params"], updates)}
            return (variables, optax.incremental_update(variables, average, 1 - AVERAGE), state), None

        return jax.lax.scan(step, (variables, average, state), batches)[0]

    def drawn() -> Positions:
        chosen = random.integers(len(learned.values), size=(STEPS, BATCH))
        return Positions(*(part[chosen] for part in learned))

    variables = network.init(jax.random.key(0), game)
    carry = variables, variables, rule.init(variables["params"])
    jax.block_until_ready(steps(*carry, drawn()))
    spent, done = 0.0, 0
    for point in range(1, points + 1):
        while spent < seconds * point / points:
            batches = jax.device_put(drawn())
            began = time.perf_counter()
            carry = jax.block_until_ready(steps(*carry, batches))
            spent, done = spent + time.perf_counter() - began, done + STEPS
        yield {"seconds": round(spent, 1), "steps": done, **measure(network, carry[1], measured)}


def measure(network: Network, variables: Variables, positions: Positions) -> dict[str, float]:
    """The shares of mistakes and of right signs."""
    apply = jax.jit(lambda observations: network.apply(variables, observations, train=False)[0])
    parts = [apply(positions.observations[start : start + _READ]) for start in range(0, len(positions.values), _READ)]
    logits = np.concatenate([part.prior_logits for part in parts])
    values = np.concatenate([part.value for part in parts])
    moves = np.where(positions.legal, logits, -np.inf).argmax(axis=1)
    kept = np.take_along_axis(positions.best, moves[:, None], axis=1)
    return {
        "mistakes": round(1 - float(kept.mean()), 4),
        "signs_right": round(float((np.sign(values) == positions.values).mean()), 4),
    }


def table(rows: list[dict[str, Any]]) -> Table:
    """The last row of each."""
    shown = Table("network", "optimizer", "precision", "steps", "mistakes", "signs right")
    for row in {(row["network"], row["optimizer"]): row for row in rows}.values():
        shares = [f"{row[name]:.2%}" for name in ("mistakes", "signs_right")]
        shown.add_row(row["network"], row["optimizer"], row["precision"], f"{row['steps']:,}", *shares)
    return shown


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Draws both shares against the seconds."""
    figure, panels = wide_figure(2)
    names = list(dict.fromkeys(row["network"] for row in rows))
    shares = {"mistakes": "mistakes", "signs_right": "signs right"}
    for panel, (share, title) in zip(panels, shares.items(), strict=True):
        for name, rule in itertools.product(names, OPTIMIZERS):
            own = [row for row in rows if (row["network"], row["optimizer"]) == (name, rule)]
            points = [row["seconds"] for row in own], [row[share] for row in own]
            color, line = COLORS[names.index(name)], "-" if rule == "muon" else "--"
            panel.plot(*points, color=color, linestyle=line, marker="o", markersize=3, label=f"{name}, {rule}")
        style(panel, title, "seconds of learning", shares=True)
    panels[0].set_ylim(bottom=0)
    save_figure(figure, path)


if __name__ == "__main__":
    run_study(main)
