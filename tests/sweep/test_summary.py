"""The results of a sweep: intervals, order and page."""

import math

import numpy as np
import optuna
import pytest
from scipy import stats
from small_sweep import write_sweep

from azjax.sweep import JOURNAL, Interval, Trials, best_first, connect, load_study, write_page
from azjax.sweep.page import _importances, importances_of
from azjax.sweep.summary import counts, failures


def test_an_interval_over_seeds_equals_that_of_scipy():
    values = [3.0, 5.0, 4.0]
    interval = Interval.of(values)
    low, high = stats.t.interval(0.95, 2, loc=4.0, scale=stats.sem(values))
    np.testing.assert_allclose((interval.mean, interval.low, interval.high), (4.0, low, high))
    assert str(interval) == "4 (1.516 to 6.484)"


def test_an_interval_stays_within_the_bounds_of_its_quantity():
    assert Interval.of([0.0, 0.0, 3.0], (0, math.inf)).low == 0
    assert Interval.of([0.0, 0.0, 3.0]).low < 0
    share = Interval.of([0.9, 1.0], (0, 1))
    assert (share.mean, share.high) == (0.95, 1)
    assert 0 < share.low < 0.9


def test_one_seed_has_no_interval():
    interval = Interval.of([3.0])
    assert math.isnan(interval.low)
    assert str(interval) == "3 (one seed)"


@pytest.fixture
def trials(tmp_path):
    """Three points are complete, one was pruned and one failed; the second is the best complete one."""
    search = "{low = 1e-4, high = 1e-1, log = true}\nnetwork = {choices = ['mlp', 'resnet']}\nl2 = {low = 0, high = 1}"
    changes = [("trials = 3", "trials = 5"), ("{low = 1e-4, high = 1e-1, log = true}", search)]
    trials = Trials(load_study(write_sweep(tmp_path, *changes)), connect(tmp_path / JOURNAL))
    for mean in (3.0, 1.0, 2.0):
        attempt = trials.claim()
        for _ in range(2):
            trials.report(attempt, [mean - 0.5, mean + 0.5])
        trials.finish(attempt)
    attempt = trials.claim()
    trials.report(attempt, [0.0, 0.0])
    trials.finish(attempt, pruned=True)
    trials.fail(trials.claim(), "too <wide>")
    return trials


def test_the_best_point_has_the_lowest_mean_of_the_complete_ones(trials):
    points = trials.points()
    assert [point.number for point in best_first(trials.study, points)] == [1, 2, 0]
    assert counts(points) == "3 complete, 1 failed, 1 pruned"
    assert failures(points) == ["trial 4 failed: too <wide>"]


def test_importances_are_shares(trials):
    shares = importances_of(trials)
    assert shares.keys() == trials.study.search.keys()
    assert sum(shares.values()) == pytest.approx(1)


def test_importances_are_for_being_among_the_best_tenth(trials):
    tenth = optuna.importance.PedAnovaImportanceEvaluator(target_quantile=0.1)
    assert importances_of(trials) == optuna.importance.get_param_importances(trials.optuna_study, evaluator=tenth)
    (panel,) = _importances({"width": 1.0}).axes
    assert panel.get_xlabel() == "importance for being among the best tenth of the trials"


@pytest.mark.slow
def test_the_page_loads_nothing_and_shows_all_trials(trials, tmp_path):
    text = write_page(trials, tmp_path).read_text()
    assert text.startswith("<!doctype html>")
    assert text.count("<svg") == 4
    assert "1 (-5.353 to 7.353)" in text
    assert "trial 4 failed: too &lt;wide&gt;" in text
    assert 'src="' not in text
    assert 'href="http' not in text


def test_there_is_no_page_before_a_trial_is_complete(tmp_path):
    trials = Trials(load_study(write_sweep(tmp_path)), connect(tmp_path / JOURNAL))
    with pytest.raises(ValueError, match="no trial of small is complete yet, so that there is nothing to show"):
        write_page(trials, tmp_path)
