"""Figures of the committed results."""

import json

import pytest
from studies import load_study


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("ablation", ("rows",)),
        ("connect_four", ("rivals", "rows")),
        ("holding_back", ("rows", "base", "agent")),
        ("networks", ("rows",)),
        ("search_scaling", ("throughput",)),
        ("santorini_3x3", ("rows",)),
        ("tactics", ("mates", "proofs")),
    ],
)
def test_committed_results_are_drawn(name, parts, tmp_path):
    study = load_study(name)
    results = json.loads((study.RESULTS / f"{name}.json").read_text())
    study.draw(*(results[part] for part in parts), tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
