"""What limits learning, at equal training time?

Trains Connect Four from self-play for two minutes on 2 CPU cores with a base configuration: a perceptron of four layers
of 512 units and a constant learning rate. Each variant changes one setting: the starts of the games, the value target,
the simulations a move, the network's precision, size and kind, or how often a position is used for learning. Mistakes
of every network are counted on the positions of `connect_four_positions.py`. For the base the study also measures the
time of each part of an iteration. For the base and for the packaged agent it measures, by ply, the error of the value
and the entropy of the policy.

    python experiments/holding_back.py

Variants that are in the results are trained again only with --again. Run it on an idle machine, because all variants
have equal time. Writes experiments/results/holding_back.json and docs/holding_back.png.
"""

import dataclasses
import json
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from connect_four import POSITIONS, Positions, load_positions, mistakes, move_probabilities
from rich.console import Console
from rich.progress import track
from rich.table import Table
from study import COLORS, DOCS, RESULTS, results_so_far, run_study, save_figure, style, wide_figure, write_results

import azjax
from azjax.evaluation import choose, network_player, search_player
from azjax.networks import Network, Variables
from azjax.packaged import load_agent
from azjax.runs import measure_throughput
from azjax.search import evaluators
from azjax.training import Config, Hyper, TrainState, init, make_iteration

GAME = azjax.make("connect_four")
BASE = Config(
    network="mlp",
    width=512,
    depth=4,
    precision="bfloat16",
    policy="gumbel",
    num_simulations=16,
    solver=True,
    num_games=512,
    steps_per_iteration=8,
    random_start_plies=20,
    replay_size=524_288,
    updates_per_iteration=16,
    batch_size=1024,
    hyper=Hyper(final_learning_rate=1e-5, l2=1e-6, ema_decay=0.999, root_value_fraction=0.25),
)

GROUPS: dict[str, dict[str, Config]] = {
    "starts and targets": {
        "0 to 30 random plies": BASE.replace(random_start_plies=30),
        "from the start alone": BASE.replace(random_start_plies=0),
        "targets not proven": BASE.replace(solver=False),
        "games' results alone": BASE.replace(root_value_fraction=0.0),
        "no noise in self-play": BASE.replace(temperature=0.0),
    },
    "simulations": {
        "8 simulations": BASE.replace(num_simulations=8),
        "32 simulations": BASE.replace(num_simulations=32),
        "PUCT, 16 simulations": BASE.replace(policy="alphazero"),
        "PUCT, 64 simulations": BASE.replace(policy="alphazero", num_simulations=64),
    },
    "network": {
        "float32": BASE.replace(precision="float32"),
        "mlp 4 x 256": BASE.replace(width=256),
        "mlp 4 x 1024": BASE.replace(width=1024),
        "mlp 2 x 512": BASE.replace(depth=2),
        "resnet 4 x 32": BASE.replace(network="resnet", width=32, depth=4),
    },
    "replay": {
        "learned from once": BASE.replace(updates_per_iteration=BASE.updates_per_iteration // 4),
        "learned from 16 times": BASE.replace(updates_per_iteration=BASE.updates_per_iteration * 4),
        "an eighth of the replay": BASE.replace(replay_size=BASE.replay_size // 8),
    },
}
BASE_NAME = "base"


def main(
    seconds: float = 120.0,
    points: int = 5,
    num_simulations: int = 400,
    again: bool = False,
    output: Path = RESULTS / "holding_back.json",
    plot: Path = DOCS / "holding_back.png",
) -> None:
    """Trains all variants, counts mistakes, writes and draws the results.

    Args:
      seconds: training time of each variant, without compilation.
      points: number of points of a curve.
      num_simulations: simulations of the search with the last network.
      again: train all variants, including those in the results.
      output: file of the results.
      plot: picture of the curves.
    """
    console = Console()
    settings = {"seconds": seconds, "points": points, "num_simulations": num_simulations}
    before = {} if again else results_so_far(output, settings, base=None, rows=[])
    rows, base = before.get("rows", []), before.get("base")
    positions = load_positions(GAME, json.loads(POSITIONS.read_text()))
    wanted = [("", BASE_NAME, BASE), *((g, n, config) for g, of in GROUPS.items() for n, config in of.items())]
    for group, name, config in track(wanted, "variants", console=console):
        described = json.loads(json.dumps(dataclasses.asdict(config)))
        if any((row["name"], row["config"]) == (name, described) for row in rows):
            continue
        state, row = train_for(config, seconds, points, num_simulations, positions)
        rows = [*(other for other in rows if other["name"] != name), {"group": group, "name": name, **row}]
        rows[-1]["config"] = described
        if name == BASE_NAME:
            shares = measure_throughput(GAME, config, state).shares
            base = {
                "time": {part: round(share, 3) for part, share in shares.items()},
                "by_ply": by_ply(config.make_network(GAME), state.ema, positions),
            }
        write_results(output, "holding_back.py", settings, base=base, rows=rows)
    order = [name for _, name, _ in wanted]
    rows = sorted((row for row in rows if row["name"] in order), key=lambda row: order.index(row["name"]))
    packed = load_agent(GAME.name)
    agent = {"by_ply": by_ply(packed.network, packed.variables, positions)}
    write_results(output, "holding_back.py", settings, base=base, agent=agent, rows=rows)
    console.print(table(rows))
    console.print(base["time"] if base else "")
    draw(rows, base, agent, plot)
    console.print(f"written to {output}, drawn to {plot}", soft_wrap=True)


def train_for(
    config: Config, seconds: float, points: int, num_simulations: int, positions: Positions
) -> tuple[TrainState, dict[str, Any]]:
    """Trains for `seconds` and counts mistakes at `points` times; counting is not timed."""
    hyper = jax.tree.map(jnp.float32, config.hyper)
    state = jax.jit(lambda: init(GAME, config, 0, hyper))()
    iterate = jax.jit(make_iteration(GAME, config), donate_argnums=0).lower(state, hyper).compile()
    network, taken, iterations, ended, curve = config.make_network(GAME), 0.0, 0, 0.0, []
    metrics: dict[str, Any] = {}
    for point in range(1, points + 1):
        while taken < seconds * point / points:
            began = time.perf_counter()
            state, metrics = jax.block_until_ready(iterate(state, hyper))
            taken += time.perf_counter() - began
            iterations, ended = iterations + 1, ended + float(metrics["games"])
        player = network_player(GAME, network, state.ema)
        errors = mistakes(move_probabilities(player, positions), positions)
        curve.append({"seconds": round(taken, 1), "mistakes": errors["all"], "narrow": errors["narrow"]})
    evaluator = evaluators.network(network, GAME)
    search = search_player(GAME, evaluator, state.ema, num_simulations=num_simulations)
    errors = mistakes(move_probabilities(search, positions), positions)
    played = iterations * config.num_games * config.steps_per_iteration
    return state, {
        "iterations": iterations,
        "positions": played,
        "positions_per_game": round(played / max(ended, 1), 1),
        "target_entropy": round(float(metrics["target_entropy"]), 3),
        "network": curve[-1],
        "search": {"mistakes": errors["all"], "narrow": errors["narrow"]},
        "curve": curve,
    }


def by_ply(network: Network, variables: Variables, positions: Positions) -> dict[str, list[float]]:
    """For each ply: mean absolute error of the value, entropy of the policy in nats, and share of mistakes."""
    player = network_player(GAME, network, variables, temperature=1.0)
    choice = jax.device_get(choose(player, jax.random.key(0), positions.states))
    error = np.abs(choice.value - positions.values)
    policy = choice.preferences
    entropy = -np.sum(policy * np.log(np.where(policy > 0, policy, 1.0)), axis=1)
    best = np.argmax(policy, axis=1)
    wrong = ~positions.keeps[np.arange(len(best)), best]
    parts = {"value_error": error, "policy_entropy": entropy, "mistakes": wrong}
    plies = range(positions.plies.max() + 1)
    return {
        name: [round(float(part[positions.plies == ply].mean()), 4) for ply in plies] for name, part in parts.items()
    }


def table(rows: list[dict[str, Any]]) -> Table:
    """The results as a table."""
    heads = ("positions", "a game", "entropy of targets", "network", "narrow", "with search", "narrow")
    shown = Table("", *heads)
    for row in rows:
        shares = [row[player][kind] for player in ("network", "search") for kind in ("mistakes", "narrow")]
        figures = [f"{row['positions']:,}", f"{row['positions_per_game']:.1f}", f"{row['target_entropy']:.2f}"]
        shown.add_row(row["name"], *figures, *(f"{share:.1%}" for share in shares))
    return shown


def draw(rows: list[dict[str, Any]], base: dict[str, Any] | None, agent: dict[str, Any], path: Path) -> None:
    """Draws curves with the base for each group, and the base and the packaged agent by ply."""
    figure, (*panels, last) = wide_figure(len(GROUPS) + 1, width=16)
    for panel, group in zip(panels, GROUPS, strict=True):
        chosen = [row for row in rows if row["group"] in ("", group)]
        for row, color in zip(chosen, COLORS, strict=False):
            minutes = [point["seconds"] / 60 for point in row["curve"]]
            panel.plot(minutes, [point["mistakes"] for point in row["curve"]], color=color, label=row["name"])
        panel.sharey(panels[0])
        style(panel, group, "minutes", shares=True)
    panels[0].set_ylabel("mistakes of the network alone")
    panels[0].set_ylim(bottom=0)
    for label, part, line in (("base", base, ":"), ("agent", agent, "-")):
        for (name, values), color in zip(part["by_ply"].items() if part else (), COLORS, strict=False):
            last.plot(values, color=color, linestyle=line, label=f"{name.replace('_', ' ')}, {label}")
    style(last, "by ply", "ply")
    last.set_ylim(bottom=0)
    save_figure(figure, path)


if __name__ == "__main__":
    run_study(main)
