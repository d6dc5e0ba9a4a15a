"""Boards that are solved, compared with what is published and with a second method."""

import json

import pytest
from studies import load_study, result_of

from benchmarks.rules.hex import HexRules, Position


@pytest.fixture
def study(tmp_path, monkeypatch):
    study = load_study("solved")
    (tmp_path / "pictures").mkdir()
    monkeypatch.setattr(study, "DOCS", tmp_path)
    return study


def _solve(study, board, tmp_path):
    study.main(board=board, output=tmp_path / "results.json", tables=tmp_path / "tables")
    return json.loads((tmp_path / "results.json").read_text())["rows"][board]


@pytest.mark.slow
def test_a_board_is_solved_again_as_the_committed_file_says(study, tmp_path):
    row = _solve(study, "hex_3x3", tmp_path)
    measured = {"cpu", "seconds", "peak_megabytes", "table_megabytes"}
    committed = result_of("solved")["rows"]["hex_3x3"]
    assert {name: row[name] for name in row.keys() - measured} == {
        name: committed[name] for name in committed.keys() - measured
    }
    assert (tmp_path / "pictures" / "solved_hex_3x3.svg").read_text().startswith("<svg")
    assert (tmp_path / "tables" / "hex_3x3.npz").exists()


@pytest.mark.slow
def test_a_value_that_is_not_the_published_one_ends_with_both(study, tmp_path, monkeypatch):
    wrong = study.BOARDS["hex_3x3"]._replace(published={"value": -1}, source="nobody")
    monkeypatch.setattr(study, "BOARDS", {"hex_3x3": wrong})
    with pytest.raises(SystemExit, match="hex_3x3: value is 1 here, and -1 in nobody"):
        _solve(study, "hex_3x3", tmp_path)


def test_the_longest_win_of_hex_takes_as_many_plies_as_it_says():
    """By plain rules: nobody has connected the edges before the last move, and then the side that began has."""
    row = result_of("solved")["rows"]["hex_3x3"]
    stones = row["longest_win_in"].split()[0].replace("/", "")
    by_player = tuple(frozenset(cell for cell, color in enumerate(stones) if color == own) for own in "XO")
    rules, position = HexRules(3), Position(by_player, 0)
    assert rules.text(position) == row["longest_win_in"] == "__O/__X/___ X"
    moves = row["longest_win_moves"].split()
    assert len(moves) == row["longest_win"] == 7
    for move in moves:
        assert not position.terminal
        position = rules.step(position, 3 * (int(move[1]) - 1) + "abc".index(move[0]))
    assert position.rewards == (1.0, -1.0)
