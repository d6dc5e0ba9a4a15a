"""How fast are search, rules and learning on a GPU, beside mctx and pgx, and what does an agent learn there?

Four parts: `search`, simulations per second of searches with the same rules and the same stand-in for a network, beside
mctx; `learning`, positions per second of the loop of `self_play_speed.py`, beside pgx and mctx, in Connect Four with a
residual network; `games`, steps per second of random play, beside pgx; `training`, the mistakes of a residual network
after 330 iterations of Connect Four on the positions of `connect_four_positions.py`, alone and with 400 simulations.

    python experiments/on_a_gpu.py

On an NVIDIA H200 the parts take 106, 42, 22 and, before mistakes are counted, 207 seconds. Writes
experiments/results/gpu.json after each part; parts that are not measured stay as they are.
"""

import json
import time
from pathlib import Path
from typing import Any, Literal

import connect_four
import jax
import self_play_speed
from rich.console import Console
from study import RESULTS, RUNS, results_so_far, run_study, trained, write_results

import azjax
from azjax.benchmark.games import GamesBenchmark
from azjax.benchmark.search import Case, measure_cases
from azjax.core.cuda_graphs import record_loops
from azjax.runs import load_variables
from azjax.training import Config, Hyper

_SANTORINI = {"size": 5, "workers": 2}
_FORGETFUL = {"repetition": "never"}  # a recurrent_fn of mctx cannot see the path to its node
CASES = (
    Case("tictactoe", "tictactoe", 1024, 100, evaluators=("peaked",)),
    Case("connect_four", "connect_four", 8192, 64, evaluators=("peaked",)),
    Case("santorini 5x5, 2 workers", "santorini", 4096, 64, _SANTORINI, ("peaked",)),
    Case("brandub", "brandub", 256, 32, evaluators=("peaked",), rival_options=_FORGETFUL),
    Case("brandub", "brandub", 4096, 32, evaluators=("peaked",), rival_options=_FORGETFUL),
)
GAMES = ("connect_four", "othello")
LEARNING = Config(
    network="resnet",
    width=64,
    depth=4,
    precision="float32",
    policy="gumbel",
    num_simulations=32,
    num_games=4096,
    steps_per_iteration=8,
    replay_size=262_144,
    updates_per_iteration=16,
    batch_size=2048,
    hyper=Hyper(l2=0.0),
)
TRAINING = Config(
    iterations=330,
    network="resnet",
    width=64,
    depth=6,
    precision="bfloat16",
    policy="gumbel",
    num_simulations=32,
    max_num_considered_actions=8,
    value_scale=0.5,
    rescale_values=False,
    solver=True,
    num_games=4096,
    steps_per_iteration=8,
    random_start_plies=20,
    replay_size=2_097_152,
    updates_per_iteration=48,
    warmup_updates=200,
    decay_updates=48 * 330,
    batch_size=2048,
    checkpoint_every=66,
    keep_checkpoints=5,
    hyper=Hyper(learning_rate=2e-3, final_learning_rate=1e-5, l2=1e-5, ema_decay=0.999, root_value_fraction=0.5),
)
NUM_SIMULATIONS = 400


def main(
    parts: tuple[Literal["search", "learning", "games", "training"], ...] = ("search", "learning", "games", "training"),
    repeats: int = 5,
    output: Path = RESULTS / "gpu.json",
) -> None:
    """Measures and writes the results.

    Args:
      parts: of `search`, `learning`, `games` and `training`, measured in this order.
      repeats: rounds of each measurement; the result is the median.
      output: file of the results.
    """
    record_loops()  # JAX has not started its devices yet
    console = Console(width=140)
    settings = {"repeats": repeats, "device": jax.devices()[0].device_kind}
    measured = results_so_far(output, settings, parts={})["parts"]
    for part in parts:
        began = time.perf_counter()
        if part == "search":
            rows = measure_cases(CASES, repeats, jax.device_count(), console)["rows"]
        elif part == "learning":
            rows = self_play_speed.measure(LEARNING, [1], repeats, with_flax=False)
        elif part == "training":
            rows = training(console)
        else:
            rows = GamesBenchmark(games=GAMES, batches=(4096, 65_536), plies=256, repeats=repeats).run(console)["rows"]
        measured[part] = rows
        for row in rows:
            console.print(row)
        console.print(f"{part}: {time.perf_counter() - began:.0f} s")
        write_results(output, "on_a_gpu.py", settings, parts=measured)


def training(console: Console) -> list[dict[str, Any]]:
    """The mistakes of the trained network, alone and with a search; resumes an unfinished run."""
    game = azjax.make("connect_four")
    run = trained(game, RUNS / "connect_four-gpu", console, config=TRAINING)
    step, variables = load_variables(run.folder)
    positions = connect_four.load_positions(game, json.loads(connect_four.POSITIONS.read_text()))
    rows = []
    for name, player in connect_four.players(game, TRAINING, variables, NUM_SIMULATIONS).items():
        shares = connect_four.mistakes(connect_four.move_probabilities(player, positions), positions)
        rows.append({"player": name, "seconds": run.seconds(step), "all": shares["all"], "narrow": shares["narrow"]})
    return rows


if __name__ == "__main__":
    run_study(main)
