"""The levels of the packaged agents."""

import json

import pytest
from studies import load_study

from azjax import packaged


@pytest.mark.slow
def test_levels_are_told_in_the_card_and_measured_again_for_the_agents_that_are_named(tmp_path):
    study, output = load_study("levels"), tmp_path / "levels.json"
    card = (packaged.archive.FOLDER / "connect2.md").read_text()
    (tmp_path / "connect2.md").write_text(card)
    settings = {"num_simulations": study.NUM_SIMULATIONS, "opening_plies": study.OPENING_PLIES}
    rows = [{"agent": "brandub", "level": "easy", "against": "hard", "points": 0.25}]
    output.write_text(json.dumps({"settings": settings, "rows": rows}))
    study.main(("connect2",), games=4, output=output, cards=tmp_path)
    kept, *own = json.loads(output.read_text())["rows"]
    assert kept == rows[0]
    pairs = [("beginner", "easy"), ("beginner", "medium"), ("beginner", "hard"), ("easy", "medium"), ("easy", "hard")]
    assert [(row["level"], row["against"]) for row in own] == [*pairs, ("medium", "hard")]
    assert all(row["low"] <= row["points"] <= row["high"] for row in own)
    told = (tmp_path / "connect2.md").read_text()
    # Only the section at the end is new.
    assert told.partition(study.TITLE)[0] == card.partition(study.TITLE)[0]
    assert told.count(study.TITLE) == 1
    medium = next(row for row in own if (row["level"], row["against"]) == ("medium", "hard"))
    assert f"| medium |  |  | {medium['points']:.1%} (" in told


@pytest.mark.parametrize("name", packaged.packaged())
def test_the_levels_in_each_card_are_those_of_the_committed_results(name):
    study = load_study("levels")
    rows = [row for row in json.loads((study.RESULTS / "levels.json").read_text())["rows"] if row["agent"] == name]
    card = (packaged.archive.FOLDER / f"{name}.md").read_text()
    assert study.with_levels(card, rows) == card
    assert packaged.levels_of(name) == study.summary(rows)
