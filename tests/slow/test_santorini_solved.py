"""Santorini on 3x3, one worker a side: 61 million positions, solved once for all tests here."""

import jax
import numpy as np
import pytest

import azjax
from azjax.cli import main
from azjax.evaluation import exact_report, load_solution, random_player

pytestmark = pytest.mark.slow

GAME = azjax.make("santorini", size=3)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("solved") / "santorini_3_1.npz"
    main(["solve", "santorini", "--size", "3", "--output", str(path)])
    return path


@pytest.fixture(scope="module")
def solution(file):
    return load_solution(file, GAME)


def test_the_counts_are_those_published(solution):
    facts = solution.summary()
    assert facts.reachable == 61_233_539
    assert facts.won + facts.drawn + facts.lost == 44_124_069
    assert (facts.won, facts.drawn) == (32_387_769, 0)
    assert (facts.longest_game, facts.value_first_player) == (32, -1)


def test_every_position_of_the_public_sample_has_its_value_distance_and_action_values(golden, solution):
    lines = golden("solved/santorini_3_1_public")
    states = [jax.device_get(GAME.from_text(line["state"])) for line in lines]
    rows = solution.index(jax.tree.map(lambda *leaves: np.stack(leaves), *states))
    np.testing.assert_array_equal(solution.values[rows], [line["value"] for line in lines])
    np.testing.assert_array_equal(solution.distances(rows), [line["plies"] for line in lines])
    np.testing.assert_array_equal(solution.plies[rows], [line["ply"] for line in lines])
    block = solution.block(rows)
    for row, line in enumerate(lines):
        legal = block.legal[row]
        assert block.actions[row][legal].tolist() == line["legal"]
        assert block.action_values[row][legal].tolist() == line["action_values"]


def test_the_exact_report_of_random_play_covers_all_positions(solution):
    report = exact_report(random_player(GAME), solution, jax.random.key(0))
    assert report.mistakes.states == report.mistakes.own_states == 44_124_069
    assert report.mistakes.own_count == pytest.approx(report.mistakes.count)
    assert 0 < report.mistakes.share < 1
    # Against itself it is as strong in both seats.
    both = report.against_random
    assert both.moving_first.win + both.moving_second.win == pytest.approx(1)
    assert report.against_optimal.moving_first.score == pytest.approx(0, abs=1e-9)
    assert 0 < report.against_optimal.moving_second.score < 0.5
