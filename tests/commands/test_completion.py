"""What the shells complete, and that the scripts know every command and option."""

import re
import shutil
import subprocess

import pytest

from azjax import cli
from azjax.commands.completion import cases, completion_command
from azjax.core.errors import InputError
from azjax.games.registry import available
from azjax.packaged import packaged

# Each prints what its shell offers for the words of a line, the last of which is being typed.
ASK = {
    "bash": """
source ./script
COMP_WORDS=({words} "{last}") COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_azjax
printf '%s\\n' "${{COMPREPLY[@]}}"
""",
    "zsh": """
compdef() {{ : }}
compadd() {{ print -l -- ${{(M)${{(P)2}}:#$PREFIX*}}; (( ${{#${{(M)${{(P)2}}:#$PREFIX*}}}} )) }}
_files() {{ print -l -- $PREFIX*(N) }}
source ./script
words=({words} "{last}") CURRENT=${{#words}} PREFIX="{last}"
_azjax
""",
    "fish": """
source ./script
complete -C '{words} {last}'
""",
}


@pytest.fixture
def complete(request, tmp_path, capsys):
    """`complete("azjax train", "tic")`: what a shell offers, in a folder with `runs`, `script` and `study.toml`."""
    shell = request.param
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    completion_command([shell])
    (tmp_path / "script").write_text(capsys.readouterr().out)
    (tmp_path / "study.toml").touch()
    (tmp_path / "runs").mkdir()

    def ask(words, last):
        command = [shell, "-c", ASK[shell].format(words=words, last=last)]
        done = subprocess.run(
            command, cwd=tmp_path, env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}, capture_output=True, text=True
        )
        assert done.stderr == ""
        return {line.partition("\t")[0].rstrip("/") for line in done.stdout.splitlines() if line}

    return ask


@pytest.mark.parametrize("complete", ASK, indirect=True)
def test_a_shell_completes_commands_names_files_and_options(complete):
    assert complete("azjax", "") >= {*cli._COMMANDS, "--help"}
    assert complete("azjax", "tr") == {"train"}
    assert complete("azjax train", "") == set(available())
    assert complete("azjax train", "connect") == {"connect2", "connect_four"}
    assert complete("azjax train mnk", "--co") == {"--columns", "--coordinator"}
    assert complete("azjax train brandub", "--co") == {"--coordinator"}
    assert complete("azjax train pgx_hex --resume", "--num-g") == {"--num-games"}
    assert complete("azjax train mnk --folder", "ru") == {"runs"}
    assert complete("azjax play", "") == {*packaged(), "runs", "script", "study.toml"}
    assert complete("azjax evaluate uct:10 --game", "bra") == {"brandub"}
    assert complete("azjax evaluate random --game mnk --seed 1", "--in") == {"--in-a-row"}
    assert complete("azjax match tictactoe", "tic") == {"tictactoe"}
    assert complete("azjax match tictactoe", "ru") == {"runs"}
    assert complete("azjax report", "") == {"runs", "script", "study.toml"}
    assert complete("azjax sweep", "s") == {"show", "script", "study.toml"}
    assert complete("azjax sweep show", "st") == {"study.toml"}
    assert complete("azjax sweep show study.toml", "--b") == {"--best"}
    assert complete("azjax sweep study.toml", "--w") == {"--workers"}
    assert complete("azjax benchmark", "") == {"games", "population", "search"}
    assert complete("azjax benchmark search", "--rep") == {"--repeats"}
    assert complete("azjax completion", "") == set(ASK)


def test_every_command_is_completed():
    assert {*cases()[0].words} == {*cli._COMMANDS, "completion", "--help"}


@pytest.mark.parametrize(
    "line",
    [
        "train mnk",
        "train brandub",
        "solve santorini",
        "evaluate tictactoe",
        "evaluate random --game mnk",
        "match tictactoe random",
        "play tictactoe",
        "gtp tictactoe",
        "report runs",
        "sweep study.toml",
        "sweep show study.toml",
        "benchmark games",
        "benchmark population",
        "benchmark search",
        "doctor --output report.json",
    ],
)
def test_the_options_are_those_of_the_help(line, capsys):
    with pytest.raises(SystemExit):
        cli.main([*line.split(), "--help"])
    told = re.findall(r"^[│ ]+(--.*?)(?:  |│|$)", capsys.readouterr().out, re.M)
    options = {word for names in told for word in re.findall(r"--\w[\w-]*", names)}
    fitting = next(case for case in cases() if re.fullmatch(re.escape(case.line).replace(r"\*", ".*"), f"{line} "))
    completed = {word for word in fitting.words if word.startswith("--")}
    # `--game` names the game of a player that has none of its own.
    of_all = {"--import", "--no-compilation-cache"}  # `azjax --help` has them
    assert completed - {"--game"} - of_all == options - {"--help", "--game"} != set()
    assert of_all <= completed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "azjax completion needs a bash|zsh|fish"),
        (["tcsh"], "unknown shell 'tcsh'; available: bash, zsh, fish"),
        (["zsh", "bash"], "azjax completion takes one shell, got also bash"),
    ],
)
def test_another_shell_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        completion_command(arguments)
