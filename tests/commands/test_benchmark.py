"""`azjax benchmark`."""

import pytest
from refusals import refused_without_a_file


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["benchmark", "dreams"], "unknown benchmark 'dreams'; available: games, population, search"),
        (["benchmark", "games", "--repeats", "0"], "repeats must be at least 1, got 0"),
    ],
)
def test_bad_input_is_refused_in_one_line(capsys, tmp_path, monkeypatch, arguments, message):
    assert message in refused_without_a_file(capsys, tmp_path, monkeypatch, arguments)
