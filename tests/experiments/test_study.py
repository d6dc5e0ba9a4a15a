"""What the studies share."""

import json
import sys
from pathlib import Path

import pytest
from rich.console import Console
from studies import EXPERIMENTS, load_study

from azjax.core.errors import InputError, RunError
from azjax.games.registry import make


def test_every_study_is_run_as_the_others():
    scripts = {path for path in EXPERIMENTS.glob("*.py") if path.name != "study.py"}
    end = '\n\nif __name__ == "__main__":\n    run_study(main)\n'
    assert {path.name for path in scripts if not path.read_text().endswith(end)} == set()


def count_games(games: int, half: bool = False) -> None:
    """Prints a number.

    Args:
      games: how many.
      half: whether a half of them.
    """
    if games < 0:
        raise InputError(f"games must be at least 0, got {games}")
    print(games / 2 if half else games)


def draw_games(output: Path, plot: Path | None = None) -> None:
    """Measures."""
    print("measured")


def ran(monkeypatch, capsys, *arguments, main=count_games):
    """The exit code, the output and the errors of a study with these arguments."""
    monkeypatch.setattr(sys, "argv", ["experiments/count_games.py", *arguments])
    code = 0
    try:
        load_study("study").run_study(main)
    except SystemExit as end:
        code = end.code
    return code, *capsys.readouterr()


def test_the_arguments_of_a_study_are_its_options(monkeypatch, capsys):
    assert ran(monkeypatch, capsys, "--games", "3", "--half") == (0, "1.5\n", "")
    code, help_text, _ = ran(monkeypatch, capsys, "--help")
    assert code == 0
    assert help_text.startswith("usage: python experiments/count_games.py [-h] --games INT")
    assert "What the studies share." in help_text  # the docstring of the file
    assert "whether a half of them" in help_text


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--games", "-1"], "games must be at least 0, got -1"),
        (["--games", "x"], "--games must be an integer, got 'x'; `python experiments/count_games.py --help` tells"),
    ],
)
def test_an_error_ends_a_study_in_one_line(monkeypatch, capsys, arguments, line):
    code, out, err = ran(monkeypatch, capsys, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith(f"azjax: {line}")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--output", "."], ". cannot be written: it is a folder"),
        (["--output", "x.json", "--plot", "x.txt"], "plot must be a file of .png, .svg, .pdf, got x.txt"),
    ],
)
def test_what_cannot_be_written_is_refused_before_anything_is_measured(monkeypatch, capsys, tmp_path, arguments, line):
    monkeypatch.chdir(tmp_path)
    assert ran(monkeypatch, capsys, *arguments, main=draw_games) == (2, "", f"azjax: {line}\n")
    assert ran(monkeypatch, capsys, "--output", "x.json", main=draw_games) == (0, "measured\n", "")


def test_names_that_are_not_known_are_refused():
    with pytest.raises(InputError, match=r"^unknown agent go, shogi; available: connect2, brandub$"):
        load_study("study").refuse_unknown("agent", ("shogi", "brandub", "go"), ("connect2", "brandub"))


def test_a_run_that_a_study_cannot_go_on_with_is_refused(tmp_path):
    study = load_study("study")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(RunError, match=r"is not a run folder: its config\.json has no game"):
        study.trained(make("connect2"), tmp_path, Console())


def test_results_with_other_settings_are_not_gone_on_with(tmp_path):
    study, path = load_study("study"), tmp_path / "results.json"
    assert study.results_so_far(path, {"games": 4}, rows=[]) == {"rows": []}
    study.write_results(path, "study.py", {"games": 4}, rows=[1], notes="")
    assert study.results_so_far(path, {"games": 4}, rows=[]) == {"rows": [1]}
    study.write_results(path, "study.py", {"games": 4, "seed": 0}, rows=[1])
    with pytest.raises(InputError, match=r"results.json has results with {'games': 4}, not with {'games': 8}: name"):
        study.results_so_far(path, {"games": 8, "seed": 0}, rows=[])


def test_results_of_an_agent_that_was_packaged_before_are_refused(tmp_path, monkeypatch):
    study = load_study("study")
    monkeypatch.setattr(study.archive, "FOLDER", tmp_path)
    (tmp_path / "go.npz").write_bytes(b"abc")
    assert study.agent_digest("go") == "ba7816bf8f01cfea"  # of FIPS 180-4
    rows = [{"agent": "go", "agent_digest": "ba7816bf8f01cfea"}, {"agent": "shogi"}]
    study.refuse_another_agent(tmp_path, rows, "go")
    (tmp_path / "go.npz").write_bytes(b"abcd")
    with pytest.raises(
        InputError, match=r"has go with agent_digest ba7816bf8f01cfea, not 88d4266fd4e6338d: name another"
    ):
        study.refuse_another_agent(tmp_path, rows, "go")


@pytest.mark.parametrize("name", ["ablation", "holding_back", "what_learns", "connect_four_seconds", "small_boards"])
def test_a_study_leaves_results_with_other_settings_as_they_are(name, tmp_path):
    study, output = load_study(name), tmp_path / "results.json"
    written = json.dumps({"settings": {"sides": 3}, "rows": [1]})
    output.write_text(written)
    with pytest.raises(InputError, match=r"results.json has results with {'sides': 3}, not with {.*: name another"):
        study.main(*["connect_four"] * (name == "what_learns"), output=output)
    assert output.read_text() == written
