"""`azjax benchmark search`: simulations per second beside mctx, OpenSpiel and plain Python.

Beside mctx, rules and evaluator are the same on both sides: `uniform` (logits and values zero: shallow trees) and
`peaked` (logits and values hashed from the position: deep trees, as with a network) stand in for a network. Axis
letters: `A` actions, `K` slots of the compact table of legal actions, `B` batch, `N` simulations of each search.
"""

import dataclasses
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from azjax.benchmark.report import Report, check_output, machine_with_load, print_load, write_report
from azjax.benchmark.rivals import PLAIN_PYTHON, left_out, missing_rivals
from azjax.benchmark.searches import (
    TimedSearch,
    azjax_search,
    mctx_search,
    openings,
    openspiel_search,
    plain_python_search,
)
from azjax.benchmark.stand_ins import peaked, with_generic_compaction
from azjax.core.errors import InputError
from azjax.games.game import AnyGame
from azjax.games.protocols import RepetitionGame
from azjax.games.registry import make, typed_options
from azjax.parallel.sharding import num_cores, offer_cpu_devices
from azjax.search import Evaluator, alphazero_policy, evaluators, uct_policy

EvaluatorOf = Callable[[AnyGame], Evaluator]
STAND_INS: dict[str, EvaluatorOf] = {"uniform": evaluators.uniform, "peaked": peaked}
_EVALUATORS: dict[str, EvaluatorOf] = STAND_INS | {
    "random": evaluators.random,
    "rollout": evaluators.rollout,
}
_OWN, _ON_ALL = "azjax", "azjax on all devices"
_OWN_CALLS = 3  # of each of our sides in a round, since they take little time
_ROUNDS_SECONDS = 20.0


Measured = tuple[dict[str, TimedSearch], dict[str, list[float]]]
"""The searches by side, and their simulations per second by side and round."""


@dataclasses.dataclass(frozen=True)
class Case:
    """A row of the benchmark: a search and its rival.

    Attributes:
      label: of the game, in the results.
      game: its name.
      batch: positions searched side by side.
      num_simulations: of each search.
      options: of the game.
      evaluators: names, each measured in turn.
      rival: `mctx`, `OpenSpiel` or `plain Python`; the latter two search one position at a time.
      rival_options: of the game, for mctx, where they are not `options`.
      generic_compaction: our side takes the contract's `legal_slots`, not the game's.
    """

    label: str
    game: str
    batch: int
    num_simulations: int
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    evaluators: tuple[str, ...] = tuple(STAND_INS)
    rival: str = "mctx"
    rival_options: dict[str, Any] | None = None
    generic_compaction: bool = False

    def own_game(self) -> AnyGame:
        game = make(self.game, **self.options)
        return with_generic_compaction(game) if self.generic_compaction else game


_SANTORINI = {"size": 5, "workers": 2}
_FORGETFUL = {"repetition": "never"}  # a recurrent_fn of mctx cannot see the path to its node

CASES = (
    Case("tictactoe", "tictactoe", 1024, 100),
    Case("santorini 5x5, 2 workers", "santorini", 256, 200, _SANTORINI),
    Case("brandub", "brandub", 128, 100, rival_options=_FORGETFUL),
    Case("brandub, generic compaction", "brandub", 128, 100, rival_options=_FORGETFUL, generic_compaction=True),
    Case("tictactoe", "tictactoe", 1, 1000),
    Case("connect_four", "connect_four", 1024, 200, evaluators=("rollout",), rival="OpenSpiel"),
    Case("connect_four", "connect_four", 1024, 1000, evaluators=("rollout",), rival="OpenSpiel"),
    Case("brandub", "brandub", 1024, 100, evaluators=("random",), rival="plain Python"),
)


@dataclasses.dataclass(frozen=True)
class SearchBenchmark:
    """Measures simulations per second beside mctx, OpenSpiel and plain Python, or of one game beside mctx.

    Attributes:
      game: whose rules both searches use; without it the whole table is measured.
      batch: positions searched side by side; 1024 if not given. For one game alone.
      num_simulations: of each search; 100 if not given. For one game alone.
      repeats: rounds at most, in which each side is timed in turn; their median counts. No round begins after 20 s.
      devices: a batch is split over this many, if they divide it; on CPU as many as there are cores if not given.
      output: write the results there too, as JSON.
    """

    game: str | None = None
    batch: int | None = None
    num_simulations: int | None = None
    repeats: int = 15
    devices: int | None = None
    output: Path | None = None

    def __post_init__(self) -> None:
        for field in ("batch", "num_simulations", "repeats", "devices"):
            size = getattr(self, field)
            if size is not None and size < 1:
                raise InputError(f"{field} must be at least 1, got {size}")
        for field in ("batch", "num_simulations"):
            if self.game is None and getattr(self, field) is not None:
                raise InputError(f"{field} is for one game alone; name it with game")
        if self.batch and self.devices and self.batch % self.devices:
            raise InputError(f"batch must be a multiple of devices = {self.devices}, got {self.batch}")

    def cases(self) -> tuple[Case, ...]:
        """What is measured."""
        return CASES if self.game is None else (_one_case(self.game, self.batch or 1024, self.num_simulations or 100),)

    def run(self, console: Console) -> Report:
        """Measures, prints a table, writes `output`, and returns what was written.

        Raises:
          InputError: an unknown game, a rival that is not installed, or JAX runs already with another number of
            devices.
        """
        check_output(self.output)
        devices = start_devices(self.devices)
        report = measure_cases(self.cases(), self.repeats, devices, console)
        settings = {"game": self.game, "repeats": self.repeats, "devices": devices}
        report = {"command": "azjax benchmark search", "settings": settings, **report}
        # A file has no width of its own.
        page = console if console.is_terminal else Console(file=console.file, width=140)
        page.print(_table(report["rows"]))
        if self.output is not None:
            write_report(report, self.output, console)
        return report


def start_devices(devices: int | None) -> int:
    """Starts JAX with this many CPU devices, or one for each core; returns how many devices of any kind there are.

    Raises:
      InputError: there is another number of devices than asked for.
    """
    offer_cpu_devices(devices or num_cores())
    found = jax.device_count()
    if devices not in (None, found):
        raise InputError(f"devices must be {found}, as JAX was started on {jax.default_backend()}, got {devices}")
    return found


def measure_cases(cases: Sequence[Case], repeats: int, devices: int, console: Console) -> Report:
    """The machine and a row of results for each case and evaluator.

    Cases beside a rival that is not installed are left out.

    Raises:
      InputError: an unknown game, or no case is left.
    """
    missing = missing_rivals(dict.fromkeys(case.rival for case in cases))
    if missing:
        cases = [case for case in cases if case.rival not in missing]
        if not cases:
            raise InputError(left_out(missing))
        console.print(left_out(missing), markup=False)
    on, rows = machine_with_load(("azjax", "jax", "jaxlib", "mctx", "open_spiel")), []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=sum(len(case.evaluators) for case in cases))
        for case in cases:
            game = case.own_game()
            for evaluator in case.evaluators:
                progress.update(task, description=f"{case.label}, {evaluator}: compiling and timing")
                rows.append(_row(case, game, evaluator, _measure(case, game, evaluator, repeats, devices)))
                progress.advance(task)
    report = {"machine": on, "rows": rows}
    print_load(report, console)
    return report


def time_in_turn(
    sides: dict[str, TimedSearch], rival: str, repeats: int, seconds: float = _ROUNDS_SECONDS
) -> dict[str, list[float]]:
    """Simulations per second of each side, by round; no round begins later than after this many seconds."""
    rates: dict[str, list[float]] = {side: [] for side in sides}
    began = time.perf_counter()
    for round_number in range(repeats + 1):
        for side, search in sides.items():
            calls = 1 if side == rival else _OWN_CALLS
            times = [search.seconds(round_number * calls + call) for call in range(calls)]
            rates[side].append(search.simulations / statistics.median(times))
        if time.perf_counter() - began > seconds:
            break
    # The first round warms up, unless a slow rival leaves no time for another.
    return {side: rate[1:] or rate for side, rate in rates.items()}


def _one_case(game: str, batch: int, num_simulations: int) -> Case:
    """One game beside mctx, which knows no repetition."""
    if not isinstance(make(game), RepetitionGame):
        return Case(game, game, batch, num_simulations)
    if not _FORGETFUL.keys() <= {option.name for option in typed_options(game)}:
        raise InputError(f"{game}: mctx knows no repetition, and the game has no option `repetition` to leave it out")
    return Case(game, game, batch, num_simulations, rival_options=_FORGETFUL)


def _measure(case: Case, game: AnyGame, evaluator: str, repeats: int, devices: int) -> Measured:
    """The sides, and their simulations per second by round."""
    evaluator_of = _EVALUATORS[evaluator]
    policy = uct_policy if evaluator == "rollout" else alphazero_policy
    states = openings(game, case.batch)
    sides = {_OWN: azjax_search(game, evaluator_of(game), states, case.num_simulations, policy=policy)}
    if devices > 1 and case.batch % devices == 0:
        sides[_ON_ALL] = azjax_search(
            game, evaluator_of(game), states, case.num_simulations, policy=policy, devices=devices
        )
    if case.rival == "mctx":
        rules = make(case.game, **{**case.options, **(case.rival_options or {})})
        sides["mctx"] = mctx_search(rules, evaluator_of(rules), openings(rules, case.batch), case.num_simulations)
    elif case.rival == "OpenSpiel":
        sides["OpenSpiel"] = openspiel_search(case.game, case.num_simulations)
    else:
        sides[PLAIN_PYTHON] = plain_python_search(case.num_simulations)
    return sides, time_in_turn(sides, case.rival, repeats)


def _row(case: Case, game: AnyGame, evaluator: str, measured: Measured) -> Report:
    sides, rates = measured
    row = {
        "game": case.label,
        "actions": game.num_actions,
        "slots": game.max_legal_actions,
        "batch": case.batch,
        "num_simulations": case.num_simulations,
        "evaluator": evaluator,
        "rival": case.rival,
        "rounds": len(rates[_OWN]),
        "compile_seconds": {
            side: round(search.compile_seconds, 2)
            for side, search in sides.items()
            if search.compile_seconds is not None
        },
        "simulations_per_second": {side: round(statistics.median(rate)) for side, rate in rates.items()},
        "peak_memory_mb": {
            side: round(search.peak_memory / 1e6, 1) for side, search in sides.items() if search.peak_memory is not None
        },
        "cuda_operations_by_loop": {
            side: search.cuda_operations for side, search in sides.items() if search.cuda_operations is not None
        },
    }
    for side, name in ((_OWN, "ratio"), (_ON_ALL, "ratio_on_all_devices")):
        if side in rates:
            ratios = [own / other for own, other in zip(rates[side], rates[case.rival], strict=True)]
            row[name] = round(statistics.median(ratios), 2)
            row[f"{name}_range"] = [round(min(ratios), 2), round(max(ratios), 2)]
    return row


def _table(rows: list[Report]) -> Table:
    table = Table(title="search: simulations per second", title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1))
    for column in ("game", "A", "K", "B", "N", "evaluator", "side", "compile", "simulations/s", "memory", "ratio"):
        text = column in ("game", "evaluator", "side")
        table.add_column(column, justify="left" if text else "right", no_wrap=column != "game")
    for row in rows:
        sizes = [f"{row[field]:,}" for field in ("actions", "slots", "batch", "num_simulations")]
        case = [row["game"], *sizes, row["evaluator"]]
        for side, rate in row["simulations_per_second"].items():
            compiled, memory = row["compile_seconds"].get(side), row["peak_memory_mb"].get(side)
            table.add_row(
                *case,
                side,
                "" if compiled is None else f"{compiled:.1f} s",
                f"{rate:,}",
                "" if memory is None else f"{memory:,.1f} MB",
                _ratio(row, {_OWN: "ratio", _ON_ALL: "ratio_on_all_devices"}.get(side)),
            )
            case = [""] * len(case)
        table.add_section()
    return table


def _ratio(row: Report, name: str | None) -> str:
    if name is None:
        return ""
    low, high = row[f"{name}_range"]
    return f"{row[name]:,.1f}" + (f" ({low:,.1f} to {high:,.1f})" if row["rounds"] > 1 else "")
