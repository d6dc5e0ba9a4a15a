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
