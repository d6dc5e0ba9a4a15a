"""What figures show, and numbers of tables."""

import pytest

from azjax.games.registry import make
from azjax.report.figures import learning_figure
from azjax.report.intervals import number


@pytest.mark.parametrize(
    ("value", "text"), [(0.12345, "0.1235"), (12.0, "12"), (123.45, "123.5"), (12410.4, "12,410"), (7, "7")]
)
def test_numbers_are_short_and_never_powers_of_ten(value, text):
    assert number(value) == text


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
