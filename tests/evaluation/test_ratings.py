import math

import choix
import jax
import numpy as np
import pytest
import scipy

from azjax.evaluation import MatchResult, Ratings, Record, rate
from azjax.evaluation.ratings import pairings_of
from azjax.games.registry import make

ELO = 400 / math.log(10)


def planted(elo: dict[str, float], advantage: float, drawing: float, games: int, generator: np.random.Generator):
    """Results of each two players, each moving first in `games`, drawn from the model as its papers write it."""
    found = []
    for first in elo:
        for second in elo:
            if first != second:
                # Davidson and Beaver 1977: pi_1, theta pi_2 and nu sqrt(pi_1 pi_2), here with the advantage on pi_1.
                win, lose = 10 ** ((elo[first] + advantage) / 400), 10 ** (elo[second] / 400)
                weights = np.array([win, drawing * math.sqrt(win * lose), lose])
                found.append((first, second, Record(*generator.multinomial(games, weights / weights.sum()).tolist())))
    return found


def test_planted_strengths_advantage_and_draws_are_recovered():
    elo = {"a": 0.0, "b": 150.0, "c": -90.0, "d": 320.0}
    ratings = rate(planted(elo, 60.0, 1.5, 20_000, np.random.default_rng(0)), anchor="a")
    assert ratings.players == ("d", "b", "a", "c")
    np.testing.assert_allclose(ratings.elo, [320, 150, 0, -90], atol=6)
    assert ratings.first_move_advantage == pytest.approx(60, abs=4)
    assert ratings.draw_rate == pytest.approx(1.5 / 3.5, abs=0.01)
    assert ratings.games == (120_000,) * 4
    assert ratings.intervals[2] == (0, 0)


def test_without_draws_the_strengths_are_those_that_choix_finds():
    generator = np.random.default_rng(1)
    wins = generator.integers(3, 30, size=(5, 5))
    pairings, data = [], []
    for i in range(5):
        for j in range(5):
            if i != j:
                # Each result stands once for either side that moves first, so that moving first is worth nothing.
                pairings += [(f"p{i}", f"p{j}", Record(int(wins[i, j]), 0, 0))]
                pairings += [(f"p{j}", f"p{i}", Record(0, 0, int(wins[i, j])))]
                data += [(i, j)] * int(wins[i, j])
    ratings = rate(pairings, virtual_games=1e-6)
    expected = ELO * choix.opt_pairwise(5, data, alpha=1e-9)
    found = dict(zip(ratings.players, ratings.elo, strict=True))
    np.testing.assert_allclose([found[f"p{i}"] for i in range(5)], expected - expected.mean(), atol=0.05)
    assert ratings.first_move_advantage == pytest.approx(0, abs=1e-3)


def test_two_ratings_follow_from_the_shares_of_results():
    # Won, drawn and lost 8:4:2 moving first and 2:4:8 moving second, of many: the model fits exactly.
    record = Record(80_000, 40_000, 20_000)
    ratings = rate([("a", "b", record), ("b", "a", Record(20_000, 40_000, 80_000))])
    # e^t = 8/2, and e^d = 4 / sqrt(8 * 2).
    assert ratings.elo[0] - ratings.elo[1] == pytest.approx(ELO * math.log(4), abs=0.1)
    assert ratings.draw_rate == pytest.approx(1 / 3, abs=1e-3)
    same = rate([("a", "b", record)] * 2 + [("b", "a", Record(0, 0, 0))])
    assert same.games == (280_000, 280_000)


def test_a_player_that_won_all_games_has_a_finite_rating_and_no_upper_end():
    """Whoever wins n of n games wins each with a probability of more than 0.1465^(1/n), at 95%, by the likelihood."""
    ratings = rate([("a", "b", Record(10, 0, 0)), ("b", "a", Record(0, 0, 10))], anchor="b")
    (low, high), _ = ratings.intervals
    share = math.exp(-1.920729 / 20)
    assert low == pytest.approx(ELO * math.log(share / (1 - share)), abs=3)
    assert low < ratings.elo[0] < high == math.inf
    more = rate([("a", "b", Record(1000, 0, 0)), ("b", "a", Record(0, 0, 1000))], anchor="b")
    assert more.elo[0] > ratings.elo[0] + 200
    drawn = rate([("a", "b", Record(0, 10, 0))])
    assert drawn.elo == pytest.approx((0, 0))
    assert drawn.intervals[0][0] < 0 < drawn.intervals[0][1]


def test_an_interval_ends_where_a_likelihood_ratio_test_does():
    """Two players, no draws, moving first worth nothing: 30 of 40 games, by the binomial distribution."""
    ratings = rate([("a", "b", Record(15, 0, 5)), ("b", "a", Record(5, 0, 15))], anchor="b", virtual_games=1e-6)

    def lacks(elo: float) -> float:
        share = 1 / (1 + 10 ** (-elo / 400))
        found = 30 * math.log(0.75 / share) + 10 * math.log(0.25 / (1 - share))
        return found - scipy.stats.chi2.ppf(0.95, 1) / 2

    ends = scipy.optimize.brentq(lacks, -400, 190), scipy.optimize.brentq(lacks, 191, 900)
    assert ratings.intervals[0] == pytest.approx(ends, abs=0.5)


def test_intervals_hold_strengths_far_from_the_others():
    """Whose estimates are drawn to the mean: they lose nearly all games."""
    elo = {"a": 0.0, "b": 100.0, "c": -1800.0, "d": -3000.0}
    ratings = rate(planted(elo, 20.0, 0.2, 10, np.random.default_rng(0)), anchor="a")
    for player, found, (low, high) in zip(ratings.players, ratings.elo, ratings.intervals, strict=True):
        assert low <= elo[player] <= high
        assert low <= found <= high
        assert found > elo[player] + 300 or player in "ab"


def coverage(datasets: int, games: int) -> float:
    """How often an interval holds the planted rating, over all players of so many pools."""
    generator, elo = np.random.default_rng(2), {"a": 0.0, "b": 120.0, "c": -60.0, "d": 240.0}
    mean = sum(elo.values()) / len(elo)
    held = []
    for _ in range(datasets):
        ratings = rate(planted(elo, 40.0, 1.0, games, generator))
        held += [
            low <= elo[player] - mean <= high
            for player, (low, high) in zip(ratings.players, ratings.intervals, strict=True)
        ]
    return float(np.mean(held))


@pytest.mark.slow
def test_intervals_hold_the_planted_ratings_mostly():
    assert coverage(60, 50) > 0.85


@pytest.mark.slow
def test_intervals_hold_the_planted_ratings_in_93_to_97_percent():
    assert 0.93 <= coverage(500, 50) <= 0.97


def test_results_of_a_match_are_paired_by_the_first_mover():
    # a moves first in games 0 and 2 and wins these; it loses game 1 and draws game 3.
    match = MatchResult("a", "b", (1.0, -1.0, 1.0, 0.0), ((0,),) * 4, starts=make("tictactoe").init(jax.random.key(0)))
    assert pairings_of([match]) == [("a", "b", Record(2, 0, 0)), ("b", "a", Record(1, 1, 0))]
    ratings = rate(pairings_of([match]))
    assert isinstance(ratings, Ratings)
    assert ratings.first_move_advantage > 0


def test_forfeited_games_are_not_rated():
    starts = make("tictactoe").init(jax.random.key(0))
    match = MatchResult("a", "b", (1.0, -1.0, 1.0, 0.0), ((0,),) * 4, starts=starts, ends=("time", None, None, None))
    assert pairings_of([match]) == [("a", "b", Record(1, 0, 0)), ("b", "a", Record(1, 1, 0))]
    assert match.played_out == Record(1, 1, 1)


@pytest.mark.parametrize(
    ("pairings", "options", "message"),
    [
        ([], {}, "at least two players, got 0"),
        ([("a", "a", Record(1, 0, 0))], {}, "'a' cannot be rated from games against itself"),
        ([("a", "b", Record(1, 0, 0))], {"anchor": "c"}, "unknown anchor 'c'; players: a, b"),
        ([("a", "b", Record(1, 0, 0))], {"virtual_games": 0.0}, "must be more than 0 and finite, got 0.0"),
        ([("a", "b", Record(1, 0, 0))], {"virtual_games": math.inf}, "more than 0 and finite, got inf"),
        (
            [("a", "b", Record(1.5, 0, 0))],
            {},
            r"games of 'a' and 'b' must be whole numbers of 0 or more, got \(1\.5, 0",
        ),
    ],
)
def test_results_that_cannot_be_rated_are_refused(pairings, options, message):
    with pytest.raises(ValueError, match=message):
        rate(pairings, **options)
