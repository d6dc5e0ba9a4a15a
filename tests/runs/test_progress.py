"""How far a run is, where there is no terminal."""

import io
import math

from rich.console import Console

from azjax.runs import Update, progress
from azjax.runs.progress import TrainingProgress, status_of
from azjax.training import Config


def lines_of(runs, iterations, monkeypatch, seconds_between_lines):
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", seconds_between_lines)
    output = io.StringIO()
    shown = TrainingProgress(Console(file=output))
    timing = {"games_per_second": 10.0, "simulations_per_second": 20_000.0}
    for folder in runs:
        shown.begin(folder, Config(iterations=iterations), 0)
    for iteration in range(1, iterations + 1):
        for number, folder in enumerate(runs):
            metrics = {"loss": float(number), "games": 4.0}
            shown(Update(folder, iteration, iterations, metrics, timing, lambda: None))
    shown.end()
    return output.getvalue().splitlines()


def test_the_first_and_the_last_iteration_are_told_and_others_now_and_then(monkeypatch, tmp_path):
    first, last = lines_of([tmp_path], 5, monkeypatch, 1000.0)
    assert first.startswith("iteration 1 of 5, loss 0.00, 10 games/s, 20k simulations/s, 4 games, ")
    assert first.endswith(" left")
    assert last.startswith("iteration 5 of 5, ")
    assert "20 games, 0 s left" in last
    assert len(lines_of([tmp_path], 5, monkeypatch, 0.0)) == 5


def test_a_population_has_the_mean_loss_and_the_sum_of_the_games(monkeypatch, tmp_path):
    lines = lines_of([tmp_path / "a", tmp_path / "b"], 2, monkeypatch, 0.0)
    assert len(lines) == 2
    assert "loss 0.50, 20 games/s, 40k simulations/s, 16 games" in lines[1]


def test_before_the_first_game_has_ended_there_is_no_loss():
    assert status_of({"loss": math.nan}, 0.0, 50.0).startswith("no game has ended yet, ")


def test_without_a_finite_loss_updates_were_skipped():
    assert status_of({"loss": math.nan, "skipped_updates": 2.0}, 0.0, 50.0).startswith("every update was skipped, ")


def test_the_rates_have_two_digits_at_least():
    assert status_of({"loss": 1.0}, 0.44, 8.0) == "loss 1.00, 0.4 games/s, 8.0 simulations/s"
    assert status_of({"loss": 1.0}, 99.9, 999.9) == "loss 1.00, 100 games/s, 1.0k simulations/s"
    assert status_of({"loss": 1.0}, 9960.0, 50_000.0) == "loss 1.00, 10.0k games/s, 50k simulations/s"


def test_the_strength_is_the_rating_and_the_score_against_the_last_opponent():
    row = {"loss": 1.0, "ladder_rating": 412.3, "score_random": 1.0, "score_uct:100": 0.625}
    assert status_of(row, 1.0, 50.0).startswith("loss 1.00, +412 Elo, 62% against uct:100, ")


def test_the_opponents_of_a_ladder_keep_their_order(tmp_path):
    """The last one is told."""
    output, names = io.StringIO(), [f"score_uniform:{number}" for number in range(1, 17)]
    shown = TrainingProgress(Console(file=output))
    shown.begin(tmp_path, Config(iterations=1), 0)
    timing = {"games_per_second": 10.0, "simulations_per_second": 20_000.0}
    metrics = {"loss": 1.0, "games": 4.0, **dict.fromkeys(names, 0.5)}
    shown(Update(tmp_path, 1, 1, metrics, timing, lambda: None))
    shown.end()
    assert "50% against uniform:16, " in output.getvalue()
