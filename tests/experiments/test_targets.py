"""What networks are told: the truth, the targets of searches, and those of whole games."""

import json

import jax
import numpy as np
import pytest
from studies import load_study

from azjax.core.errors import InputError
from azjax.evaluation import (
    mistakes,
    network_player,
    solve,
    tabulate,
)
from azjax.evaluation.exact import random_table
from azjax.games.registry import make
from azjax.networks import NetworkOutput
from azjax.packaged import load_agent
from azjax.training import preset


def test_the_truth_about_positions_is_that_of_the_solution():
    study, game = load_study("networks"), make("santorini", size=2, workers=1)
    solution = solve(game)
    drawn = study.draw_positions(solution, 10**6)
    assert len(drawn.values) == solution.num_unfinished
    assert len({position.tobytes() for position in drawn.observations}) == solution.num_unfinished
    assert (drawn.best <= drawn.legal).all()
    assert drawn.best.any(axis=1).all()
    # The mistakes of random moves are counted in another way by `mistakes`.
    given_away = (1 - drawn.best.sum(axis=1) / drawn.legal.sum(axis=1)).sum()
    assert given_away == pytest.approx(mistakes(solution, random_table).count, rel=1e-5)


def test_mistakes_are_legal_moves_that_give_away_value_and_signs_are_those_of_the_values():
    study = load_study("networks")
    logits = np.array([[3.0, 2, 1], [1, 2, 3], [0, 5, 1], [9, 0, 1]])
    values = np.array([0.5, -0.5, 0.5, 0.5])

    class Network:
        def apply(self, variables, observations, train):
            return NetworkOutput(observations @ logits, observations @ values), {}

    positions = study.Positions(
        observations=np.eye(4, dtype=np.float32),
        best=np.array([[1, 0, 0], [0, 1, 0], [1, 0, 1], [0, 1, 1]], bool),
        legal=np.array([[1, 1, 1], [1, 1, 1], [1, 0, 1], [0, 1, 1]], bool),
        values=np.array([1.0, 1, 1, 1], np.float32),
    )
    # Only the second gives value away: the highest logits of the last two are illegal.
    assert study.measure(Network(), {}, positions) == {"mistakes": 0.25, "signs_right": 0.75}


@pytest.mark.slow
def test_the_targets_of_a_search_are_compared_with_the_solution(monkeypatch):
    study, agent = load_study("targets"), load_agent("santorini_2x2")
    solution = solve(agent.game)
    drawn = study.draw_unfinished(solution, 10**6, np.random.default_rng(0))
    assert len(drawn) == solution.num_unfinished
    row = study.measure(agent, solution, drawn, 64, 16)
    network = network_player(agent.game, agent.network, agent.variables, temperature=0.0)
    assert row["mistakes, network"] == pytest.approx(
        mistakes(solution, tabulate(network, solution, jax.random.key(0))).share, abs=1e-4
    )
    # A search sees no less than its network, and the value of the best actions is nearer to the truth than the mean.
    assert row["mistakes, policy"] <= row["mistakes, network"]
    assert row["squared error, value"] < row["squared error, mean of the simulations"]


def test_a_board_with_fewer_positions_than_are_held_out_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"^held_out must be below 1311, the positions of the board, got 2000$"):
        load_study("networks").main(size=2, held_out=2000, output=tmp_path / "results.json")


@pytest.mark.slow
def test_networks_learn_the_truth_at_tiny_sizes(tmp_path, monkeypatch):
    study = load_study("networks")
    monkeypatch.setattr(study, "NETWORKS", {"equivariant_mlp": {"network": "equivariant_mlp", "width": 32, "depth": 1}})
    output, plot = tmp_path / "networks.json", tmp_path / "plot.png"
    study.main(seconds=1, size=2, positions=3000, held_out=500, points=2, output=output, plot=plot)
    rows = json.loads(output.read_text())["rows"]
    assert [(row["optimizer"], row["network"]) for row in rows] == [
        (rule, "equivariant_mlp") for rule in ("adam", "adam", "muon", "muon")
    ]
    assert all(row["mistakes"] < 0.1 for row in rows[1::2])
    assert plot.exists()


def test_the_error_of_the_mean_of_targets_leaves_out_what_varies():
    study = load_study("value_targets")
    truth = np.array([1, -1])
    found = study.errors(np.array([[1.0, 0.0, 1.0, 0.0], [-0.5, -0.5, -0.5, -0.5]]), truth)
    # Pairs of different games: one of six has two errors of 1; then always 1/4.
    assert found["systematic"] == pytest.approx((1 / 6 + 1 / 4) / 2, abs=1e-4)
    assert found["of_one_game"] == pytest.approx((1 / 2 + 1 / 4) / 2, abs=1e-4)
    alone = study.errors(np.array([[0.0], [-1.0]]), truth)
    assert (alone["systematic"], alone["of_one_game"]) == (0.5, 0.5)


@pytest.mark.slow
def test_value_targets_are_those_of_games_from_the_positions(tmp_path, monkeypatch):
    study, agent = load_study("value_targets"), load_agent("connect_four")
    monkeypatch.setattr(study, "LAST_PLY", 3)
    monkeypatch.setattr(study, "VARIANTS", {name: study.VARIANTS[name] for name in ("results", "values")})
    settings = preset(agent.game).replace(num_simulations=2, first_simulations=0)
    monkeypatch.setattr(study.azjax, "preset", lambda game: settings)
    study.main(games=2, output=tmp_path / "results.json")
    rows = json.loads((tmp_path / "results.json").read_text())["rows"]
    assert [row["target"] for row in rows] == ["the network itself", "results", "values"]
    assert rows[1]["of_one_game"] > rows[1]["systematic"]
    assert rows[2]["of_one_game"] < 0.7
    # The results of games are -1, 0 and 1.
    positions = study.load_positions(agent.game, json.loads(study.POSITIONS.read_text()))
    states = jax.tree.map(lambda leaf: leaf[positions.plies <= 3], positions.states)
    play = study.make_play(agent, settings.replace(root_value_fraction=0.0, solver=False), states)
    assert set(np.asarray(play(jax.random.key(0))).tolist()) <= {-1.0, 0.0, 1.0}
