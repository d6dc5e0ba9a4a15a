import math

import numpy as np
import pytest

from azjax.evaluation.match_result import MatchResult, Record
from azjax.evaluation.seats import RESIGNATION


def test_a_record_counts_rewards_by_their_sign():
    assert Record.of([1.0, 0.5, 0.0, -1.0]) == Record(2, 1, 1)
    assert Record.of([]) == Record(0, 0, 0)


def test_a_draw_is_half_a_win():
    assert Record(3, 2, 5).score == 0.4
    assert (Record(1, 2, 3) + Record(10, 20, 30)) == Record(11, 22, 33)
    assert math.isnan(Record(0, 0, 0).score)


def test_the_interval_is_wilsons():
    # Wilson 1927, as tabulated for 50 of 100 and 0 of 10 successes.
    np.testing.assert_allclose(Record(50, 0, 50).interval, (0.40383, 0.59617), atol=1e-5)
    np.testing.assert_allclose(Record(0, 0, 10).interval, (0, 0.27753), atol=1e-5)
    assert Record(0, 0, 0).interval == (0, 1)


def test_draws_narrow_the_interval_as_they_do_the_spread_of_results():
    # Half of the games drawn: half of the variance, so as narrow as of twice as many games without draws.
    low, high = Record(250, 500, 250).interval
    narrow, wide = Record(1000, 0, 1000).interval, Record(500, 0, 500).interval
    np.testing.assert_allclose((low, high), narrow, atol=1e-4)
    assert wide[0] < low - 0.005
    # Nothing but draws leaves some doubt, the less the more there are.
    assert Record(0, 10, 0).interval[0] < Record(0, 100, 0).interval[0] < 0.5


@pytest.mark.slow_except("0.5-0.4")
@pytest.mark.parametrize(("score", "draws"), [(0.5, 0.0), (0.5, 0.4), (0.5, 0.8), (0.8, 0.2), (0.9, 0.1), (0.95, 0.1)])
def test_the_interval_holds_the_score_in_93_to_97_percent_of_matches(score, draws):
    shares = [score - draws / 2, draws, 1 - score - draws / 2]
    results = np.random.default_rng(0).multinomial(200, np.maximum(shares, 0), size=10_000).tolist()
    intervals = np.array([Record(*result).interval for result in results])
    held = np.mean((intervals[:, 0] <= score) & (score <= intervals[:, 1]))
    assert 0.93 <= held <= 0.97


def test_a_resigned_game_counts_as_played_and_a_forfeited_one_does_not():
    result = MatchResult(
        first="first",
        second="second",
        rewards=(1.0, -1.0, 1.0, 0.0),
        actions=((0,), (1, 2), (0,), ()),
        starts=None,
        ends=(RESIGNATION, "illegal move z9", "silence", None),
    )
    assert result.total == Record(2, 1, 1)
    assert result.forfeits == (None, "illegal move z9", "silence", None)
    assert result.num_forfeits == 2
    # Games of even number begin with the first player.
    assert result.played_out_by_seat == (Record(1, 0, 0), Record(0, 1, 0))
    assert result.played_out == Record(1, 1, 0)
    assert result.plies == (1, 2, 1, 0)
