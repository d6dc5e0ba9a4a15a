"""What figures show, and numbers of tables."""

import math

import pytest

from azjax.evaluation import Record, rate
from azjax.games.registry import make
from azjax.report.figures import draw_ratings, learning_figure
from azjax.report.intervals import elo_errors, elo_interval, number


@pytest.mark.parametrize(
    ("value", "text"), [(0.12345, "0.1235"), (12.0, "12"), (123.45, "123.5"), (12410.4, "12,410"), (7, "7")]
)
def test_numbers_are_short_and_never_powers_of_ten(value, text):
    assert number(value) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (-40.0, 120.4, "-40 to +120"),
        (-0.4, 1234.0, "+0 to +1,234"),
        (-math.inf, 120.0, "at most +120"),
        (-40.0, math.inf, "at least -40"),
        (-math.inf, math.inf, "any"),
    ],
)
def test_the_text_of_a_rating_names_the_ends_that_are_finite(low, high, text):
    assert elo_interval(low, high) == text


@pytest.mark.parametrize(
    ("elo", "interval", "lengths"),
    [
        (50.0, (-40.0, 120.0), (90, 70)),
        (50.0, (-math.inf, 120.0), (50 + 300 + 200, 70)),
        (50.0, (-40.0, math.inf), (90, 600 + 200 - 50)),
        (50.0, (-math.inf, math.inf), (50 + 300 + 200, 600 + 200 - 50)),
        (130.0, (-40.0, 120.0), (170, 0)),
        (-50.0, (-40.0, 120.0), (0, 170)),
    ],
)
def test_lines_of_a_rating_go_to_its_ends_or_200_elo_beyond_all_others(elo, interval, lengths):
    left, right = elo_errors([elo, -300.0, 500.0], [interval, (-300.0, 0.0), (500.0, 600.0)])
    assert (left[0], right[0]) == lengths
    assert (left[1:], right[1:]) == ([0, 0], [300, 100])


def test_names_of_players_are_no_mathematics(tmp_path):
    """They may be command lines with variables of the shell."""
    ratings = rate([("line:sh -c 'D=.; exec $D/a__b $Z'", "random", Record(1, 1, 1))])
    draw_ratings(make("tictactoe"), ratings, tmp_path / "ratings.svg")
    assert "$D/a__b $Z" in (tmp_path / "ratings.svg").read_text()


def test_results_of_self_play_are_shares_of_the_games_that_ended():
    """Of the games of two iterations one half was truncated; in the other iterations none ended."""
    ended = {"games": 2.0, "first_wins": 1.0, "draws": 0.0, "second_wins": 0.0, "truncated_games": 1.0}
    none = dict.fromkeys(ended, 0.0)
    losses = {"policy_loss": 1.0, "target_entropy": 0.5, "value_loss": 1.0}
    rows = [{"iteration": step, **losses, **(ended if step % 50 == 0 else none)} for step in range(100)]
    figure = learning_figure(make("tictactoe"), rows, [])
    panel = next(axes for axes in figure.axes if axes.get_title() == "results of self-play")
    assert [each.get_label() for each in panel.collections][-1] == "truncated"
    tops = [float(each.get_paths()[0].vertices[:, 1].max()) for each in panel.collections]
    assert tops == pytest.approx([0.5, 0.5, 0.5, 1.0])
