"""The study of Connect Four by seconds a move, at a tiny size."""

import json

import pytest
from studies import load_study

WON = "445566"  # three in a row that are open on both sides
LINES = [
    *({"moves": WON[:ply], "kind": "random", "values": "---=---"} for ply in range(6)),
    {"moves": WON, "kind": "search", "values": "--+---+"},
]


@pytest.fixture
def study(monkeypatch, tmp_path):
    study = load_study("connect_four_seconds")
    positions = tmp_path / "positions.json"
    positions.write_text(json.dumps(LINES))
    for name, value in {"POSITIONS": positions, "BATCH": 2, "CHUNK": 50, "TIMED": 2}.items():
        monkeypatch.setattr(study, name, value)
    return study


def test_leaves_rise_with_the_simulations_up_to_a_limit(study):
    assert [study.leaves_per_step(count) for count in (100, 400, 1_600, 25_600)] == [1, 4, 16, 16]


@pytest.mark.slow
def test_mistakes_are_counted_once_and_times_are_measured_again(study, monkeypatch, tmp_path):
    output, plot = tmp_path / "results.json", tmp_path / "plot.png"
    study.main((100,), output=output, plot=plot)
    (row,) = json.loads(output.read_text())["rows"]
    assert (row["num_simulations"], row["leaves_per_step"]) == (100, 1)
    assert row["search"] == row["by_ply"][6] == 0
    assert row["seconds_per_move"] > 0
    assert plot.read_bytes()[:4] == b"\x89PNG"

    monkeypatch.setattr(study, "seconds_per_move", lambda *_: 7)
    monkeypatch.setattr(study, "count", lambda *_: pytest.fail("counted again"))
    study.main((100,), output=output, plot=plot)
    assert json.loads(output.read_text())["rows"] == [{**row, "seconds_per_move": 7}]
