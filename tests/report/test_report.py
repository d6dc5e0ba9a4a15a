import dataclasses
import io
import json
import shutil

import jax
import pytest
from rich.console import Console
from small_run import SMALL

from azjax.core.errors import FileError, RunError
from azjax.evaluation import random_player, solve
from azjax.games.registry import make
from azjax.report import (
    by_ply_table,
    draw_learning_curve,
    measure,
    perft_table,
    solution_table,
    strength_table,
)
from azjax.report.run_report import gather
from azjax.report.strength import try_solve
from azjax.runs import train
from azjax.runs.metrics import METRICS


def _text(table):
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(table)
    return console.export_text()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "connect2"
    train(make("connect2"), SMALL, folder)
    return folder


def _png_size(path):
    header = path.read_bytes()[:24]
    assert header.startswith(b"\x89PNG\r\n\x1a\n")
    return int.from_bytes(header[16:20]), int.from_bytes(header[20:24])


def test_the_learning_curve_has_a_panel_for_mistakes_if_they_were_counted(run, tmp_path):
    assert _png_size(draw_learning_curve(run)) == (1650, 510)
    plain = tmp_path / "plain"
    plain.mkdir()
    for name in ("config.json", "timing.jsonl"):
        (plain / name).write_bytes((run / name).read_bytes())
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    for row in rows:
        row.pop("mistakes", None)
    (plain / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert _png_size(draw_learning_curve(plain)) == (1650, 480)


def test_a_run_without_metrics_has_no_learning_curve(run, tmp_path):
    (tmp_path / "config.json").write_bytes((run / "config.json").read_bytes())
    with pytest.raises(ValueError, match="has no metrics to draw yet"):
        draw_learning_curve(tmp_path)
    with pytest.raises(RunError, match="is not a run folder"):
        draw_learning_curve(tmp_path / "nowhere")


def test_a_learning_curve_may_begin_before_the_first_game_ends(run, tmp_path):
    """Losses are null there."""
    (tmp_path / "config.json").write_bytes((run / "config.json").read_bytes())
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    rows[0] |= {"policy_loss": None, "value_loss": None, "target_entropy": None, "games": 0.0}
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert draw_learning_curve(tmp_path).exists()


def test_the_strength_of_random_play_on_connect2_is_known_exactly():
    game = make("connect2")
    (strength,) = measure(game, [random_player(game)], num_games=200, key=jax.random.key(0))
    assert strength.exact.mistakes.states == 23
    assert strength.exact.against_random.alternating.score == pytest.approx(0.5)
    assert [match.second for match in strength.matches] == ["random", "optimal"]
    text = _text(strength_table(game, [strength]))
    for row in ("mistakes                              6.83 (29.71%)", "200 games against optimal: won"):
        assert " ".join(row.split()) in " ".join(text.split())


def test_mistakes_of_random_play_on_connect2_are_listed_by_ply():
    game = make("connect2")
    (strength,) = measure(game, [random_player(game)], num_games=2, key=jax.random.key(0), epsilons=(0.5,))
    rows = [line.split() for line in _text(by_ply_table(game, [strength])).splitlines()]
    # At the start two of four moves give the win away.
    assert ["0", "1", "0.5", "(50.00%)"] in rows
    assert list(strength.exact.against_epsilon_optimal) == [0.5]
    with pytest.raises(ValueError, match="connect2 was not solved"):
        by_ply_table(game, [dataclasses.replace(strength, exact=None)])


@pytest.mark.slow
def test_a_game_too_large_to_solve_is_measured_by_matches_alone():
    game = make("mnk", columns=5, rows=5, in_a_row=2)
    assert try_solve(game) is None
    (strength,) = measure(game, [random_player(game)], num_games=4, key=jax.random.key(0))
    assert strength.exact is None
    assert [match.second for match in strength.matches] == ["random", "uct:100"]


def test_the_facts_of_a_solved_game_are_shown():
    text = _text(solution_table(solve(make("connect2"))))
    for fact in ("value for the first player", "+1", "b1 (1), c1 (2)", "32", "4 plies"):
        assert fact in text


def test_perft_is_listed_by_depth():
    text = _text(perft_table(make("tictactoe"), [9, 72, 504, 3024]))
    assert "tictactoe: perft" in text
    assert "3,024" in text


def test_a_picture_that_cannot_be_written_leaves_the_earlier_one(run, monkeypatch):
    before = draw_learning_curve(run).read_bytes()

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("azjax.core.files.os.fsync", full)
    with pytest.raises(FileError, match=r"learning_curve\.png could not be written: No space left on device"):
        draw_learning_curve(run)
    assert (run / "learning_curve.png").read_bytes() == before


@pytest.mark.parametrize("row", ['{"iteration": 4, "loss": "abc"}', '{"iteration": 4, "loss": 1.0}', "{"])
def test_a_report_of_damaged_metrics_names_the_line_before_anything_is_measured(run, tmp_path, row):
    folder = shutil.copytree(run, tmp_path / "run")
    lines = (folder / METRICS).read_text().splitlines()
    (folder / METRICS).write_text("\n".join([*lines[:3], row]) + "\n")
    with pytest.raises(RunError, match=r"metrics.jsonl: line 4 is damaged"):
        gather(folder)
