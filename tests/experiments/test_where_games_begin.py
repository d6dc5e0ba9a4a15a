"""The study of where games begin."""

import json

import pytest
from studies import load_study

import azjax


@pytest.fixture(scope="module")
def study():
    return load_study("where_games_begin")


def test_the_kinds_of_starts_differ_in_the_starts_alone(study):
    for name, options in study.BOARDS.values():
        preset = azjax.preset(azjax.make(name, **options))
        assert preset.random_start_plies == 12
        assert (preset.hyper.restart_fraction, preset.truncate_at_ply) == (0.5, 0)
        allowed = {"exploring_starts", "exploring_plies", "random_start_plies", "restart_candidates"}
        for changes in study.STARTS.values():
            assert changes.keys() <= allowed
            assert preset.replace(**changes).restart_candidates == changes.get("restart_candidates", 0)


def test_shares_are_those_of_a_board_and_its_starts(study):
    rows = [
        {"board": board, "starts": starts, "seed": seed, "mistakes": 10 * seed + 5, "positions": 100}
        for board in ("a", "b")
        for starts in ("the start", "random plies")
        for seed in (0, 1)
    ]
    assert study.shares_of(rows, "b", "the start") == [0.05, 0.15]
    shown = study.table(rows)
    assert list(shown.columns[1].cells)[:3] == ["10.00% (5.00% to 15.00%)"] * 2 + [""]


@pytest.mark.slow
def test_where_games_begin_at_tiny_sizes_goes_on_where_it_stopped(study, tmp_path, monkeypatch):
    monkeypatch.setattr(study, "BOARDS", {"tictactoe": ("tictactoe", {})})
    kinds = dict(list(study.STARTS.items())[:4])
    options = {"iterations": 1, "boards": ("tictactoe",), "runs": tmp_path, "output": tmp_path / "results.json"}
    for first in (2, 4):
        monkeypatch.setattr(study, "STARTS", dict(list(kinds.items())[:first]))
        study.main(seeds=1, plot=tmp_path / "plot.png", **options)
    rows = json.loads((tmp_path / "results.json").read_text())["rows"]
    assert [row["starts"] for row in rows] == list(kinds)
    assert {row["positions"] for row in rows} == {4520}
    assert all(0 < row["mistakes"] < 4520 for row in rows)
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
