"""Clocks: the time for the next move, and the time left after it."""

import pytest

from azjax.play.clock import Clock


@pytest.mark.parametrize(
    ("clock", "budget"),
    [
        (Clock(100.0), 4.5),  # a share of main time
        (Clock(0.0), 0.01),  # never 0
        (Clock(100.0, period=30.0), 27.0),  # a late move may use the period
        (Clock(0.0, period=30.0, period_moves=5), 5.4),
        (Clock(10.0, moves=5, period=30.0, period_moves=5), 1.8),
    ],
)
def test_the_budget_is_less_than_the_time_left(clock, budget):
    assert clock.budget() == pytest.approx(budget)


@pytest.mark.parametrize(
    ("clock", "seconds", "after"),
    [
        (Clock(100.0), 30.0, Clock(70.0)),
        (Clock(10.0), 30.0, Clock(0.0)),
        (Clock(10.0, period=30.0, period_moves=5), 20.0, Clock(20.0, 4, 30.0, 5)),
        (Clock(20.0, 4, 30.0, 5), 5.0, Clock(15.0, 3, 30.0, 5)),
        (Clock(2.0, 1, 30.0, 5), 1.0, Clock(30.0, 5, 30.0, 5)),
        (Clock(10.0, period=30.0), 20.0, Clock(30.0, 1, 30.0)),  # a period for each move
    ],
)
def test_periods_start_after_the_main_time_and_repeat(clock, seconds, after):
    assert clock.after(seconds) == after


def test_a_side_that_keeps_to_the_budget_never_runs_out_of_time():
    for clock in (Clock(60.0, period=10.0, period_moves=3), Clock(0.0, period=5.0)):
        for _ in range(200):
            assert clock.moves == 0 or clock.budget() < clock.seconds
            clock = clock.after(clock.budget())
            assert clock.seconds > 0
