import math

import numpy as np
import pytest

from azjax.core.errors import InputError
from azjax.evaluation import SequentialTest


def rewards(elo: float, draws: float, games: int, generator: np.random.Generator) -> np.ndarray:
    win = 1 / (1 + 10 ** (-elo / 400)) - draws / 2
    return generator.choice([1.0, 0.0, -1.0], p=[win, draws, 1 - win - draws], size=games)


def stopped(test: SequentialTest, played: np.ndarray, step: int = 20) -> float | None:
    for games in range(step, len(played) + 1, step):
        accepted = test.accepted(played[:games])
        if accepted is not None:
            return accepted
    return None


def test_the_bounds_are_walds():
    test = SequentialTest(0.0, 10.0, alpha=0.05, beta=0.1)
    assert test.bounds == (pytest.approx(math.log(0.1 / 0.95)), pytest.approx(math.log(0.9 / 0.05)))


def test_the_ratio_is_that_of_normal_scores_where_there_are_many():
    played = rewards(10, 0.4, 20_000, np.random.default_rng(0))
    pairs = (played.reshape(-1, 2) + 1).mean(axis=1) / 2
    # With mean s, s0, s1 and variance v of a pair's score: n (s1 - s0) (2 s - s0 - s1) / 2 v.
    s0, s1 = (1 / (1 + 10 ** (-elo / 400)) for elo in (0, 10))
    expected = len(pairs) * (s1 - s0) * (2 * pairs.mean() - s0 - s1) / (2 * pairs.var())
    assert SequentialTest(0.0, 10.0).log_likelihood_ratio(played) == pytest.approx(expected, rel=0.02)


def test_the_ratio_of_ten_pairs_is_that_of_the_likeliest_shares():
    """Six pairs of 1 1/2 points of 2 and four of one; of the other three results a thousandth of a pair each.

    The likeliest shares with mean s are p / (1 + t (a - s)) for scores a and observed shares p, where t solves
    sum p (a - s) / (1 + t (a - s)) = 0, whose left side falls in t. Here t is found by halving.
    """
    scores, counts = np.array([0, 0.25, 0.5, 0.75, 1]), np.array([0.001, 0.001, 4, 6, 0.001])
    shares = counts / counts.sum()

    def likeliest(mean):
        low, high = -1 / (1 - mean), 1 / mean
        for _ in range(100):
            middle = (low + high) / 2
            left = np.sum(shares * (scores - mean) / (1 + middle * (scores - mean)))
            low, high = (middle, high) if left > 0 else (low, middle)
        return shares / (1 + low * (scores - mean))

    expected = 10 * np.sum(shares * np.log(likeliest(1 / (1 + 10 ** (-50 / 400))) / likeliest(0.5)))
    played = [1.0, 0.0] * 6 + [1.0, -1.0] * 4
    assert SequentialTest(0.0, 50.0).log_likelihood_ratio(played) == pytest.approx(expected, rel=1e-6)


def test_pairs_show_the_stronger_player_where_the_first_mover_wins():
    # The first mover wins, except in one pair of ten: single games look like coin tosses, pairs do not.
    one_sided = [1.0, -1.0] * 9 + [1.0, 1.0]
    test = SequentialTest(0.0, 20.0)
    assert test.accepted(one_sided * 40) == 20
    alike = test.log_likelihood_ratio(sorted(one_sided) * 40)
    assert test.log_likelihood_ratio(one_sided * 40) > 2 * alike


def test_error_rates_are_within_alpha_and_beta():
    generator, test = np.random.default_rng(1), SequentialTest(0.0, 100.0)
    for elo in (0, 100):
        accepted = [stopped(test, rewards(elo, 0.3, 2000, generator)) for _ in range(200)]
        # 5% of 200, and three standard deviations.
        assert sum(found != elo for found in accepted) <= 10 + 3 * math.sqrt(200 * 0.05 * 0.95)


def test_few_games_decide_nothing():
    assert SequentialTest().log_likelihood_ratio([]) == 0
    assert SequentialTest().accepted([1.0, 1.0, 0.0, 0.0]) is None
    assert math.isfinite(SequentialTest().log_likelihood_ratio([1.0] * 100))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"elo0": 5.0, "elo1": 5.0}, "elo0 must be less than elo1, and both within -2000..2000; got 5.0 and 5.0"),
        ({"elo1": math.inf}, "both within -2000..2000; got 0.0 and inf"),
        ({"alpha": 0.0}, "alpha must be between 0 and 0.5, got 0.0"),
        ({"beta": 0.5}, "beta must be between 0 and 0.5, got 0.5"),
    ],
)
def test_a_test_that_makes_no_sense_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        SequentialTest(**options)


def test_games_come_in_pairs():
    with pytest.raises(InputError, match="rewards must be of pairs of games, got 3"):
        SequentialTest(0, 50).accepted([1.0, 1.0, 1.0])
