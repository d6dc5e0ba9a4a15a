"""`azjax benchmark games`: steps per second of random play beside pgx, OpenSpiel and plain Python.

A step draws a legal action uniformly, plays it, and begins a new game after an end. azjax and pgx play `B` games side
by side in one compiled loop with the same random bits; the others play one game at a time. Axis letters: `B` batch,
`A` actions.
"""

import dataclasses
import functools
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32, PRNGKeyArray, UInt32
from rich.console import Console
from rich.table import Table

from azjax.benchmark.report import Report, check_output, machine_with_load, print_load, write_report
from azjax.benchmark.rivals import PLAIN_PYTHON, left_out, missing_rivals, rival_module
from azjax.core.bits import scale_bits
from azjax.core.errors import InputError
from azjax.games.game import AnyGame
from azjax.games.protocols import next_game
from azjax.games.registry import make
from azjax.games.tafl import RULES, STARTS
from azjax.report.figures import check_picture, new_figure, save_picture

RandomPlay = Callable[[PRNGKeyArray], tuple[Int32[Array, ""], Float32[Array, ""]]]
"""`play(key)`: how many games ended, and the sum of player 0's results."""

Start = Callable[[PRNGKeyArray], Any]
Step = Callable[[Any, UInt32[Array, "B"], PRNGKeyArray], tuple[Any, Bool[Array, "B"], Float32[Array, "B 2"]]]


@dataclasses.dataclass(frozen=True)
class Contest:
    """A game, and its name in other libraries; None where it is missing there.

    Attributes:
      name: of the game in azjax.
      options: of the game.
      plain: module, class and arguments of its rules below `benchmarks.rules`.
      pgx: its name in pgx.
      openspiel: its name in OpenSpiel.
    """

    name: str
    options: dict[str, Any]
    plain: tuple[str, str, dict[str, Any]]
    pgx: str | None = None
    openspiel: str | None = None


# Plain Python has one class for all games of tafl.
_HNEFATAFL = {**dataclasses.asdict(RULES["hnefatafl"]), "start_text": f"{STARTS['hnefatafl']} a"}

CONTESTS = {
    "tictactoe": Contest(
        "tictactoe", {}, ("mnk", "MnkRules", {"columns": 3, "rows": 3, "in_a_row": 3}), "tic_tac_toe", "tic_tac_toe"
    ),
    "connect_four": Contest(
        "connect_four", {}, ("connect_four", "ConnectFourRules", {}), "connect_four", "connect_four"
    ),
    "hex 11x11": Contest(
        "hex",
        {"size": 11, "swap": True},
        ("hex", "HexRules", {"size": 11, "swap": True}),
        "hex",
        "hex(board_size=11,swap=True)",
    ),
    "othello": Contest("othello", {}, ("othello", "OthelloRules", {}), "othello", "othello"),
    "breakthrough": Contest("breakthrough", {}, ("breakthrough", "BreakthroughRules", {}), openspiel="breakthrough"),
    "brandub": Contest("brandub", {}, ("tafl", "BrandubRules", {})),
    "brandub without repetition": Contest(
        "brandub", {"repetition": "never"}, ("tafl", "BrandubRules", {"repetition": "never"})
    ),
    "hnefatafl 11x11": Contest("hnefatafl", {}, ("tafl", "BrandubRules", _HNEFATAFL)),
    "santorini 5x5, 2 workers": Contest(
        "santorini", {"size": 5, "workers": 2}, ("santorini", "SantoriniRules", {"size": 5, "workers": 2})
    ),
}
_RIVALS = ("pgx", "OpenSpiel", PLAIN_PYTHON)


@dataclasses.dataclass(frozen=True)
class GamesBenchmark:
    """Measures steps per second of random play beside other libraries.

    Attributes:
      games: names of the contests.
      batches: numbers of games side by side, measured in turn.
      plies: steps of one game in a timed call; fewer for a large batch, which takes at most 2^20 steps.
      repeats: timed calls of each side, taken in turn; the median counts.
      output: also write the results to this file, as JSON.
      plot: also draw them into this file (needs the extra `plot`).
    """

    games: tuple[str, ...] = tuple(CONTESTS)
    batches: tuple[int, ...] = (1, 256, 4096)
    plies: int = 16_384
    repeats: int = 9
    output: Path | None = None
    plot: Path | None = None

    def __post_init__(self) -> None:
        for field in ("plies", "repeats"):
            if getattr(self, field) < 1:
                raise InputError(f"{field} must be at least 1, got {getattr(self, field)}")
        for field in ("games", "batches"):
            if not getattr(self, field):
                raise InputError(f"{field} must name one or more, got none")
        for batch in self.batches:
            if batch < 1:
                raise InputError(f"batches must be at least 1, got {batch}")
        for game in self.games:
            if game not in CONTESTS:
                raise InputError(f"unknown game {game!r}; available: {', '.join(CONTESTS)}")
        if self.plot is not None:
            check_picture(self.plot)

    def run(self, console: Console) -> Report:
        """Measures, prints a table, writes `output` and `plot`, and returns what was written."""
        check_output(self.output)
        check_output(self.plot)
        missing = missing_rivals(_RIVALS)
        if missing:
            console.print(left_out(missing), markup=False)
        on, rows = machine_with_load(("azjax", "jax", "jaxlib", "pgx", "open_spiel")), []
        for name in self.games:
            with console.status(f"{name}: compiling and timing"):
                rows += self._measure(name, CONTESTS[name], missing)
        report = {
            "command": "azjax benchmark games",
            "settings": self._settings(),
            "machine": on,
            "rows": rows,
        }
        console.print(_table(rows))
        print_load(report, console)
        if self.output is not None:
            write_report(report, self.output, console)
        if self.plot is not None:
            _draw(rows, self.plot)
            console.print(f"drawn to {self.plot}")
        return report

    def _settings(self) -> Report:
        sizes = {field: getattr(self, field) for field in ("plies", "repeats")}
        return {"games": list(self.games), "batches": list(self.batches), **sizes}

    def _measure(self, name: str, contest: Contest, missing: list[str]) -> list[Report]:
        game = make(contest.name, **contest.options)
        sides: dict[tuple[str, int], tuple[int, Callable[[int], Any]]] = {}  # steps of a call, and the call
        for batch in self.batches:
            plies = max(1, min(self.plies, 2**20 // batch))
            sides["azjax", batch] = plies * batch, _compiled(random_play(game, batch, plies))
            if contest.pgx and "pgx" not in missing:
                sides["pgx", batch] = plies * batch, _compiled(_pgx_random_play(contest.pgx, batch, plies))
        if contest.openspiel and "OpenSpiel" not in missing:
            sides["OpenSpiel", 1] = self.plies, _openspiel_random_play(contest.openspiel, self.plies)
        if PLAIN_PYTHON not in missing:
            sides[PLAIN_PYTHON, 1] = self.plies, _plain_random_play(*contest.plain, self.plies)

        rates: dict[tuple[str, int], list[float]] = {side: [] for side in sides}
        for repeat in range(self.repeats + 1):
            for side, (steps, play) in sides.items():
                began = time.perf_counter()
                play(repeat)
                if repeat:  # the first call compiles
                    rates[side].append(steps / (time.perf_counter() - began))
        return [_row(name, batch, rates) for batch in self.batches]


def random_play(game: AnyGame, batch: int, plies: int) -> RandomPlay:
    """A compiled function of a key that plays `batch` random games side by side, `plies` of each."""

    def start(key: PRNGKeyArray) -> Any:
        return jax.vmap(game.init)(jax.random.split(key, batch))

    def step(
        states: Any, bits: UInt32[Array, "B"], key: PRNGKeyArray
    ) -> tuple[Any, Bool[Array, "B"], Float32[Array, "B 2"]]:
        actions = jax.vmap(game.sample_legal_action)(states, bits)
        following = jax.vmap(game.step)(states, actions)
        renewed = jax.vmap(functools.partial(next_game, game), (None, 0))(key, following)
        return renewed, following.terminated, following.rewards

    return _loop(start, step, (plies, batch))


def _pgx_random_play(name: str, batch: int, plies: int) -> RandomPlay:
    """`random_play` of pgx, with its legal actions and its automatic reset; one key serves all resets of a step."""
    pgx = rival_module("pgx")
    auto_reset = rival_module("pgx", ".experimental").auto_reset
    environment = pgx.make(name)
    reset_step = auto_reset(environment.step, environment.init)

    def start(key: PRNGKeyArray) -> Any:
        return jax.vmap(environment.init)(jax.random.split(key, batch))

    def sample(mask: Bool[Array, "A"], bits: UInt32[Array, ""]) -> Int32[Array, ""]:
        # Unrolled, so that it is arithmetic on vectors: faster than cumsum and argmax.
        drawn = scale_bits(bits, jnp.sum(mask, dtype=jnp.int32))
        action: Int32[Array, ""] = jnp.int32(0)
        legal_so_far: Int32[Array, ""] = jnp.int32(0)
        for legal in mask:
            legal_so_far += legal.astype(jnp.int32)
            action += (legal_so_far <= drawn).astype(jnp.int32)
        return action

    def step(
        states: Any, bits: UInt32[Array, "B"], key: PRNGKeyArray
    ) -> tuple[Any, Bool[Array, "B"], Float32[Array, "B 2"]]:
        actions = jax.vmap(sample)(states.legal_action_mask, bits)
        following = jax.vmap(reset_step, (0, 0, None))(states, actions, key)
        return following, following.terminated, following.rewards

    return _loop(start, step, (plies, batch))


def _loop(start: Start, step: Step, shape: tuple[int, int]) -> RandomPlay:
    """The compiled loop over `shape` = (plies, batch). Its counts keep the compiler from leaving anything out."""

    @jax.jit
    def play(key: PRNGKeyArray) -> tuple[Int32[Array, ""], Float32[Array, ""]]:
        start_key, bits_key, reset_key = jax.random.split(key, 3)

        def ply(carry: tuple[Any, ...], bits: UInt32[Array, "B"]) -> tuple[tuple[Any, ...], None]:
            states, ended, points = carry
            states, terminated, rewards = step(states, bits, reset_key)
            points += jnp.sum(rewards[:, 0])
            return (states, ended + jnp.sum(terminated, dtype=jnp.int32), points), None

        carry = start(start_key), jnp.int32(0), jnp.float32(0)
        # Twice as fast as bits that may be sharded, on both sides.
        with jax.threefry_partitionable(False):
            bits = jax.random.bits(bits_key, shape, jnp.uint32)
        _, ended, points = jax.lax.scan(ply, carry, bits)[0]
        return ended, points

    return play


def _openspiel_random_play(name: str, plies: int) -> Callable[[int], None]:
    """OpenSpiel's rules are compiled; the loop over them is Python's."""
    rules = rival_module("OpenSpiel").load_game(name)

    def play(seed: int) -> None:
        rng = random.Random(seed)
        state = rules.new_initial_state()
        for _ in range(plies):
            state.apply_action(rng.choice(state.legal_actions()))
            if state.is_terminal():
                state = rules.new_initial_state()

    return play


def _plain_random_play(module: str, name: str, arguments: dict[str, Any], plies: int) -> Callable[[int], int]:
    """Random play by rules in plain Python."""
    rules = getattr(rival_module(PLAIN_PYTHON, f".rules.{module}"), name)(**arguments)
    play_randomly: Callable[..., int] = rival_module(PLAIN_PYTHON, ".rules").play_randomly
    return lambda seed: play_randomly(rules, plies, seed)


def _compiled(play: RandomPlay) -> Callable[[int], Any]:
    return lambda seed: jax.block_until_ready(play(jax.random.key(seed)))


def _row(name: str, batch: int, rates: dict[tuple[str, int], list[float]]) -> Report:
    own = rates["azjax", batch]
    rivals = {rival: rates.get((rival, batch if rival == "pgx" else 1)) for rival in _RIVALS}
    sides = {"azjax": own, **{rival: rate for rival, rate in rivals.items() if rate is not None}}
    ratios = {
        rival: [one / other for one, other in zip(own, rate, strict=True)]
        for rival, rate in rivals.items()
        if rate is not None
    }
    return {
        "game": name,
        "batch": batch,
        "steps_per_second": {side: round(statistics.median(rate)) for side, rate in sides.items()},
        "ratio": {rival: float(f"{statistics.median(ratio):.3g}") for rival, ratio in ratios.items()},
    }


def _table(rows: list[Report]) -> Table:
    table = Table(title="random play: steps per second (how many times as fast azjax is)", title_justify="left")
    table.add_column("game")
    for column in ("B", "azjax", *_RIVALS):
        table.add_column(column, justify="right", min_width=max(map(len, column.split())))
    for row in rows:
        rates, ratio = row["steps_per_second"], row["ratio"]
        rivals = [f"{_short(rates[rival])} ({_factor(ratio[rival])}x)" if rival in rates else "" for rival in _RIVALS]
        table.add_row(row["game"], str(row["batch"]), _short(rates["azjax"]), *rivals)
    return table


def _draw(rows: list[Report], path: Path) -> None:
    """Bars of the largest batch, on a logarithmic axis."""
    largest = max(row["batch"] for row in rows)
    shown = [row for row in rows if row["batch"] == largest]
    figure = new_figure(12, 4)
    panel = figure.subplots()
    sides = {"azjax": "#2a6fbb", "pgx": "#e0a458", "OpenSpiel": "#7f9c6b", "plain Python": "#9aa0a6"}
    width = 0.88 / len(sides)
    for position, (side, color) in enumerate(sides.items()):
        bars = [(x, row["steps_per_second"][side]) for x, row in enumerate(shown) if side in row["steps_per_second"]]
        if bars:
            x, rates = zip(*bars, strict=True)
            drawn = panel.bar([at + (position - 1.5) * width for at in x], rates, width, color=color, label=side)
            panel.bar_label(drawn, labels=[_short(rate) for rate in rates], fontsize=7, padding=2)
    panel.set_yscale("log")
    panel.set_xticks(range(len(shown)), [row["game"].replace(" ", "\n", 2) for row in shown])
    panel.set_ylabel("steps per second")
    panel.set_title(f"Random play; azjax and pgx with {largest:,} games side by side", loc="left", fontsize=11)
    panel.spines[["top", "right"]].set_visible(False)
    panel.legend(frameon=False, ncols=4, loc="upper right", bbox_to_anchor=(1, 1.14))
    path.parent.mkdir(parents=True, exist_ok=True)
    save_picture(figure, path)


def _factor(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.3g}"


def _short(rate: float) -> str:
    return f"{rate / 1e6:.3g} M" if rate >= 1e6 else f"{rate / 1e3:.3g} k"
