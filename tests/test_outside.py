"""Every command takes a game from a file outside the package, with --import."""

import json
import re
import shutil
import subprocess
import sys
import urllib.request

import pytest
from examples import EXAMPLES

SMALL = ["--network=mlp", "--width=16", "--depth=1", "--num-simulations=4", "--num-games=16", "--iterations=2"]
SMALL += ["--replay-size=512", "--batch-size=16", "--updates-per-iteration=2", "--games=4"]
BOARD = ["--columns=3", "--rows=4"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the game and nothing else."""
    folder = tmp_path_factory.mktemp("outside")
    shutil.copy(EXAMPLES / "hexapawn.py", folder)
    return folder


def azjax(folder, *arguments):
    """Runs a command in the folder, with the package as it is installed; returns what it prints."""
    command = [sys.executable, "-m", "azjax", *arguments, "--import", "hexapawn.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def run(folder):
    """A run of the game."""
    azjax(folder, "train", "hexapawn", *BOARD, *SMALL)
    return "runs/hexapawn"


def test_it_is_checked_and_the_page_lacks_nothing(folder):
    assert azjax(folder, "check", "hexapawn", *BOARD).endswith("the page will lack nothing\n")


@pytest.mark.slow
def test_it_is_solved(folder):
    """The number of positions is that of plain recursion; see test_examples.py."""
    assert "987" in azjax(folder, "solve", "hexapawn", *BOARD)


@pytest.mark.slow
def test_it_is_trained_and_evaluated_on_all_positions(folder, run):
    assert re.search(r"positions +604 +604", azjax(folder, "evaluate", run, "--games=4"))


@pytest.mark.slow
def test_it_plays_matches(folder, run):
    azjax(folder, "match", f"{run}:4", "random", "--games=4", "--records=games.jsonl")
    games = [json.loads(line) for line in (folder / "games.jsonl").read_text().splitlines()]
    assert len(games) == 4
    assert {*games[0]["players"]} == {f"{run}:4", "random"}


@pytest.mark.slow
def test_it_is_played_on_the_page(folder, run):
    command = [sys.executable, "-m", "azjax", "play", run, "--web", "--port=0", "--import", "hexapawn.py"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as server:
        try:
            address = re.search(r"http://\S+", server.stdout.readline())[0]
            asked = urllib.request.Request(f"{address}/position", b"{}", {"Content-Type": "application/json"})
            with urllib.request.urlopen(asked) as answer:
                position = json.load(answer)
        finally:
            server.terminate()
    assert 'data-columns="3"' in position["svg"]
    assert {each["move"]: each["squares"] for each in position["legal"]}["a1a2"] == [9, 6]


@pytest.mark.slow
def test_it_is_swept(folder):
    page = (EXAMPLES.parent / "adding_a_game.md").read_text()
    study = re.search("```toml\n(.*?)```", page, re.S)[1]
    (folder / "hexapawn.toml").write_text(study.replace("trials = 4", "trials = 1"))
    assert "best trials" in azjax(folder, "sweep", "hexapawn.toml")
