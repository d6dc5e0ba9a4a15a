import importlib
import io
import json
import sys
from pathlib import Path

import jax
import pytest
from rich.console import Console
from studies import result_of

from azjax.benchmark.games import CONTESTS, GamesBenchmark, _table, random_play
from azjax.games.registry import make
from benchmarks.rules import play_randomly
from benchmarks.rules.connect_four import ConnectFourRules
from benchmarks.rules.mnk import MnkRules
from benchmarks.rules.santorini import SantoriniRules
from benchmarks.rules.tafl import BrandubRules

SMALL = {"games": ("tictactoe",), "batches": (1, 4), "plies": 64, "repeats": 3}


def _perft(rules, position, depth):
    if depth == 0:
        return 1
    return sum(_perft(rules, rules.step(position, action), depth - 1) for action in rules.legal_actions(position))


@pytest.mark.parametrize(
    ("rules", "counts"),
    [
        (MnkRules(3, 3, 3), [9, 72, 504, 3024]),
        (ConnectFourRules(), [7, 49, 343, 2401]),
        (SantoriniRules(5, 2), [80, 6232]),
        (BrandubRules(), [40, 960]),
    ],
)
def test_the_plain_rules_have_the_known_perft(rules, counts):
    assert [_perft(rules, rules.start(), depth + 1) for depth in range(len(counts))] == counts


@pytest.mark.parametrize(("name", "rules"), [("tictactoe", MnkRules(3, 3, 3)), ("connect_four", ConnectFourRules())])
def test_random_games_are_as_long_as_plain_ones(name, rules):
    plies, batch = 16_384, 16
    ended, _ = random_play(make(name), batch, plies // batch)(jax.random.key(0))
    assert plies / int(ended) == pytest.approx(plies / play_randomly(rules, plies, seed=0), rel=0.1)


def test_a_benchmark_writes_what_it_prints(tmp_path):
    pytest.importorskip("matplotlib")
    screen, output, plot = io.StringIO(), tmp_path / "results" / "games.json", tmp_path / "docs" / "games.png"
    report = GamesBenchmark(**SMALL, output=output, plot=plot).run(Console(file=screen, width=200))
    assert json.loads(output.read_text()) == report
    assert [(row["game"], row["batch"]) for row in report["rows"]] == [("tictactoe", 1), ("tictactoe", 4)]
    assert plot.read_bytes().startswith(b"\x89PNG")
    for row in report["rows"]:
        rates = row["steps_per_second"]
        assert {"azjax", "plain Python"} <= set(rates)
        assert set(row["ratio"]) == set(rates) - {"azjax"}
        unit, letter = (1e6, "M") if rates["azjax"] >= 1e6 else (1e3, "k")
        assert f" {rates['azjax'] / unit:.3g} {letter} " in screen.getvalue()
    assert report["machine"]["load_average"] >= 0


def test_the_whole_table_fits_80_columns():
    screen = io.StringIO()
    Console(file=screen, width=80).print(_table(result_of("games")["rows"]))
    text = screen.getvalue()
    assert "\u2026" not in text
    assert text.rstrip().endswith("\u2518")


def test_missing_rivals_are_left_out_and_named(monkeypatch):
    screen = io.StringIO()
    for package in ("pgx", "pgx.experimental", "pyspiel"):
        monkeypatch.setitem(sys.modules, package, None)
    report = GamesBenchmark(**SMALL).run(Console(file=screen, width=200))
    assert set(report["rows"][0]["steps_per_second"]) == {"azjax", "plain Python"}
    assert "left out, not installed: pgx, OpenSpiel (pip install 'azjax[interop]')" in screen.getvalue()


@pytest.mark.slow
def test_without_a_clone_of_the_repository_plain_python_is_left_out_and_named(monkeypatch):
    screen = io.StringIO()
    monkeypatch.setitem(sys.modules, "benchmarks.rules", None)
    report = GamesBenchmark(**SMALL).run(Console(file=screen, width=200))
    assert "plain Python" not in report["rows"][0]["steps_per_second"]
    assert "left out, not installed: plain Python (plain Python is in a clone of the repository)" in screen.getvalue()


def test_every_contest_names_rules_of_the_repository():
    for contest in CONTESTS.values():
        module, name, arguments = contest.plain
        assert getattr(importlib.import_module(f"benchmarks.rules.{module}"), name)(**arguments).start()


@pytest.mark.parametrize("field", ["plies", "repeats"])
def test_sizes_below_one_are_refused(field):
    with pytest.raises(ValueError, match=f"{field} must be at least 1, got 0"):
        GamesBenchmark(**{field: 0})


def test_an_unknown_game_and_a_batch_below_one_are_refused():
    with pytest.raises(
        ValueError, match="unknown game 'chess'; available: tictactoe, connect_four, hex 11x11, othello, "
    ):
        GamesBenchmark(games=("chess",))
    with pytest.raises(ValueError, match="batches must be at least 1, got 0"):
        GamesBenchmark(batches=(0, 4))
    with pytest.raises(ValueError, match="batches must name one or more, got none"):
        GamesBenchmark(batches=())


def test_a_picture_that_cannot_be_written_is_refused_before_anything_is_measured(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(GamesBenchmark, "_measure", None)  # it would fail if it were called
    folder = tmp_path / "speeds.png"
    folder.mkdir()
    with pytest.raises(ValueError, match=r"speeds\.png cannot be written: it is a folder"):
        GamesBenchmark(**SMALL, plot=folder).run(Console(file=io.StringIO()))


def test_a_picture_that_cannot_be_drawn_is_refused_before_anything_is_measured():
    with pytest.raises(ValueError, match=r"plot must be a file of .png, .svg, .pdf, got speeds.foo"):
        GamesBenchmark(plot=Path("speeds.foo"))
