import copy
import io
import json
import sys

import jax
import pytest
from rich.console import Console

from azjax.benchmark import plain
from azjax.benchmark.games import GamesBenchmark, random_play
from azjax.games.registry import make

SMALL = {"games": ("tictactoe",), "batches": (1, 4), "plies": 64, "repeats": 3}


def _perft(game, depth):
    if depth == 0:
        return 1
    total = 0
    for action in [] if game.over else game.actions():
        child = copy.deepcopy(game)
        child.play(action)
        total += _perft(child, depth - 1)
    return total


@pytest.mark.parametrize(
    ("game", "counts"),
    [
        (plain.TicTacToe, [9, 72, 504, 3024]),
        (plain.ConnectFour, [7, 49, 343, 2401]),
        (plain.Santorini, [80, 6232]),
        (plain.BrandubWithRepetition, [40, 960]),
    ],
)
def test_the_plain_games_have_the_known_perft(game, counts):
    assert [_perft(game(), depth + 1) for depth in range(len(counts))] == counts


@pytest.mark.parametrize(
    ("name", "options", "game"),
    [
        ("tictactoe", {}, plain.TicTacToe),
        ("connect_four", {}, plain.ConnectFour),
    ],
)
def test_random_games_are_as_long_as_plain_ones(name, options, game):
    plies, batch = 16_384, 16
    ended, _ = random_play(make(name, **options), batch, plies // batch)(jax.random.key(0))
    assert plies / int(ended) == pytest.approx(plies / plain.play_randomly(game, plies, seed=0), rel=0.1)


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
        assert f"{rates['azjax']:,}" in screen.getvalue()
    assert report["machine"]["load_average"] >= 0


def test_missing_rivals_are_left_out_and_named(monkeypatch):
    screen = io.StringIO()
    for package in ("pgx", "pgx.experimental", "pyspiel"):
        monkeypatch.setitem(sys.modules, package, None)
    report = GamesBenchmark(**SMALL).run(Console(file=screen, width=200))
    assert set(report["rows"][0]["steps_per_second"]) == {"azjax", "plain Python"}
    assert "left out, not installed: pgx, OpenSpiel (pip install 'azjax[interop]')" in screen.getvalue()


@pytest.mark.parametrize("field", ["plies", "repeats"])
def test_sizes_below_one_are_refused(field):
    with pytest.raises(ValueError, match=f"{field} must be at least 1, got 0"):
        GamesBenchmark(**{field: 0})


def test_an_unknown_game_and_a_batch_below_one_are_refused():
    with pytest.raises(ValueError, match="unknown game 'chess'; available: tictactoe, connect_four, brandub, "):
        GamesBenchmark(games=("chess",))
    with pytest.raises(ValueError, match="batches must be at least 1, got 0"):
        GamesBenchmark(batches=(0, 4))
