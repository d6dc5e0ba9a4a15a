"""`azjax gtp`."""

import pytest
from refusals import refused_without_a_file


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["gtp", "random", "--game", "tictactoe", "--protocol", "opentafl"],
            "opentafl is for brandub, ard_ri, tablut, tawlbwrdd, hnefatafl by their default rules, not for tictactoe",
        ),
        (
            ["gtp", "random", "--game", "tictactoe", "--seconds", "1"],
            "seconds is for searches; random does not search",
        ),
    ],
)
def test_bad_input_is_refused_in_one_line(capsys, tmp_path, monkeypatch, arguments, message):
    assert message in refused_without_a_file(capsys, tmp_path, monkeypatch, arguments)
