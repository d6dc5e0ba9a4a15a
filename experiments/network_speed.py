"""How fast are the networks, and how near do they come to the rate of matrix products?

Each network evaluates positions of Connect Four and computes gradients from them, in float32 and bfloat16, inside a
loop, as runs do. Its work is counted in FLOPs by XLA, for the layers as they are defined: a convolution counts alike
whether it is computed by Winograd's algorithm or not, and a gradient as two evaluations beside its own. The rate of a
large matrix product is measured in the same run.

    python experiments/network_speed.py

It takes some minutes on 2 CPU cores; run it on an idle machine. Writes experiments/results/network_speed.json.
"""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from rich.console import Console
from rich.table import Table
from study import RESULTS, run_study, write_results

import azjax
from azjax.games.game import Game
from azjax.networks import Network, make_network
from azjax.runs.precision import seconds_of_network
from azjax.runs.throughput import median_seconds
from azjax.training.config import PRECISIONS

NETWORKS = (
    ("mlp", 768, 4),
    ("equivariant_mlp", 1024, 2),
    ("axial", 32, 4),
    ("resnet", 64, 4),
    ("resnet", 128, 4),
    ("board", 64, 4),
)
_SIDE = 2048  # of the matrices
_ROUNDS = 5


def main(
    evaluated: int = 512,
    learned: int = 1024,
    networks: tuple[tuple[str, int, int], ...] = NETWORKS,
    output: Path = RESULTS / "network_speed.json",
) -> None:
    """Measures, prints and writes.

    Args:
      evaluated: positions in an evaluation.
      learned: positions in a gradient.
      networks: name, width and depth of each.
      output: file of the results.
    """
    console, game = Console(), azjax.make("connect_four")
    matrix = {precision: matrix_rate(precision) for precision in PRECISIONS}
    rows = []
    for name, width, depth in networks:
        flops = flops_of_evaluation(make_network(name, game, width=width, depth=depth), game)
        for precision in PRECISIONS:
            network = make_network(name, game, width=width, depth=depth, precision=precision)
            rates = {
                "evaluations": evaluated / seconds_of_network(game, network, evaluated),
                "learned": learned / seconds_of_network(game, network, learned, learning=True),
            }
            rows.append({"network": name, "width": width, "depth": depth, "precision": precision, "flops": flops})
            for (kind, rate), times in zip(rates.items(), (1, 3), strict=True):
                gflops = times * flops * rate / 1e9
                rows[-1] |= {
                    f"{kind}_per_second": round(rate),
                    f"{kind}_gflops": round(gflops, 1),
                    f"{kind}_share": round(gflops / matrix[precision], 3),
                }
            console.print(f"{name} {width} x {depth}, {precision}: {rates['evaluations']:,.0f} evaluations/s")
    console.print(table(rows))
    settings = {"game": game.name, "evaluated": evaluated, "learned": learned}
    write_results(output, "network_speed.py", settings, matrix_gflops=matrix, rows=rows)
    console.print(f"written to {output}", soft_wrap=True)


def matrix_rate(precision: str) -> float:
    """GFLOP/s of a product of two large matrices, with a float32 result."""
    matrix = jax.random.normal(jax.random.key(0), (_SIDE, _SIDE)).astype(precision)
    multiply = jax.jit(lambda left, right: jnp.matmul(left, right, preferred_element_type=jnp.float32))
    return round(2 * _SIDE**3 / 1e9 / median_seconds(lambda: multiply(matrix, matrix), _ROUNDS), 1)


def flops_of_evaluation(network: Network, game: Game) -> int:
    """FLOPs of the evaluation of one position."""
    variables = jax.eval_shape(lambda key: network.init(key, game), jax.random.key(0))
    observations = jax.ShapeDtypeStruct((1, *game.observation_shape), jnp.float32)
    traced = jax.jit(lambda variables, observations: network.apply(variables, observations, train=False)[0]).trace(
        variables, observations
    )
    # As lowered for a GPU, where every convolution is one.
    analysis: dict[str, float] = traced.lower(lowering_platforms=("cuda",)).cost_analysis()
    return round(analysis["flops"])


def table(rows: list[dict[str, Any]]) -> Table:
    """All rows."""
    heads = ("network", "precision", "MFLOP", "evaluations/s", "GFLOP/s", "share", "learned/s", "GFLOP/s", "share")
    shown = Table(*heads)
    for row in rows:
        figures = [
            figure
            for kind in ("evaluations", "learned")
            for figure in (
                f"{row[f'{kind}_per_second']:,}",
                f"{row[f'{kind}_gflops']:.0f}",
                f"{row[f'{kind}_share']:.0%}",
            )
        ]
        name = f"{row['network']} {row['width']} x {row['depth']}"
        shown.add_row(name, row["precision"], f"{row['flops'] / 1e6:.1f}", *figures)
    return shown


if __name__ == "__main__":
    run_study(main)
