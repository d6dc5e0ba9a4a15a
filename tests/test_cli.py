"""The command line. Commands run in this process, except where a test checks how the process ends."""

import importlib.metadata
import os
import re
import shlex
import signal
import subprocess
import sys
import time

import pytest
import small_run
from each_game import each_game
from killing import KILLED, train_command
from refusals import refused

from azjax.cli import main
from azjax.core.errors import FileError, InputError, RunError
from azjax.errors import errors_in_one_line
from azjax.games.registry import available, make
from azjax.runs import train

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
    ("arguments", "line"),
    [
        (
            ["fly"],
            "unknown command 'fly'; available: train, evaluate, match, solve, play, gtp, report, sweep, export, "
            "agents, benchmark, check, completion, doctor",
        ),
        (
            ["match", "brandub:8", "brandub:16", "--repetitions", "3"],
            "--repetitions is an option of brandub: add --game brandub",
        ),
        (["train"], f"azjax train needs a GAME before its options; {CHOICES}; `azjax --help` tells more"),
        (
            ["gtp", "random", "--game", "tictactoe", "--protocol", "opentafl"],
            "opentafl is for brandub, ard_ri, tablut, tawlbwrdd, hnefatafl by their default rules, not for tictactoe",
        ),
        (
            ["gtp", "random", "--game", "tictactoe", "--seconds", "1"],
            "seconds is for searches; random does not search",
        ),
        (["train", "chess"], f"unknown game 'chess'; {CHOICES}"),
        (
            ["solve", "tictacto"],
            f"unknown game 'tictacto' (did you mean tictactoe?); {CHOICES}",
        ),
        (
            ["train", "tictactoe", "--population", "4", "--devices", "1000"],
            "devices must be 1..1, the devices of this process, or all; got 1000",
        ),
        (["train", "mnk", "--columns", "99"], "mnk: columns must be 1..26, got 99"),
        (
            ["evaluate", "uniform:0", "--game", "connect2"],
            "'uniform:0': SIMULATIONS must be a whole number of at least 1, got '0'",
        ),
        (
            ["play", "random", "--game", "connect2", "--level", "easy"],
            "level is for trained agents; random has only one",
        ),
        (
            ["play", "random", "--game", "connect2", "--web", "--host", ""],
            "host must be an address, such as 127.0.0.1, got none",
        ),
        (
            ["play", "random", "--game", "connect2", "--solver"],
            "solver and reuse_tree are for players that search; random does not",
        ),
        (["solve", "brandub"], "a game went through before; --endings solves positions with few pieces"),
        (["solve", "tictactoe", "--endings", "2"], "tictactoe has no endings that retrograde analysis could solve"),
        (["solve", "brandub", "--endings", "9"], "brandub: endings have 1 to 6 pieces beside the king, got 9"),
        (
            ["solve", "brandub", "--endings", "1", "--perft", "2"],
            "--perft and --endings are different uses of solve: give one of them",
        ),
        (
            ["solve", "hex", "--prove", "start", "--max-states", "0"],
            "--max-states must be at least 1, got 0",
        ),
        (
            ["solve", "brandub", "--endings", "1", "--max-states", "2"],
            "--max-states is not for --endings, whose number is known",
        ),
        (
            ["solve", "brandub", "--endings", "1", "--output", "no/e.npz"],
            "cannot be written: there is no folder",
        ),
        (["solve", "tictactoe", "--prove", "XXX"], "tictactoe: a position has 9 characters, got 3: 'XXX'"),
        (["solve", "tictactoe", "--prove", "start", "--output", "p.npz"], "--output is for whole solutions"),
        (["solve", "tictactoe", "--tables", "t.npz"], "--tables is for --prove POSITION"),
        (
            ["solve", "tictactoe", "--perft", "2", "--max-states", "9"],
            "--perft counts moves alone: --output and --max-states are for solutions",
        ),
        (["evaluate", "random", "--game", "tictactoe", "--epsilon", "0.5", "1.5"], "--epsilon must be 0..1, got 1.5"),
        (
            ["evaluate", "random", "--game", "brandub", "--by-ply"],
            "--by-ply and --epsilon need the values of all positions, and brandub was not solved",
        ),
        *(
            ([*command, *option], f"{option[0][2:].replace('-', '_')} is for players that search; connect2:easy does")
            for command in (
                ["play", "connect2", "--level", "easy"],
                ["play", "connect2:easy"],
                ["gtp", "connect2:easy"],
                ["evaluate", "connect2:easy"],
            )
            for option in (["--num-simulations", "400"], ["--solver"], ["--tables", "t.npz"])
        ),
        (["play", "connect2:400", "--level", "easy"], "num_simulations is for players that search; connect2:easy does"),
        (["match", "brandub", "random", "--tables", "nowhere.npz"], "there is no file nowhere.npz"),
        (["benchmark", "dreams"], "unknown benchmark 'dreams'; available: games, population, search"),
        (["evaluate", "optimal:nowhere.npz"], "nowhere.npz"),
    ],
)
def test_bad_input_is_refused_in_one_line(capsys, tmp_path, monkeypatch, arguments, line):
    monkeypatch.chdir(tmp_path)
    assert line in refused(capsys, arguments)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "tictactoe", "--wings", "2"], "unrecognized options: --wings, 2"),
        (
            ["train", "tictactoe", "--lerning-rate", "1"],
            "unrecognized options: --lerning-rate, 1 (did you mean --learning-rate or --final-learning-rate?)",
        ),
        (
            ["match", "tictactoe", "random", "--gaems", "4"],
            "--gaems, 4 (did you mean --games?); `azjax match tictactoe",
        ),
        (["train", "tictactoe", "--num-simulations", "0"], "num_simulations must be at least 1, got 0"),
        (["train", "tictactoe", "--vary", "l2=fast"], "vary must be l2=NUMBER,NUMBER..., got 'l2=fast'"),
        (["train", "tictactoe", "--vary", "l2=0", "l2=1e-4"], "vary: each field once, got l2, l2"),
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
        (["play", "tictactoe", "--book", "games.jsonl"], "--book is for the page: add --web"),
        (
            ["play", "tictactoe", "--web", "--book", "."],
            ". holds no games of a ladder: a run with --ladder-every keeps them",
        ),
        (
            ["play", "tictactoe", "--web", "--book", "nowhere.jsonl"],
            "nowhere.jsonl could not be read: No such file or directory",
        ),
        (
            ["play", "tictactoe", "--web", "--level", "easy"],
            "a page goes without --level, --start, --reuse-tree, --policy and --seed: level and start are chosen on "
            "it, its searches are AlphaZero's, from an empty tree, and its draws differ from game to game",
        ),
        (["play", "tictactoe", "--web", "--seed", "1"], "a page goes without --level, --start"),
        (["play", "tictactoe", "--web", "--export", "page"], "--web and --export are two ways to show the page"),
        (["play", "tictactoe", "--export", "page", "--start", "me"], "a page goes without --level, --start"),
        (
            ["play", "random", "--game", "tictactoe", "--export", "page"],
            "--export is for trained agents; random is not one",
        ),
        (["play", "tictactoe", "--export", "."], ". exists already; name another folder with --export"),
        (
            ["play", "tictactoe:1025", "--export", "page"],
            "a page without a server has at most 1,024 simulations, got 1,025",
        ),
        (["play", "tictactoe", "--port", "8001"], "--host and --port are for the page: add --web"),
        (["play", "tictactoe", "--export", "page", "--host", "::1"], "--host and --port are for the page: add --web"),
        (
            ["play", "tictactoe", "--level", "best"],
            "invalid choice 'best' for argument '--level'; available: None, beginner, easy, hard, medium; `azjax",
        ),
        (
            ["evaluate", "tictactoe:16", "--num-simulations", "50"],
            "tictactoe:16 names 16 simulations, and num_simulations is 50: leave out one",
        ),
        (
            ["evaluate", "uct:5", "--game", "connect2", "--num-simulations", "50"],
            "num_simulations is for trained agents; uct:5 is not one",
        ),
        (["evaluate", "random", "--game=connect2", "--seed", "-1"], "seed must be 0..2^32 - 1, got -1"),
        (
            ["evaluate", "random", "--game"],
            "missing value for argument '--game'; `azjax evaluate random --help` tells more",
        ),
        (["evaluate", "tictactoe", "more"], "unrecognized options: more; `azjax evaluate tictactoe --help` tells more"),
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
        (["solve", "mnk", "--columns", "many"], "--columns must be an integer, got 'many'; `azjax solve mnk --help`"),
        (["benchmark", "games", "--repeats", "0"], "repeats must be at least 1, got 0"),
    ],
)
def test_a_bad_option_is_refused_by_tyro(capsys, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert message in refused(capsys, arguments)
    assert not list(tmp_path.iterdir())


def test_a_value_that_is_no_number_is_refused_with_its_option(capsys):
    line = refused(capsys, ["solve", "tictactoe", "--perft", "deep"])
    assert "--perft" in line
    assert "'deep'" in line


def test_a_study_that_does_not_exist_is_refused(capsys):
    assert refused(capsys, ["sweep", "nowhere.toml"], code=1).startswith("nowhere.toml cannot be read: ")


def test_an_unknown_player_lists_the_known_ones(capsys):
    line = refused(capsys, ["evaluate", "magnus", "--game", "tictactoe"])
    assert line.startswith("unknown player 'magnus'; players: a run folder")
    assert "needs a game too" in refused(capsys, ["play", "random"])


def test_a_folder_that_is_not_a_run_is_refused(capsys, tmp_path):
    line = refused(capsys, ["evaluate", str(tmp_path)], code=1)
    assert line == f"{tmp_path} is not a run folder: there is no config.json"


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


def test_the_version_is_told(capsys):
    main(["--version"])
    assert capsys.readouterr().out == f"azjax {importlib.metadata.version('azjax')}\n"


def test_help_lists_every_command_and_some_games(capsys):
    main(["--help"])
    text = capsys.readouterr().out
    main(["help"])
    assert capsys.readouterr().out == text
    for word in ("train", "evaluate", "solve", "play", "benchmark", "--import", "connect_four", "pgx:hex"):
        assert word in text


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


@pytest.mark.slow
def test_a_search_is_measured_with_a_solver_and_a_reused_tree(capsys):
    main(["evaluate", "uniform:64", "--game", "connect2", "--games", "2", "--solver", "--reuse-tree"])
    text = capsys.readouterr().out
    assert "uniform:64 + solver + reused tree" in text
    assert "2 games against optimal: won" in text


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
    main(["evaluate", f"{folder}@best", "--games", "2"])
    assert "2 games against optimal: won" in capsys.readouterr().out
    assert "after @ comes best or an iteration, got 'worst'" in refused(capsys, ["evaluate", f"{folder}@worst"])
    assert "has no checkpoint 77; available: 2, 3" in refused(capsys, ["evaluate", f"{folder}@77"], code=1)


@pytest.mark.slow
def test_a_run_is_reported(capsys, tmp_path):
    folder = tmp_path / "run"
    train(make("connect2"), small_run.SMALL, folder)
    main(["report", str(folder), "--games", "2", "--num-simulations", "4"])
    assert capsys.readouterr().out.strip() == f"{folder}/report.html"
    assert (folder / "report.html").read_text().startswith("<!doctype html>")


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


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (InputError("two\nlines"), 2, "azjax: two lines"),
        (FileError("no file"), 1, "azjax: no file"),
        (RunError("no run"), 1, "azjax: no run"),
        (OSError(28, "No space left on device", "games.jsonl"), 1, "azjax: games.jsonl: No space left on device"),
        (KeyboardInterrupt(), 130, "azjax: interrupted"),
    ],
)
def test_an_error_for_users_is_one_line_and_an_exit_code(capsys, error, code, line):
    with pytest.raises(SystemExit) as stop, errors_in_one_line():
        raise error
    assert stop.value.code == code
    assert capsys.readouterr().err == f"{line}\n"


def test_a_closed_pipe_ends_a_command_with_its_usual_exit_code():
    """As of `azjax agents | head -0`."""
    command = [sys.executable, "-m", "azjax", "agents"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 128 + signal.SIGPIPE


@pytest.mark.parametrize("error", [ValueError("a bug"), RuntimeError("a bug"), KeyError("a bug"), OSError("a bug")])
def test_a_bug_is_not_caught(error):
    with pytest.raises(type(error)), errors_in_one_line():
        raise error


@pytest.mark.slow
def test_a_bug_ends_the_installed_command_with_its_traceback():
    program = "from azjax import cli; from azjax.commands import solve\n"
    program += "solve.solve_command = lambda arguments: {}['nothing']; cli.main()"
    done = subprocess.run([sys.executable, "-c", program, "solve"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("Traceback")
    assert done.stderr.endswith("KeyError: 'nothing'\n")


@each_game()
def test_no_option_of_a_game_has_the_name_of_a_training_option(name, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["train", name, "--help"])
    assert stopped.value.code == 0
    assert "--truncate-at-ply" in capsys.readouterr().out


def test_the_options_of_a_game_choose_the_preset(capsys):
    for size, width in ((2, 128), (3, 1024)):
        with pytest.raises(SystemExit) as stopped:
            main(["train", "santorini", "--size", str(size), "--help"])
        assert stopped.value.code == 0
        assert f"(default: {width})" in capsys.readouterr().out.split("--width")[1][:400]


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


KEPT = """
import sys
from azjax import cli

cli.keep_freed_memory = lambda: kept.append(sys.argv[2])
kept = []
for name in ("games", "population", "search"):
    sys.argv = ["azjax", "benchmark", name, "--help"]
    try:
        cli.main()
    except SystemExit:
        pass
print(*kept)
"""


def test_freed_memory_is_kept_for_the_benchmarks_that_do_not_train():
    done = subprocess.run([sys.executable, "-c", KEPT], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "games search"


def test_the_installed_command_ends_with_the_code_of_its_failure():
    command = [sys.executable, "-c", "from azjax.cli import main; main()", "train", "chess"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == f"azjax: unknown game 'chess'; {CHOICES}\n"


@pytest.mark.slow_except("<&- >&- 2>&-")
@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&- 2>&-"])
def test_closed_standard_streams_end_in_no_traceback(closed):
    command = f"{shlex.quote(sys.executable)} -c 'from azjax.cli import main; main()' gtp connect2 {closed}"
    done = subprocess.run(["sh", "-c", command], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
