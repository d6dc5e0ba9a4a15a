"""The studies of the notebooks' games: tic-tac-toe, Connect-2, Santorini and Brandub."""

import dataclasses
import json

import numpy as np
import pytest
from studies import load_study

from azjax.evaluation import (
    mistakes,
    random_player,
    solve,
)
from azjax.evaluation.exact import random_table
from azjax.games.registry import make
from azjax.training import preset


def test_random_moves_keep_as_many_wins_as_the_solved_sample_says(golden):
    study, game = load_study("santorini_3x3"), make("santorini", size=3, workers=1)
    solved = study.load_sample(game)
    lines = [line for line in golden("solved/santorini_3_1_public") if line["legal"]]
    assert len(solved.values) == len(lines)
    shares = {(line["value"], line["plies"] >= 7): [] for line in lines}
    for line in lines:
        right = np.array(line["action_values"]) == line["value"]
        shares[line["value"], line["plies"] >= 7].append(right.mean())
    found = study.shares(random_player(game), solved)
    assert found["wins_kept"] == pytest.approx(np.mean(shares[1, True] + shares[1, False]), abs=1e-4)
    assert found["long_wins_kept"] == pytest.approx(np.mean(shares[1, True]), abs=1e-4)
    assert found["signs_right"] == 0  # it has no values


def test_mistakes_on_all_positions_of_a_solved_game_are_counted():
    study = load_study("santorini_3x3")
    game = make("tictactoe")
    found = study.on_all_positions(random_player(game), game)
    expected = mistakes(solve(game), random_table)
    assert found["positions"] == 4520
    assert found["mistakes"] == pytest.approx(expected.count, rel=1e-5)
    assert found["share"] == pytest.approx(expected.share, abs=1e-5)


def test_mistakes_on_the_way_are_summed_up_over_seeds():
    found = load_study("best_of_sweep").summary([[4, 0, 0, 0], [2, 1, 0, 1], [3, 2, 1, 0]])
    assert {name: value["mean"] for name, value in found.items()} == {
        "mistakes_at_the_end": 0.333,
        "mean_mistakes_on_the_way": 1.167,
        # After 2, 3, and all of 4 parts.
        "share_of_simulations_until_no_mistake": 0.75,
    }


@pytest.mark.slow
def test_the_best_point_of_the_committed_sweep_is_trained_again_at_tiny_size(tmp_path):
    study = load_study("best_of_sweep")
    study.main(2, 1_640_000, runs=tmp_path / "runs", output=tmp_path / "found.json")
    found = json.loads((tmp_path / "found.json").read_text())
    before, best = found["rows"]
    assert before["settings"] == study.BEFORE
    assert best["settings"].keys() == study.BEFORE.keys()
    assert {len(counts) for row in found["rows"] for counts in row["mistakes"]} == {study.PARTS}
    assert found["settings"]["seeds"] == 2


@pytest.mark.slow
def test_tictactoe_is_searched_and_played_at_tiny_sizes(tmp_path, capsys):
    study = load_study("tictactoe_uct")
    output, plot = tmp_path / "uct.json", tmp_path / "uct.png"
    study.main(counts=(4, 8), games=4, shown_nodes=5, output=output, plot=plot)
    rows = json.loads(output.read_text())["rows"]
    assert [row["simulations"] for row in rows] == [4, 8]
    for row in rows:
        assert {name: sum(rival["won_drawn_lost"]) for name, rival in row["against"].items()} == {
            "random": 4,
            "optimal": 4,
        }
        assert row["against"]["optimal"]["won_drawn_lost"][0] == 0
    assert plot.read_bytes().startswith(b"\x89PNG")
    shown = capsys.readouterr().out
    assert "nodes in the order in which they were added" in shown
    assert "wins of X" in shown


@pytest.mark.slow
def test_connect2_is_learned_twice_at_tiny_sizes(tmp_path, monkeypatch):
    study = load_study("connect2")
    small = dataclasses.replace(preset("connect2"), iterations=2, checkpoint_every=1, width=8, depth=1)
    monkeypatch.setattr(study, "NOTEBOOK", small)
    monkeypatch.setattr(study.azjax, "preset", lambda game: small)
    output = tmp_path / "connect2.json"
    study.main(runs=tmp_path / "runs", output=output)
    results = json.loads(output.read_text())
    assert len(results["rows"]) == 23
    assert {row["position"]: row["value"] for row in results["rows"]}["_X__"] == -1
    for row in results["rows"]:
        assert sum(row["preset"]["policy"]) == pytest.approx(1, abs=0.003)
    assert set(results["agents"]) == {"notebook", "preset"}


@pytest.mark.slow
def test_a_game_is_played_with_what_was_predicted(tmp_path):
    study = load_study("brandub")
    output, picture = tmp_path / "game.json", tmp_path / "game.svg"
    study.main(agent="tictactoe", num_simulations=8, output=output, picture=picture)
    results = json.loads(output.read_text())
    # Two who make no mistake draw.
    assert len(results["moves"]) == 9
    assert {move["result"] for move in results["moves"]} == {0}
    assert results["simulations_per_second"] > 0
    assert picture.read_text().startswith("<svg")


@pytest.mark.slow
def test_the_gated_rounds_of_santorini_never_keep_a_network_that_did_not_pass(monkeypatch):
    study = load_study("santorini_small")
    monkeypatch.setattr(study, "TRIES", 1)
    small = dataclasses.replace(
        study.GATED, num_simulations=8, updates_per_iteration=4, gate_rounds=2, gate_games=20, num_games=8, batch_size=8
    )
    monkeypatch.setattr(study, "GATED", small)
    game = make("santorini", size=2, workers=1)
    rows = study.gated(game, study.solve(game), seed=0)
    assert all(row["gate_score"] >= 0.55 for row in rows)
