"""The solved positions of Connect Four, and the numbers that the study computes from them."""

import functools
import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from studies import load_study

import azjax
from azjax.evaluation import random_player, search_player
from azjax.search import evaluators

GAME = azjax.make("connect_four")
HEIGHT = 6


@pytest.fixture(scope="module")
def study():
    return load_study("connect_four")


@pytest.fixture(scope="module")
def positions(study):
    return study.load_positions(GAME, json.loads(study.POSITIONS.read_text()))


def bits(moves):
    """The stones of the player to move and all stones: 7 bits a column, the lowest cell first."""
    own = other = 0
    heights = [0] * 7
    for move in moves:
        column = int(move) - 1
        own, other = other, own | 1 << (7 * column + heights[column])
        heights[column] += 1
    return own, own | other


def wins(stones):
    for shift in (1, 6, 7, 8):
        pairs = stones & stones >> shift
        if pairs & pairs >> 2 * shift:
            return True
    return False


@functools.cache
def value(own, stones):
    """By negamax in plain Python; -1, 0 or 1 for the player to move."""
    found = [result for column in range(7) if (result := after(own, stones, column)) is not None]
    return max(found, default=0)


def after(own, stones, column):
    """What the player to move gets with this column; None if it is full."""
    below = stones >> 7 * column & 0x7F
    if below >= 1 << HEIGHT - 1:
        return None
    mine = own | (below + 1) << 7 * column
    return 1 if wins(mine) else -value(stones ^ own, stones | mine)


def test_the_values_of_the_start_are_the_known_ones(study):
    """Allis 1988: the middle column wins, its neighbours draw, all others lose."""
    lines = json.loads(study.POSITIONS.read_text())
    assert [line["values"] for line in lines if line["moves"] == ""] == ["--=+=--"]


def test_the_values_of_late_positions_are_those_of_a_plain_negamax(study):
    lines = [line for line in json.loads(study.POSITIONS.read_text()) if len(line["moves"]) >= 30]
    assert len(lines) > 600
    for line in lines:
        own, stones = bits(line["moves"])
        found = [after(own, stones, column) for column in range(7)]
        assert line["values"] == "".join("." if result is None else "-=+"[result + 1] for result in found), line


def test_there_are_3000_positions_of_all_plies_and_kinds_none_of_them_twice(positions):
    assert len(positions.moves) >= 3000
    assert len({bits(moves) for moves in positions.moves}) == len(positions.moves)
    assert set(positions.plies) == set(range(41))
    for kind in ("random", "search", "balanced"):
        assert (positions.kinds == kind).sum() > 900


def test_the_states_are_those_after_the_moves(positions):
    assert not positions.states.terminated.any()
    for row in (1, 100, len(positions.moves) - 1):
        state = GAME.from_text(positions.moves[row])
        for ours, theirs in zip(positions.states.stones, state.stones, strict=True):
            np.testing.assert_array_equal([word[row] for word in ours], list(theirs))
    legal = np.array([GAME.legal_action_mask(GAME.from_text(moves)) for moves in positions.moves[-3:]])
    np.testing.assert_array_equal(legal, positions.legal[-3:])


def test_mistakes_are_counted_on_each_test_set(study, monkeypatch, tmp_path):
    """Two positions of one set and one of another, each with one right move of seven."""
    monkeypatch.setattr(study, "RUNS", tmp_path)
    monkeypatch.setattr(study, "SETS", {"one": ("easy", 0.0), "other": ("hard", 0.5)})
    lines = [
        {"kind": "easy", "moves": "44", "values": "--=+=--"},
        {"kind": "easy", "moves": "112233", "values": "---+---"},
        {"kind": "hard", "moves": "44", "values": "--=+=--"},
    ]
    (tmp_path / "one").write_text("44 2\n112233 18\n")
    (tmp_path / "other").write_text("44 2\n")
    (tmp_path / "pons_sets.json").write_text(json.dumps(lines))
    found = study.on_sets(GAME, {"random": random_player(GAME)}, tmp_path)
    assert found["AlphaZero.jl"] == {"easy": 0.0, "hard": 0.5}
    assert found["random"] == pytest.approx({"easy": 6 / 7, "hard": 6 / 7}, abs=1e-4)

    # Other sets are solved again.
    solver = SimpleNamespace(exact_solver=lambda: None, values=lambda solver, moves: "-++++++")
    monkeypatch.setitem(sys.modules, "connect_four_positions", solver)
    (tmp_path / "other").write_text("55 2\n")
    assert study.load_sets(GAME, tmp_path).moves == ["44", "112233", "55"]
    found = study.on_sets(GAME, {"random": random_player(GAME)}, tmp_path)
    assert found["random"] == pytest.approx({"easy": 1 / 7, "hard": 1 / 7}, abs=1e-4)


def test_the_packaged_agent_errs_as_the_results_say(study, positions):
    """The results are of a network in bfloat16, the packaged one plays in float32."""
    (row,) = [row for row in json.loads((study.RESULTS / "connect_four.json").read_text())["rows"][-2:-1]]
    assert row["player"] == "network"
    agent = azjax.load_player("connect_four", level="medium")
    found = study.mistakes(study.move_probabilities(agent, positions), positions)
    assert found["all"] == pytest.approx(row["all"], abs=0.003)


def test_random_moves_err_as_often_as_there_are_wrong_ones(study, positions):
    found = study.mistakes(study.move_probabilities(random_player(GAME), positions), positions)
    wrong = 1 - positions.keeps.sum(axis=1) / positions.legal.sum(axis=1)
    assert found["all"] == pytest.approx(wrong.mean(), abs=1e-4)
    assert found["narrow"] == pytest.approx(wrong[positions.narrow].mean(), abs=1e-4)
    assert len(found["by_ply"]) == 41


def test_the_match_counts_games_that_the_first_player_won_drew_and_lost(study, monkeypatch):
    class First:
        """Plays the first open column, and so loses to a search."""

        def __init__(self, rollouts, seed):
            pass

        def move(self, moves):
            return next(column for column in range(7) if moves.count(str(column + 1)) < HEIGHT)

    monkeypatch.setattr(study, "OpenSpielMcts", First)
    player = search_player(GAME, evaluators.uniform(GAME), num_simulations=300)
    assert study.against_mcts(GAME, player, 1, 2) == {"won": 2, "drawn": 0, "lost": 0}


def test_rivals_with_other_rollouts_are_measured_again(study, tmp_path):
    committed = study.RESULTS / "connect_four.json"
    known = study.rivals_so_far(committed, (1_000, 10_000))
    assert [row["player"] for row in known] == ["random", "MCTS, 1,000 rollouts", "MCTS, 10,000 rollouts"]
    assert study.rivals_so_far(committed, (1_000,)) == study.rivals_so_far(tmp_path / "none.json", (1_000,)) == []


def test_openspiel_finds_a_mate_in_one(study):
    assert study.OpenSpielMcts(200).move("112233") == 3
