"""`azjax evaluate`."""

import pytest
import small_run
from refusals import refused, refused_without_a_file

from azjax.cli import main
from azjax.games.registry import make
from azjax.runs import train


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["evaluate", "uniform:0", "--game", "connect2"],
            "'uniform:0': SIMULATIONS must be a whole number of at least 1, got '0'",
        ),
        (["evaluate", "random", "--game", "tictactoe", "--epsilon", "0.5", "1.5"], "--epsilon must be 0..1, got 1.5"),
        (
            ["evaluate", "random", "--game", "brandub", "--by-ply"],
            "--by-ply and --epsilon need the values of all positions, and brandub was not solved",
        ),
        (["evaluate", "optimal:nowhere.npz"], "nowhere.npz"),
        (
            ["evaluate", "tictactoe:16", "--num-simulations", "64"],
            "tictactoe:16 names 16 simulations, and num_simulations is 64: leave out one",
        ),
        (
            ["evaluate", "uct:5", "--game", "connect2", "--num-simulations", "64"],
            "num_simulations is for trained agents; uct:5 is not one",
        ),
        (["evaluate", "random", "--game=connect2", "--seed", "-1"], "seed must be 0..2^32 - 1, got -1"),
        (
            ["evaluate", "random", "--game"],
            "missing value for argument '--game'; `azjax evaluate random --help` tells more",
        ),
        (["evaluate", "tictactoe", "more"], "unrecognized options: more; `azjax evaluate tictactoe --help` tells more"),
    ],
)
def test_bad_input_is_refused_in_one_line(capsys, tmp_path, monkeypatch, arguments, message):
    assert message in refused_without_a_file(capsys, tmp_path, monkeypatch, arguments)


def test_an_unknown_player_lists_the_known_ones(capsys):
    line = refused(capsys, ["evaluate", "magnus", "--game", "tictactoe"])
    assert line.startswith("unknown player 'magnus'; players: a run folder")
    assert "needs a game too" in refused(capsys, ["play", "random"])


def test_a_folder_that_is_not_a_run_is_refused(capsys, tmp_path):
    line = refused(capsys, ["evaluate", str(tmp_path)], code=1)
    assert line == f"{tmp_path} is not a run folder: there is no config.json"


@pytest.mark.slow
def test_a_search_is_measured_with_a_solver_and_a_reused_tree(capsys):
    main(["evaluate", "uniform:64", "--game", "connect2", "--games", "2", "--solver", "--reuse-tree"])
    text = capsys.readouterr().out
    assert "uniform:64 + solver + reused tree" in text
    assert "2 games against optimal: won" in text


@pytest.mark.slow
def test_a_damaged_checkpoint_is_reported_in_one_line_and_the_one_before_is_used(capsys, tmp_path):
    folder = tmp_path / "run"
    train(make("connect2"), small_run.SMALL, folder)
    (folder / "checkpoints" / "4" / "_CHECKPOINT_METADATA").write_text("damaged")
    main(["evaluate", str(folder), "--games", "2"])
    # Both players of the table load it.
    (line,) = set(capsys.readouterr().err.splitlines())
    assert line.startswith(f"azjax: {folder}/checkpoints: checkpoint 4 is damaged (_CHECKPOINT_METADATA is not as")
    assert line.endswith("going back to checkpoint 2")
    for step in ("2", "4"):
        (folder / "checkpoints" / f"{step}.json").unlink()
    line = refused(capsys, ["evaluate", str(folder)], code=1)
    assert line.startswith(
        f"{folder}/checkpoints holds no sound checkpoint; checkpoint 4 is damaged (4.json is missing"
    )
