"""`azjax solve`."""

import re

import pytest
from refusals import closed_output, refused, refused_without_a_file

from azjax.cli import main
from azjax.evaluation.retrograde import load_endings
from azjax.evaluation.solution_file import load_solution
from azjax.games.registry import make


def test_solve_prints_the_facts_of_connect2(capsys):
    main(["solve", "connect2"])
    text = capsys.readouterr().out
    rows = {
        line.split("│")[1].strip(): line.split("│")[2].strip() for line in text.splitlines() if line.count("│") == 3
    }
    assert rows["value for the first player"] == "+1"
    assert rows["best first moves (action)"] == "b1 (1), c1 (2)"
    assert rows["reachable positions"] == "32"
    assert rows["games"] == "24"


def test_solve_prints_and_saves_endings(capsys, tmp_path):
    file = tmp_path / "endings.npz"
    main(["solve", "brandub", "--endings", "1", "--output", str(file)])
    text = capsys.readouterr()
    # On 44 squares and the castle the king has 44 * 43 + 44 placements, in all of which he escapes if he is to move.
    assert re.search(r"defenders +1,936 +0 +0 +5\b", text.out)
    assert f"saved to {file}" in text.err + text.out
    assert load_endings(file).summary()[1].won == 1936


def test_a_solution_is_saved_before_its_table_is_printed(tmp_path, monkeypatch):
    monkeypatch.setattr("azjax.commands.solve.console.print", closed_output)
    path = tmp_path / "solution.npz"
    with pytest.raises(SystemExit) as stop:
        main(["solve", "hex", "--size", "2", "--output", str(path)])
    assert stop.value.code == 141
    assert load_solution(path, make("hex", size=2)).game == make("hex", size=2)


def test_solve_proves_one_position(capsys):
    main(["solve", "tictactoe", "--prove", "XX_OO____"])
    text = capsys.readouterr().out
    assert re.search(r"value +│ +a win for the side to move", text)
    assert re.search(r"by +│ +c3 \(2\)", text)


def test_solve_perft_counts_sequences_of_moves(capsys):
    main(["solve", "tictactoe", "--perft", "4"])
    text = capsys.readouterr().out
    for count in ("9", "72", "504", "3,024"):
        assert f"{count} │" in text


def test_options_of_the_game_are_flags(capsys):
    main(["solve", "mnk", "--columns", "4", "--rows", "1", "--in-a-row", "2"])
    assert "b1 (1), c1 (2)" in capsys.readouterr().out


@pytest.mark.parametrize("option", ["--perft", "--endings", "--max-states"])
def test_a_number_below_one_is_refused_and_not_left_out(option, capsys):
    assert f"{option} must be at least 1, got 0" in refused(capsys, ["solve", "brandub", option, "0"])


@pytest.mark.parametrize("option", [["--output", "f.npz"], ["--max-states", "9"]])
def test_perft_has_no_solution_to_limit_or_save(capsys, option):
    message = "--perft counts moves alone: --output and --max-states are for solutions"
    assert message in refused(capsys, ["solve", "tictactoe", "--perft", "2", *option])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["solve", "tictacto"],
            "unknown game 'tictacto' (did you mean tictactoe?); available: ",
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
        (
            ["solve", "tictactoe", "--perft", str(10**20)],
            "--perft must be at most 9, the plies of the longest game, got",
        ),
        (["solve", "mnk", "--columns", "many"], "--columns must be an integer, got 'many'; `azjax solve mnk --help`"),
    ],
)
def test_bad_input_is_refused_in_one_line(capsys, tmp_path, monkeypatch, arguments, message):
    assert message in refused_without_a_file(capsys, tmp_path, monkeypatch, arguments)


def test_a_value_that_is_no_number_is_refused_with_its_option(capsys):
    line = refused(capsys, ["solve", "tictactoe", "--perft", "deep"])
    assert "--perft" in line
    assert "'deep'" in line


SMALL = ["connect_four", "--columns", "3", "--rows", "3", "--in-a-row", "3"]


@pytest.mark.parametrize("game", [SMALL, ["brandub", "--endings", "1"]])
def test_only_files_of_exact_values_are_replaced(capsys, tmp_path, game):
    path = tmp_path / "notes.txt"
    path.write_text("a year of notes")
    told = refused(capsys, ["solve", *game, "--output", str(path)])
    assert f"{path} exists and holds no exact values; name another file" in told
    assert path.read_text() == "a year of notes"


def test_a_file_of_exact_values_is_replaced(tmp_path):
    for _ in range(2):
        main(["solve", *SMALL, "--output", str(tmp_path / "solved.npz")])
    assert load_solution(tmp_path / "solved.npz").terminal > 0
