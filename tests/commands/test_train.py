"""`azjax train`."""

import os
import re
import signal
import subprocess
import time

import pytest
from each_game import each_game
from killing import KILLED, train_command
from refusals import refused, refused_without_a_file

from azjax.cli import main
from azjax.games.registry import available
from azjax.networks import NETWORKS, Mlp, register

SMALL = [
    "--iterations=3",
    "--width=16",
    "--num-simulations=2",
    "--num-games=8",
    "--updates-per-iteration=1",
    "--batch-size=8",
]
SMALL += ["--replay-size=128", "--evaluate-every=2", "--checkpoint-every=2", "--games=2"]

CHOICES = f"available: {', '.join(available())}, pgx:NAME"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train"], f"azjax train needs a GAME before its options; {CHOICES}; `azjax --help` tells more"),
        (["train", "chess"], f"unknown game 'chess'; {CHOICES}"),
        (
            ["train", "tictactoe", "--population", "4", "--devices", "1000"],
            "devices must be 1..1, the devices of this process, or all; got 1000",
        ),
        (["train", "mnk", "--columns", "99"], "mnk: columns must be 1..26, got 99"),
        (["train", "tictactoe", "--wings", "2"], "unrecognized options: --wings, 2"),
        (
            ["train", "tictactoe", "--lerning-rate", "1"],
            "unrecognized options: --lerning-rate, 1 (did you mean --learning-rate or --final-learning-rate?)",
        ),
        (["train", "tictactoe", "--num-simulations", "0"], "num_simulations must be at least 1, got 0"),
        (["train", "tictactoe", "--vary", "l2=fast"], "vary must be l2=NUMBER,NUMBER..., got 'l2=fast'"),
        (["train", "tictactoe", "--vary", "l2=0", "l2=1e-4"], "vary: each field once, got l2, l2"),
        (
            ["train", "tictactoe", "--vary", "learning_rate=1e-3,1e-4", "--learning-rate", "5"],
            "vary names values of learning_rate, and --learning-rate another: leave out one",
        ),
        (
            ["train", "tictactoe", "--vary", "seed=0,1", "--seed", "5"],
            "vary names values of seed, and --seed another: leave out one",
        ),
        (
            ["train", "tictactoe", "--population", "4", "--coordinator", "h:1", "--process", "0", "--processes", "1"],
            "a population is trained by one process",
        ),
        *(
            (["train", "tictactoe", "--games", "4", *several], "games is for the matches that one run of one process")
            for several in (
                ["--population", "4"],
                ["--vary", "seed=0,1"],
                ["--coordinator", "h:1", "--process", "0", "--processes", "2"],
            )
        ),
        (
            ["train", "tictactoe", "--replay-size", "100"],
            "replay_size must be at least batch_size = 512, got 100",
        ),
        (
            ["train", "connect2", "--games", "3"],
            "games must be even and at least 2, so that both move first equally; got 3",
        ),
        (["train", "connect2", "--devices", "0"], "devices must be 1..1,024, or all; got 0"),
        (["train", "connect2", "--process", "0"], "coordinator, process and processes go together"),
        (
            ["train", "connect2", "--coordinator", "here", "--process", "0", "--processes", "2"],
            "coordinator must be HOST:PORT with a port of 1..65535, got 'here'",
        ),
        (
            ["train", "connect2", "--coordinator", "here:70", "--process", "2", "--processes", "2"],
            "process must be 0..1, got 2",
        ),
    ],
)
def test_bad_input_is_refused_in_one_line(capsys, tmp_path, monkeypatch, arguments, message):
    assert message in refused_without_a_file(capsys, tmp_path, monkeypatch, arguments)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_refused(capsys, tmp_path):
    tmp_path.chmod(0o500)
    assert "cannot be made: Permission denied" in refused(
        capsys, ["train", "connect2", "--folder", f"{tmp_path}/run"], 1
    )


def test_a_folder_that_cannot_be_made_is_refused(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    line = refused(capsys, ["train", "connect2", "--folder", f"{tmp_path}/file/run"], code=1)
    assert line == f"{tmp_path}/file/run cannot be made: Not a directory"


def test_the_help_of_a_command_shows_the_preset_and_the_options_of_the_game(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["train", "mnk", "--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    for option in (
        "--columns",
        "--num-simulations",
        "--reuse-tree",
        "--solver",
        "--learning-rate",
        "--resume",
        "--folder",
    ):
        assert option in text


@each_game()
def test_no_option_of_a_game_has_the_name_of_a_training_option(name, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["train", name, "--help"])
    assert stopped.value.code == 0
    assert "--truncate-at-ply" in capsys.readouterr().out


def test_a_size_that_the_network_does_not_have_is_refused(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(NETWORKS, "_entries", dict(NETWORKS._entries))
    register("shallow")(lambda width: Mlp(width=width, depth=1))
    command = ["train", "connect2", "--network", "shallow", "--depth", "3"]
    assert (
        refused_without_a_file(capsys, tmp_path, monkeypatch, command)
        == "depth has no effect on training with network = shallow"
    )
    command = ["train", "connect2", "--network", "shallow", "--precision", "bfloat16"]
    assert (
        refused_without_a_file(capsys, tmp_path, monkeypatch, command)
        == "precision has no effect on training with network = shallow and optimizer = adam"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["connect_four", "--c-puct", "3"], "c_puct has no effect on training with policy = gumbel"),
        (["tictactoe", "--value-scale", "1"], "value_scale has no effect on training with policy = alphazero"),
        (["tictactoe", "--gate-rounds", "3"], "gate_rounds has no effect on training with gate_games = 0"),
    ],
)
def test_settings_without_an_effect_are_refused(capsys, tmp_path, monkeypatch, arguments, message):
    assert refused_without_a_file(capsys, tmp_path, monkeypatch, ["train", *arguments]) == message


def test_the_options_of_a_game_choose_the_preset(capsys):
    for size, width in ((2, 128), (3, 1024)):
        with pytest.raises(SystemExit) as stopped:
            main(["train", "santorini", "--size", str(size), "--help"])
        assert stopped.value.code == 0
        assert f"(default: {width})" in capsys.readouterr().out.split("--width")[1][:400]


def test_a_run_is_trained_and_evaluated_and_not_overwritten(capsys, tmp_path):
    folder = tmp_path / "run"
    main(["train", "connect2", "--folder", str(folder), *SMALL])
    text = capsys.readouterr().out
    assert f"{folder} is trained to iteration 3" in text
    for row in (
        "positions ",
        "mistakes in its own games",
        "2 games against random: won",
        "2 games against optimal: won",
    ):
        assert row in text
    assert (folder / "learning_curve.png").read_bytes().startswith(b"\x89PNG")
    line = refused(capsys, ["train", "connect2", "--folder", str(folder), *SMALL], code=1)
    assert line == f"{folder} holds a run already: go on with --resume, or name another folder with --folder"
    population = ["train", "connect2", "--population", "2", "--folder", str(folder), *SMALL[:-1]]
    line = refused(capsys, population, code=1)
    assert line == f"{folder} holds a run: name another folder for the population with --folder"
    assert "is not a run folder: there is no config.json, but runs are in it: run" in refused(
        capsys, ["evaluate", str(tmp_path)], 1
    )
    main(["evaluate", f"{folder}@best", "--games", "2"])
    assert "2 games against optimal: won" in capsys.readouterr().out
    assert "after @ comes best or an iteration, got 'worst'" in refused(capsys, ["evaluate", f"{folder}@worst"])
    assert "has no checkpoint 77; available: 2, 3" in refused(capsys, ["evaluate", f"{folder}@77"], code=1)


@pytest.mark.slow
def test_ctrl_c_saves_and_ends_with_130(tmp_path):
    options = [f"--{name}={value}" for name, value in {**KILLED, "iterations": 100_000}.items()]
    folder = tmp_path / "run"
    process = subprocess.Popen(
        train_command("connect2", folder, options), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while not (folder / "checkpoints" / "3.json").exists() and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == ""
    stopped = int(re.search(r"stopped at iteration (\d+) and saved", out).group(1))
    assert (folder / "checkpoints" / f"{stopped}.json").exists()
