"""What the studies share."""

import pytest
from rich.console import Console
from studies import load_study

from azjax.games.registry import make


def test_a_run_that_a_study_cannot_go_on_with_ends_it_with_a_line(tmp_path):
    study = load_study("study")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(SystemExit, match=r"is not a run folder: its config\.json cannot be read"):
        study.trained(make("connect2"), tmp_path, Console())


def test_results_with_other_settings_are_not_gone_on_with(tmp_path):
    study, path = load_study("study"), tmp_path / "results.json"
    assert study.results_so_far(path, {"games": 4}, rows=[]) == {"rows": []}
    study.write_results(path, "study.py", {"games": 4}, rows=[1], notes="")
    assert study.results_so_far(path, {"games": 4}, rows=[]) == {"rows": [1]}
    with pytest.raises(SystemExit, match=r"results.json has results with {'games': 4}, not with {'games': 8}: name"):
        study.results_so_far(path, {"games": 8}, rows=[])
