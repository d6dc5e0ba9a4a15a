import dataclasses
import json

import pytest
from small_run import SMALL

from azjax.evaluation import load_games
from azjax.games.registry import make
from azjax.runs import Checkpoints, train
from azjax.runs.evaluation import PeriodicEvaluation
from azjax.runs.ladder_games import ladder_games

GAME = make("connect2")
LADDER = dataclasses.replace(
    SMALL, evaluate_every=0, ladder_every=2, ladder_games=2, ladder_opponents=("random",), iterations=5
)


def test_evaluation_with_too_large_a_share_is_refused_with_its_share():
    config = dataclasses.replace(SMALL, evaluate_every=0, ladder_every=1, ladder_games=10, evaluation_share=0.5)
    # 10 games, 2 moves of a side, 3 + 1 + 1 + 100 positions; self-play evaluates 4 * 4 * 4 and learns from 2 * 8.
    message = (
        r"evaluation_share must be at least 26.25, got 0.5: evaluation would take up to 2,100 .* 80; raise "
        "ladder_every = 1, or lower ladder_games"
    )
    with pytest.raises(ValueError, match=message):
        PeriodicEvaluation(GAME, config)
    PeriodicEvaluation(GAME, dataclasses.replace(config, evaluation_share=26.25))


def test_a_game_that_cannot_be_solved_is_refused_with_what_measures_it():
    message = "evaluate_every counts mistakes, ladder_every measures by matches: brandub cannot be solved"
    with pytest.raises(ValueError, match=message):
        PeriodicEvaluation(make("brandub"), dataclasses.replace(SMALL, evaluate_every=1))


def test_mistakes_count_for_the_share_too():
    # 23 unfinished positions every two iterations, of 80.
    with pytest.raises(
        ValueError, match=r"evaluation_share must be at least 0.144, got 0.1: .* raise evaluate_every = 2$"
    ):
        PeriodicEvaluation(GAME, dataclasses.replace(SMALL, evaluation_share=0.1))
    PeriodicEvaluation(GAME, dataclasses.replace(SMALL, evaluation_share=0.144))


@pytest.mark.parametrize(
    ("config", "score"),
    [(SMALL, 3.0), (LADDER, -100.0), (dataclasses.replace(SMALL, evaluate_every=0), 1.5)],
)
def test_the_best_checkpoint_has_fewest_mistakes_or_the_highest_rating_or_the_lowest_loss(config, score):
    row = {"loss": 1.5, "mistakes": 3.0, "ladder_rating": 100.0}
    assert PeriodicEvaluation(GAME, config).score(row) == score
    assert PeriodicEvaluation(GAME, config).score({"loss": float("nan")}) is None


@pytest.mark.slow
def test_a_run_climbs_its_ladder_and_logs_the_time(tmp_path):
    result = train(GAME, LADDER, tmp_path / "run")
    rows = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    assert [row["iteration"] for row in rows if "ladder_rating" in row] == [2, 4]
    assert all(0 <= row["score_random"] <= 1 for row in rows if "score_random" in row)
    assert int(result.state.ladder.rung) == rows[3]["ladder_rung"]
    timing = [json.loads(line) for line in (tmp_path / "run/timing.jsonl").read_text().splitlines()]
    assert timing[1]["evaluation_seconds"] > timing[0]["evaluation_seconds"] == 0
    assert Checkpoints(tmp_path / "run/checkpoints").best_step() in (2, 4)


@pytest.mark.slow_except("connect2")
@pytest.mark.parametrize("name", ["connect2", "tictactoe"])
def test_the_games_of_the_ladder_are_kept_with_their_results(tmp_path, name):
    """They begin after random plies, from positions that their text tells."""
    game, config = make(name), LADDER.replace(random_start_plies=3, ladder_games=8, evaluation_share=1e4)
    train(game, config, tmp_path)
    files = ladder_games(tmp_path)
    assert [file.name for file in files] == ["2.jsonl", "4.jsonl"]
    for file, iteration in zip(files, (2, 4), strict=True):
        records = load_games(file)  # replayed there
        assert len(records) == 8
        assert {record.players for record in records} == {
            (f"iteration {iteration}", "the strongest before"),
            ("the strongest before", f"iteration {iteration}"),
        }
        assert all(record.rewards is not None for record in records)
        assert len({record.start for record in records}) > 1
        rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
        points = [record.rewards[record.players.index(f"iteration {iteration}")] for record in records]
        assert sum(points) / 16 + 0.5 == rows[iteration - 1]["ladder_score"]


@pytest.mark.slow
def test_a_run_that_goes_on_keeps_the_same_games(tmp_path):
    train(GAME, LADDER, tmp_path / "whole")
    train(GAME, LADDER.replace(iterations=3), tmp_path / "parts")
    train(GAME, LADDER, tmp_path / "parts", resume=True)
    whole, parts = ladder_games(tmp_path / "whole"), ladder_games(tmp_path / "parts")
    assert [file.read_text() for file in whole] == [file.read_text() for file in parts]
    assert len(whole) == 2


@pytest.mark.slow
def test_a_game_that_the_rules_did_not_end_is_unfinished(tmp_path):
    train(make("tictactoe"), LADDER.replace(truncate_at_ply=2, evaluation_share=1e4), tmp_path)
    assert {record.rewards for file in ladder_games(tmp_path) for record in load_games(file)} == {None}
