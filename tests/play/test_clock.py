"""What a clock leaves for the next move, and what it leaves after it."""

import pytest

from azjax.play.clock import Clock


@pytest.mark.parametrize(
    ("clock", "budget"),
    [
        (Clock(100), 4.5),  # a share of main time
        (Clock(0), 0.01),  # never nothing
        (Clock(100, period=30), 27),  # the period is there for a late move
        (Clock(0, period=30, period_moves=5), 5.4),
        (Clock(10, moves=5, period=30, period_moves=5), 1.8),
    ],
)
def test_the_budget_is_less_than_what_is_left(clock, budget):
    assert clock.budget() == pytest.approx(budget)


@pytest.mark.parametrize(
    ("clock", "spent", "after"),
    [
        (Clock(100), 30, Clock(70)),
        (Clock(10), 30, Clock(0)),
        (Clock(10, period=30, period_moves=5), 20, Clock(20, 4, 30, 5)),
        (Clock(20, 4, 30, 5), 5, Clock(15, 3, 30, 5)),
        (Clock(2, 1, 30, 5), 1, Clock(30, 5, 30, 5)),
        (Clock(10, period=30), 20, Clock(30, 1, 30)),  # a period for each move
    ],
)
def test_main_time_goes_first_and_then_periods_begin_again(clock, spent, after):
    assert clock.after(spent) == after


def test_who_keeps_to_the_budget_never_runs_out():
    for clock in (Clock(60, period=10, period_moves=3), Clock(0, period=5)):
        for _ in range(200):
            assert clock.moves == 0 or clock.budget() < clock.seconds
            clock = clock.after(clock.budget())
            assert clock.seconds > 0
