"""`azjax benchmark search`: simulations per second beside mctx, with the same rules and the same evaluator.

Two stand-ins for a network, the same on both sides: `uniform` (logits and values zero: shallow trees) and `peaked`
(logits and values hashed from the position: deep trees, as with a network). Axis letters: `B` batch, `A` actions.
"""

import dataclasses
import functools
import importlib.metadata
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import chex
import jax
import jax.numpy as jnp
from rich.console import Console
from rich.table import Table

from azjax.games.bitboard import mix
from azjax.games.game import Game, make, random_legal_action
from azjax.search import Evaluator, alphazero_policy, evaluators

_OPENING_PLIES = 2  # random moves before each search, so that the trees of a batch differ


@functools.cache
def peaked(game: Game) -> Evaluator:
    """Logits in 0..8 and values in -1..1, hashed from the position. `params` are not read."""

    def evaluate(params: Any, key: chex.PRNGKey, states: Any) -> tuple[chex.Array, chex.Array]:
        del params, key
        batch = states.terminated.shape[0]
        position = jnp.zeros(batch, jnp.uint32)
        for leaf in jax.tree.leaves(dataclasses.replace(states, rewards=None)):
            for word in leaf.reshape(batch, -1).astype(jnp.uint32).T:
                position = _mix(position + word)
        actions = jnp.arange(game.num_actions, dtype=jnp.uint32)
        logits = 8 * _unit(_mix(position[:, None] + jnp.uint32(0x9E3779B9) * (actions[None] + 1)))
        return logits, 2 * _unit(_mix(position)) - 1

    return evaluate


STAND_INS = {"uniform": evaluators.uniform, "peaked": peaked}


@dataclasses.dataclass(frozen=True)
class SearchBenchmark:
    """Measures simulations per second beside mctx.

    Attributes:
      game: whose rules both searches use.
      batch: positions searched side by side.
      num_simulations: of each search.
      repeats: timed calls of each side, in turn; their median counts.
      output: write the results there too, as JSON.
    """

    game: str = "tictactoe"
    batch: int = 1024
    num_simulations: int = 100
    repeats: int = 15
    output: Path | None = None

    def __post_init__(self) -> None:
        for field in ("batch", "num_simulations", "repeats"):
            if getattr(self, field) < 1:
                raise ValueError(f"{field} must be at least 1, got {getattr(self, field)}")

    def run(self, console: Console) -> dict[str, Any]:
        """Measures, prints a table, writes `output`, and returns what was written.

        Raises:
          ValueError: an unknown game, or mctx is not installed.
        """
        game = make(self.game)
        states = _openings(game, self.batch)
        rows = []
        for name, stand_in in STAND_INS.items():
            with console.status(f"{name}: compiling and timing"):
                rows.append(self._measure(game, name, stand_in(game), states))
        report = {"command": "azjax benchmark search", "settings": self._settings(), "machine": machine(), "rows": rows}
        console.print(_table(game, self, rows))
        if self.output is not None:
            self.output.parent.mkdir(parents=True, exist_ok=True)
            self.output.write_text(json.dumps(report, indent=2) + "\n")
            console.print(f"written to {self.output}")
        return report

    def _settings(self) -> dict[str, Any]:
        return {key: value for key, value in dataclasses.asdict(self).items() if key != "output"}

    def _measure(self, game: Game, name: str, evaluator: Evaluator, states: Any) -> dict[str, Any]:
        def ours(key: chex.PRNGKey) -> chex.Array:
            options = {"game": game, "evaluator": evaluator, "num_simulations": self.num_simulations}
            return alphazero_policy(None, key, states, **options).action

        sides = {"azjax": ours, "mctx": _mctx_search(game, evaluator, states, self.num_simulations)}
        compile_seconds = {side: _seconds(search, 0) for side, search in sides.items()}
        times: dict[str, list[float]] = {side: [] for side in sides}
        for repeat in range(self.repeats):
            for side, search in sides.items():
                times[side].append(_seconds(search, repeat + 1))
        rates = {side: [self.batch * self.num_simulations / seconds for seconds in times[side]] for side in sides}
        ratios = [own / rival for own, rival in zip(rates["azjax"], rates["mctx"], strict=True)]
        return {
            "evaluator": name,
            "compile_seconds": {side: round(seconds, 2) for side, seconds in compile_seconds.items()},
            "simulations_per_second": {side: round(statistics.median(rate)) for side, rate in rates.items()},
            "ratio": round(statistics.median(ratios), 2),
            "ratio_range": [round(min(ratios), 2), round(max(ratios), 2)],
        }


def machine(packages: Sequence[str] = ("azjax", "jax", "jaxlib", "mctx")) -> dict[str, Any]:
    """What the numbers were measured on, and the versions of the packages that are installed."""
    device = jax.devices()[0]
    installed = {distribution.name for distribution in importlib.metadata.distributions()}
    return {
        "device": f"{device.platform}: {device.device_kind}, {jax.device_count()} in all",
        "cpu": _cpu_name(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": {package: importlib.metadata.version(package) for package in packages if package in installed},
    }


def _mctx_search(game: Game, evaluator: Evaluator, states: Any, num_simulations: int) -> Callable:
    """mctx's `muzero_policy` on the same rules and evaluator, without noise, as ours."""
    try:
        import mctx
    except ModuleNotFoundError as error:
        raise ValueError("the benchmark needs mctx: pip install 'azjax[interop]'") from error

    def judge(key: chex.PRNGKey, states: Any) -> tuple[chex.Array, chex.Array]:
        logits, value = evaluator(None, key, states)
        legal = jax.vmap(game.legal_action_mask)(states)
        return jnp.where(legal, logits, jnp.finfo(logits.dtype).min), jnp.where(states.terminated, 0.0, value)

    def recurrent_fn(params: Any, key: chex.PRNGKey, action: chex.Array, states: Any) -> tuple[Any, Any]:
        del params
        following = jax.vmap(game.step)(states, action)
        logits, value = judge(key, following)
        reward = jnp.take_along_axis(following.rewards, states.current_player[:, None], axis=1)[:, 0]
        same_player = following.current_player == states.current_player
        discount = jnp.where(following.terminated, 0.0, jnp.where(same_player, 1.0, -1.0))
        output = mctx.RecurrentFnOutput(reward=reward, discount=discount, prior_logits=logits, value=value)
        return output, following

    @jax.jit
    def search(key: chex.PRNGKey, states: Any) -> chex.Array:
        logits, value = judge(key, states)
        output = mctx.muzero_policy(
            params=None,
            rng_key=key,
            root=mctx.RootFnOutput(prior_logits=logits, value=value, embedding=states),
            recurrent_fn=recurrent_fn,
            num_simulations=num_simulations,
            invalid_actions=~jax.vmap(game.legal_action_mask)(states),
            dirichlet_fraction=0.0,
            temperature=0.0,
        )
        return output.action

    return lambda key: search(key, states)


def _seconds(search: Callable, seed: int) -> float:
    key = jax.random.key(seed)
    began = time.perf_counter()
    jax.block_until_ready(search(key))
    return time.perf_counter() - began


def _openings(game: Game, batch: int) -> Any:
    """Positions [B, ...] a few random plies into the game."""

    def play(key: chex.PRNGKey) -> Any:
        state = game.init(key)
        for play_key in jax.random.split(key, _OPENING_PLIES):
            state = game.step(state, random_legal_action(game, play_key, state))
        return state

    return jax.jit(jax.vmap(play))(jax.random.split(jax.random.key(0), batch))


def _mix(bits: chex.Array) -> chex.Array:
    """Spreads every bit of uint32 over the word."""
    return mix(bits, (16, 15, 16), (0x7FEB352D, 0x846CA68B))


def _unit(bits: chex.Array) -> chex.Array:
    """uint32 -> float32 in 0..1, of the upper 24 bits."""
    return (bits >> jnp.uint32(8)).astype(jnp.float32) / 2**24


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _table(game: Game, settings: SearchBenchmark, rows: list[dict[str, Any]]) -> Table:
    shape = f"A={game.num_actions}, B={settings.batch}, N={settings.num_simulations}"
    table = Table(title=f"search on {game.name}, {shape}: simulations per second", title_justify="left")
    for column in ("evaluator", "azjax", "mctx", "ratio", "compile azjax", "compile mctx"):
        table.add_column(column, justify="left" if column == "evaluator" else "right")
    for row in rows:
        rates, compiled = row["simulations_per_second"], row["compile_seconds"]
        low, high = row["ratio_range"]
        table.add_row(
            row["evaluator"],
            f"{rates['azjax']:,}",
            f"{rates['mctx']:,}",
            f"{row['ratio']:.1f} ({low:.1f} to {high:.1f})",
            f"{compiled['azjax']:.1f} s",
            f"{compiled['mctx']:.1f} s",
        )
    return table
