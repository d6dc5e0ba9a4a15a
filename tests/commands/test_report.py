"""`azjax report`."""

import pytest
import small_run
from refusals import refused_without_a_file

from azjax.cli import main
from azjax.games.registry import make
from azjax.runs import train


@pytest.mark.slow
def test_a_run_is_reported(capsys, tmp_path):
    folder = tmp_path / "run"
    train(make("connect2"), small_run.SMALL, folder)
    main(["report", str(folder), "--games", "2", "--num-simulations", "4"])
    assert capsys.readouterr().out.strip() == f"{folder}/report.html"
    assert (folder / "report.html").read_text().startswith("<!doctype html>")


def test_a_folder_that_is_missing_is_bad_input(capsys, tmp_path, monkeypatch):
    line = refused_without_a_file(capsys, tmp_path, monkeypatch, ["report", "runs/none"])
    assert line == "there is no run folder runs/none"
