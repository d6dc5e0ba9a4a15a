"""The command line. Commands run in this process, except where a test checks how the process ends."""

import importlib.metadata
import os
import shlex
import signal
import subprocess
import sys

import pytest
from refusals import refused

from azjax.cli import main
from azjax.core.errors import FileError, InputError, RunError
from azjax.errors import errors_in_one_line
from azjax.games.registry import available

CHOICES = f"available: {', '.join(available())}, pgx:NAME"


def test_an_unknown_command_lists_the_known_ones(capsys):
    assert refused(capsys, ["fly"]) == (
        "unknown command 'fly'; available: train, evaluate, match, solve, play, gtp, report, sweep, export, agents, "
        "benchmark, check, completion, doctor"
    )


def test_a_study_that_does_not_exist_is_refused(capsys):
    assert refused(capsys, ["sweep", "nowhere.toml"], code=1).startswith("nowhere.toml cannot be read: ")


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


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (InputError("two\nlines"), 2, "azjax: two lines"),
        (FileError("no file"), 1, "azjax: no file"),
        (InputError("a program said \x1b[31mred\x07"), 2, r"azjax: a program said \x1b[31mred\x07"),
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


def test_a_terminal_of_one_column_gets_wider_tables():
    command = [sys.executable, "-c", "from azjax.cli import main; main()", "solve", "connect2"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | {"COLUMNS": "1"})
    assert max(len(line) for line in done.stdout.splitlines()) == 20


@pytest.mark.slow_except("<&- >&- 2>&-")
@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&- 2>&-"])
def test_closed_standard_streams_end_in_no_traceback(closed):
    command = f"{shlex.quote(sys.executable)} -c 'from azjax.cli import main; main()' gtp connect2 {closed}"
    done = subprocess.run(["sh", "-c", command], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
