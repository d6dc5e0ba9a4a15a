import io
import json
import random
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console
from studies import load_study

from azjax.benchmark import rivals
from azjax.benchmark.rivals import rival_module
from azjax.benchmark.search import CASES, Case, SearchBenchmark, measure_cases, start_devices
from azjax.benchmark.searches import openings
from azjax.benchmark.stand_ins import peaked, with_generic_compaction
from azjax.games import check_game
from azjax.games.protocols import without_history
from azjax.games.registry import make
from benchmarks.rules.layered_game import LayeredGame
from benchmarks.rules.tafl import BrandubRules, action_of
from benchmarks.searches import notebook

ROOT = Path(__file__).parents[2]
TEXTS = ["_________", "X________", "_X_______", "_________"]


def batch(states):
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)


@pytest.mark.slow
def test_a_benchmark_of_one_game_writes_what_it_prints(tmp_path):
    screen = io.StringIO()
    output = tmp_path / "results" / "search.json"
    benchmark = SearchBenchmark(game="connect2", batch=8, num_simulations=4, repeats=3, devices=1, output=output)
    report = benchmark.run(Console(file=screen, width=140))
    assert json.loads(output.read_text()) == report
    assert [row["evaluator"] for row in report["rows"]] == ["uniform", "peaked"]
    assert report["settings"] == {"game": "connect2", "repeats": 3, "devices": 1}
    for row in report["rows"]:
        assert (row["actions"], row["slots"], row["batch"], row["num_simulations"]) == (4, 4, 8, 4)
        assert row["ratio_range"][0] <= row["ratio"] <= row["ratio_range"][1]
        assert row["rounds"] == 3
        assert row["peak_memory_mb"].keys() == row["compile_seconds"].keys() == {"azjax", "mctx"}
        for rate in row["simulations_per_second"].values():
            assert f"{rate:,}" in screen.getvalue()
    assert {"azjax", "jax", "jaxlib", "mctx"} <= set(report["machine"]["versions"])


@pytest.mark.slow
def test_openspiel_compiles_nothing():
    case = Case("connect_four", "connect_four", 2, 3, evaluators=("rollout",), rival="OpenSpiel")
    (row,) = measure_cases([case], 1, 1, Console(file=io.StringIO()))["rows"]
    assert list(row["simulations_per_second"]) == ["azjax", "OpenSpiel"]
    assert list(row["compile_seconds"]) == ["azjax"]


TWO_DEVICES = """
import io, json
from rich.console import Console
from azjax.benchmark.search import Case, measure_cases, start_devices
case = Case("connect2", "connect2", 4, 3, evaluators=("random",), rival="plain Python")
print(json.dumps(measure_cases([case], 1, start_devices(2), Console(file=io.StringIO()))["rows"]))
"""


@pytest.mark.slow
def test_a_batch_is_split_over_the_devices_that_were_asked_for():
    outcome = subprocess.run([sys.executable, "-c", TWO_DEVICES], capture_output=True, text=True)
    assert outcome.returncode == 0, outcome.stderr
    (row,) = json.loads(outcome.stdout)
    assert list(row["simulations_per_second"]) == ["azjax", "azjax on all devices", "plain Python"]
    assert list(row["compile_seconds"]) == ["azjax", "azjax on all devices"]
    assert {"ratio", "ratio_on_all_devices"} <= row.keys()


@pytest.mark.parametrize("field", ["batch", "num_simulations", "repeats", "devices"])
def test_sizes_below_one_are_refused(field):
    with pytest.raises(ValueError, match=f"{field} must be at least 1, got 0"):
        SearchBenchmark(**{field: 0})


@pytest.mark.parametrize("field", ["batch", "num_simulations"])
def test_sizes_of_one_game_need_the_game(field):
    with pytest.raises(ValueError, match=f"{field} is for one game alone"):
        SearchBenchmark(**{field: 8})


def test_a_batch_that_cannot_be_split_over_the_devices_that_were_asked_for_is_refused():
    with pytest.raises(ValueError, match="batch must be a multiple of devices = 2, got 3"):
        SearchBenchmark(game="connect2", batch=3, devices=2)
    assert SearchBenchmark(game="connect2", batch=4, devices=2).cases()[0].batch == 4


def test_devices_cannot_be_added_once_jax_runs():
    found = jax.device_count()
    assert start_devices(None) == found
    with pytest.raises(ValueError, match=f"devices must be {found}, as JAX was started on cpu, got {found + 1}"):
        start_devices(found + 1)


def test_a_rival_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setitem(rivals._PACKAGES, "OpenSpiel", "no_such_module")
    with pytest.raises(ValueError, match=r"the benchmark needs OpenSpiel: pip install 'azjax\[interop\]'"):
        rival_module("OpenSpiel")


def test_repetition_that_no_option_leaves_out_is_not_for_mctx(monkeypatch):
    assert SearchBenchmark(game="brandub").cases()[0].rival_options == {"repetition": "never"}
    monkeypatch.setattr("azjax.benchmark.search.typed_options", lambda name: [])
    assert SearchBenchmark(game="tictactoe").cases()[0].rival_options is None
    with pytest.raises(ValueError, match="brandub: mctx knows no repetition, and the game has no option `repetition`"):
        SearchBenchmark(game="brandub").cases()


def test_the_whole_table_is_measured_without_options():
    cases = SearchBenchmark().cases()
    assert cases == CASES
    sizes = [(case.own_game().num_actions, case.batch, case.num_simulations) for case in cases if case.rival == "mctx"]
    assert sizes == [(9, 1024, 100), (128, 256, 200), (1176, 128, 100), (1176, 128, 100), (9, 1, 1000)]
    assert [case.rival for case in cases if case.rival != "mctx"] == ["OpenSpiel", "OpenSpiel", "plain Python"]


def test_the_peaked_stand_in_is_a_fixed_function_of_the_position():
    game = make("tictactoe")
    states = batch([game.from_text(text) for text in TEXTS])
    logits, value = peaked(game)(None, jax.random.key(0), states)
    np.testing.assert_array_equal(logits[0], logits[3])
    assert value[0] == value[3]
    assert len({float(v) for v in value}) == 3
    assert float(logits.min()) >= 0
    assert float(logits.max()) <= 8
    assert np.all(np.abs(value) <= 1)
    again, _ = peaked(game)(None, jax.random.key(7), states)
    np.testing.assert_array_equal(logits, again)


@pytest.mark.parametrize(
    ("name", "logits", "value"),
    [
        ("tictactoe", [89308, 12142159, 13017960, 516278], 2685693),
        ("brandub", [14197664, 6324942, 4221530, 13867057], 8359323),
    ],
)
def test_the_peaked_stand_in_never_changes(name, logits, value):
    """Units of 2^-21 and 2^-23: what the benchmarks measured is comparable as long as these hold."""
    game = make(name)
    state = game.from_text("X___O____") if name == "tictactoe" else game.init(jax.random.key(0))
    logits_found, values = peaked(game)(None, jax.random.key(0), batch([without_history(game, state)]))
    np.testing.assert_array_equal(logits_found[0, :4] * 2**21, np.array(logits, np.float32))
    assert float(values[0]) * 2**23 == value


def test_generic_compaction_finds_the_same_moves():
    game = make("brandub")
    generic = with_generic_compaction(game)
    assert generic == with_generic_compaction(make("brandub"))
    assert hash(generic) == hash(with_generic_compaction(make("brandub")))
    assert generic != game
    state = game.init(jax.random.key(0))
    actions, valid = (np.asarray(array) for array in jax.jit(generic.legal_slots)(state))
    # Ascending, unlike the game's.
    assert actions[valid].tolist() == np.flatnonzero(jax.jit(game.legal_action_mask)(state)).tolist()


def test_the_plain_search_counts_every_simulation_once():
    root = notebook.search(50, seed=0)
    assert root.visits == 51
    assert sum(child.visits for child in root.children.values()) == 50
    assert len(root.children) == 40  # the attackers' moves from the start of Brandub
    assert sum(child.prior for child in root.children.values()) == pytest.approx(1)
    assert all(abs(child.returns) <= child.visits for child in root.children.values())


def test_the_plain_search_gives_ends_their_exact_value():
    rules = BrandubRules()
    repeated = rules.start()
    for move in ("d1-c1", "d3-c3", "c1-d1"):
        repeated = rules.step(repeated, action_of(move))
    node = notebook.Node(repeated, 1.0, 0.0)
    node.expand(random.Random(0))
    assert node.children[action_of("c3-d3")].value == 0.0  # the start comes back: a draw
    escaping = notebook.Node(rules.position("3K3/7/7/7/7/7/3t3 d"), 1.0, 0.0)
    escaping.expand(random.Random(0))
    assert escaping.children[action_of("d7-a7")].value == -1.0  # seen by the attackers, who would move next


@pytest.mark.slow
def test_the_layered_game_keeps_every_law():
    check_game(LayeredGame(actions=9, legal=4, depth=3, width=8))


def test_all_positions_of_the_table_game_have_equal_counts_of_legal_actions():
    game = LayeredGame(actions=9, legal=4, depth=3, width=8)
    mask = jax.vmap(game.legal_action_mask)(openings(game, 16))
    assert np.all(np.sum(mask, axis=1) == 4)
    with pytest.raises(ValueError, match=r"legal must be 1\.\.9, the number of actions, got 10"):
        LayeredGame(actions=9, legal=10)


@pytest.fixture(scope="module")
def scaling():
    return load_study("search_scaling")


def test_the_plot_of_the_scaling_is_drawn(scaling, tmp_path):
    rows = [
        {"against": axis, "evaluator": evaluator, "batch": size, "num_simulations": size, "actions": size}
        | {"simulations_per_second": {"azjax": 100 * size} | ({"mctx": size} if size < 9 else {})}
        for axis in "BNA"
        for evaluator in ("uniform", "peaked")
        for size in (3, 9)
    ]
    scaling.draw(rows, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_tiny_sizes_leave_the_committed_scaling_as_it_is(scaling, tmp_path, monkeypatch):
    monkeypatch.setattr(scaling, "RUNS", tmp_path)
    for part in ("throughput", "growth", "network", "compile_seconds", "memory"):
        monkeypatch.setattr(scaling, part, lambda sizes, console: [])
    drawn = []
    monkeypatch.setattr(scaling, "draw", lambda rows, path: drawn.append(path))
    scaling.main(quick=True)
    assert (tmp_path / "search_scaling_quick" / "search_scaling.json").exists()
    assert drawn == [tmp_path / "search_scaling_quick" / "search_scaling.png"]


@pytest.mark.slow
def test_the_scaling_study_runs_through_at_tiny_sizes(scaling, tmp_path):
    output = tmp_path / "scaling.json"
    scaling.main(quick=True, output=output, plot=tmp_path / "plot.png")
    report = json.loads(output.read_text())
    assert {row["against"] for row in report["throughput"]} == {"B", "N", "A"}
    assert [row["of"] for row in report["growth"]] == [
        "simulations",
        "simulations",
        "actions",
        "actions, generic compaction",
        "simulations, alphazero",
        "simulations, gumbel",
        "simulations, uct",
    ]
    assert [row["leaves_per_step"] for row in report["growth"]] == [1, 1, 1, 1, 2, 2, 2]
    assert all(row["network_share"] > 0 for row in report["network"])
    assert [row["game"] for row in report["compile"]] == ["tictactoe", "connect_four", "santorini", "brandub"]
    assert report["memory"]["peak_memory_mb"] > 100
