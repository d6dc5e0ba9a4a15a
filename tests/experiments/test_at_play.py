"""The study of options of a search at play."""

import json

import pytest
from studies import load_study


@pytest.mark.slow
def test_options_at_play_are_measured_at_tiny_sizes_once(tmp_path):
    study = load_study("at_play")
    options = {
        "agents": ("tictactoe",),
        "num_simulations": 8,
        "games": 2,
        "seconds": 0.01,
        "output": tmp_path / "results.json",
    }
    study.main(**options)
    written = (tmp_path / "results.json").read_text()
    rows = json.loads(written)["rows"]
    assert [row["variant"] for row in rows] == list(study.VARIANTS)
    for row in rows:
        if row["variant"] == study.FOR_A_TIME:
            assert (row["num_simulations"], row["seconds_beside_base"]) == (None, 1)
        else:
            assert row["num_simulations"] >= study.LEAVES
            assert row["num_simulations"] == pytest.approx(8 / row["seconds_beside_base"], abs=study.LEAVES)
        assert sum(row["won_drawn_lost"]) == 2
        assert row["score"] == (row["won_drawn_lost"][0] + row["won_drawn_lost"][1] / 2) / 2
    study.main(**options)
    assert (tmp_path / "results.json").read_text() == written
