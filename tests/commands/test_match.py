"""`azjax match`."""

import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest
from refusals import closed_output, refused, refused_without_a_file

from azjax.cli import main
from azjax.core.errors import InputError
from azjax.evaluation import ExternalPlayer, load_games

SCRIPT = str(Path(__file__).parents[1] / "scripted_engine.py")


def test_the_games_of_a_match_are_saved(capsys, tmp_path):
    records = tmp_path / "games.jsonl"
    main(["match", "connect2:8", "connect2:medium", "--games", "20", "--records", str(records)])
    text = capsys.readouterr().out
    assert "connect2:8 against" in text
    assert "ratings" not in text
    games = load_games(records)
    assert [game.players for game in games[:2]] == [
        ("connect2:8", "connect2:medium"),
        ("connect2:medium", "connect2:8"),
    ]
    # Whoever moves first wins with best play.
    assert {game.rewards for game in games} == {(1.0, -1.0)}


@pytest.mark.slow
def test_games_are_saved_before_the_table_is_printed(tmp_path, monkeypatch):
    """The reader of the output may have ended, as in `azjax match ... | head -1`."""

    monkeypatch.setattr("azjax.commands.match.console.print", closed_output)
    records = tmp_path / "games.jsonl"
    with pytest.raises(SystemExit) as stop:
        main(["match", "random", "uniform:1", "--game", "connect2", "--games", "4", "--records", str(records)])
    assert stop.value.code == 141
    assert len(load_games(records)) == 4


def test_a_file_of_games_is_not_written_over(capsys, tmp_path):
    (records := tmp_path / "games.jsonl").write_text("of another match\n")
    message = refused(capsys, ["match", "random", "uniform:1", "--game", "connect2", "--records", str(records)])
    assert "games.jsonl exists: name a new file by --records, or add to its games by --pool" in message
    assert records.read_text() == "of another match\n"


def test_games_that_were_finished_stay_when_a_program_cannot_be_started_again(capsys, tmp_path, monkeypatch):
    start, started = ExternalPlayer.start, []

    def start_once(player, game):
        started.append(player)
        if len(started) > 1:
            raise InputError("no program any more")
        return start(player, game)

    monkeypatch.setattr(ExternalPlayer, "start", start_once)
    program = shlex.join([sys.executable, SCRIPT, "line", "crash", "1"])
    records = tmp_path / "games.jsonl"
    with pytest.raises(SystemExit) as stop:
        main(["match", f"line:{program}", "random", "--game", "tictactoe", "--games", "4", "--records", str(records)])
    assert stop.value.code == 2
    told = capsys.readouterr()
    assert "no program any more" in told.err
    assert "1 games that were finished are in" in " ".join(told.out.split())
    assert [game.end[:5] for game in load_games(records)] == ["crash"]


@pytest.mark.slow
def test_a_program_ends_with_a_match_that_is_ended(tmp_path):
    word = f"number={time.time_ns()}"  # by which the program is found; Python does nothing with it
    program = shlex.join([sys.executable, "-X", word, SCRIPT, "line", "silent"])
    match = subprocess.Popen(
        [sys.executable, "-m", "azjax", "match", f"line:{program}", "random", "--game", "tictactoe", "--games", "2"]
    )

    def is_running():
        return any(word.encode() in path.read_bytes().split(bytes(1)) for path in Path("/proc").glob("[0-9]*/cmdline"))

    deadline = time.monotonic() + 120
    while not is_running():
        assert time.monotonic() < deadline
        time.sleep(0.2)
    time.sleep(2)
    match.terminate()
    assert match.wait(60) == 143
    assert not is_running()


def test_equal_games_are_warned_of(capsys):
    main(["match", "uct:50", "uniform:8", "--game", "connect2", "--games", "20", "--opening-plies", "1"])
    assert "differ, so that" not in " ".join(capsys.readouterr().out.split())
    main(["match", "uniform:8", "uniform:4", "--game", "connect2", "--games", "20"])
    told = " ".join(capsys.readouterr().out.split())
    assert re.search(r"of the 20 games of uniform:8 against uniform:4 [12] differ, so that the intervals are", told)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["uct:10", "random", "--game", "tictactoe", "--seconds", "1"],
            "seconds: for programs, and for trained agents",
        ),
        (["uct:10", "random", "--game", "tictactoe", "--processes", "4"], "processes: for programs such as"),
        (["uct:10", "random", "--game", "tictactoe", "--balance", "0.1"], "balance: for openings that a --judge"),
        (["tictactoe:easy", "random", "--solver"], "solver: for searches of trained agents"),
    ],
)
def test_options_without_an_effect_are_refused(capsys, arguments, message):
    assert message in refused(capsys, ["match", *arguments, "--games", "2"])


@pytest.mark.slow
def test_three_players_are_rated_and_drawn(capsys, tmp_path):
    plot, players = tmp_path / "ratings.png", ["random", "uniform:4", "optimal"]
    options = ["--game", "connect2", "--games", "40", "--opening-plies", "1", "--anchor", "random"]
    main(["match", *players, *options, "--plot", str(plot)])
    text = capsys.readouterr().out
    of_ratings = text.partition("connect2: ratings")[2]
    assert re.search(r"random +\+0 ", of_ratings)
    assert all(player in of_ratings for player in players)
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_an_undecided_test_is_told_and_games_of_a_pool_from_other_openings(capsys, tmp_path):
    options = ["--game", "connect2", "--games", "4"]
    main(["match", "random", "uniform:4", *options, "--sprt", "0", "50"])
    assert "random against uniform:4: undecided between +0 and +50 Elo" in capsys.readouterr().out
    pool = tmp_path / "pool.jsonl"
    main(["match", "random", "uniform:4", *options, "--pool", str(pool)])
    assert "random plies" not in capsys.readouterr().out
    main(["match", "random", "uniform:4", *options, "--pool", str(pool), "--opening-plies", "1"])
    assert f"{pool} has games after 0 random plies, and this match begins after 1" in capsys.readouterr().out


@pytest.mark.slow
def test_a_pool_goes_on_without_playing_again_and_rates_all_its_players(capsys, tmp_path):
    pool, options = tmp_path / "pool.jsonl", ["--game", "connect2", "--opening-plies", "1"]
    main(["match", "random", "uniform:4", *options, "--games", "20", "--pool", str(pool)])
    assert "ratings" not in capsys.readouterr().out
    first = pool.read_text().splitlines()
    main(["match", "random", "optimal", *options, "--games", "10", "--pool", str(pool), "--anchor", "uniform:4"])
    text = capsys.readouterr().out
    assert "random against optimal" in text
    assert "uniform:4 against" not in text
    assert re.search(r"uniform:4 +\+0 ", text.partition("connect2: ratings")[2])
    assert f"{pool} has 30 games" in text.replace("\n", "")
    assert pool.read_text().splitlines()[:20] == first
    records = tmp_path / "games.jsonl"
    main(["match", "random", "uniform:4", *options, "--games", "20", "--pool", str(pool), "--records", str(records)])
    text = capsys.readouterr().out
    assert "nothing to play: " in text
    assert "saved" not in text
    assert len(pool.read_text().splitlines()) == 30
    assert not records.exists()


def test_the_games_of_a_pool_are_not_written_over(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (pool := tmp_path / "pool.jsonl").write_text("")
    options = ["--game", "connect2", "--pool", str(pool), "--records", "pool.jsonl"]
    assert "keeps its games itself: name another file by --records" in refused(
        capsys, ["match", "random", "uniform:4", *options]
    )


def test_players_of_different_games_are_refused(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["match", "connect2", "tictactoe"])
    assert stop.value.code == 2
    text = " ".join(capsys.readouterr().err.split())
    assert text.endswith("connect2 plays connect2 and tictactoe plays tictactoe: choose players of one game")


def test_who_forfeited_all_games_is_not_rated(capsys, tmp_path):
    program = shlex.join([sys.executable, SCRIPT, "line", "illegal", "1"])
    players = ["random", "uniform:1", f"line:{program}"]
    plot = tmp_path / "ratings.png"
    main(["match", *players, "--game", "connect2", "--games", "2", "--anchor", players[-1], "--plot", str(plot)])
    text = " ".join(capsys.readouterr().out.split())
    assert f"not rated, since none of their games counts: line:{program}" in text
    assert not plot.exists()


def test_many_forfeits_are_warned_of(capsys):
    program = shlex.join([sys.executable, SCRIPT, "line", "illegal", "1"])
    main(["match", f"line:{program}", "random", "--game", "tictactoe", "--games", "2"])
    text = " ".join(capsys.readouterr().out.split())
    assert "warning: 2 of the 2 games of" in text
    assert "were forfeited, so that the score says little about strength" in text


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ([], ["OpenTafl draws at the third occurrence of a position, as --repetitions 3 does"]),
        pytest.param(["--repetitions", "3"], [], marks=pytest.mark.slow),
        pytest.param(
            ["--repetition", "never", "--max-plies", "100"],
            ["OpenTafl draws at the third occurrence of a position, and here no occurrence is a draw"],
            marks=pytest.mark.slow,
        ),
    ],
    ids=str,
)
def test_a_match_says_which_occurrence_draws_for_opentafl(options, told, capsys, tmp_path):
    program = shlex.join([sys.executable, SCRIPT, "opentafl", str(tmp_path / "log")])
    main(["match", f"opentafl:{program}", "brandub:easy", "--game", "brandub", "--games", "2", *options])
    text = " ".join(capsys.readouterr().out.split())
    assert re.findall("OpenTafl draws at the third occurrence of a position, (?:as|and) .*?(?:does|draw)", text) == told


def test_a_sequential_test_ends_a_match(capsys):
    main(["match", "optimal", "random", "--game", "tictactoe", "--games", "2000", "--sprt", "0", "100"])
    assert "decided: +100 Elo accepted" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tictactoe"], "azjax match needs two PLAYERs or more before its options; `azjax --help` tells more"),
        (
            ["tictactoe", "connect2"],
            "tictactoe plays tictactoe and connect2 plays connect2: choose players of one game",
        ),
        (["tictactoe:easy", "random", "--seconds", "-1"], "seconds must be above 0, got -1.0"),
        (["tictactoe:0s", "random"], "seconds must be above 0, got 0.0"),
        (["tictactoe:1s", "random", "--seconds", "2"], "trained agents without a number of simulations; none of the"),
        (["tictactoe", "random", "--judge", "tictactoe:1s"], "tictactoe:1s: seconds after the colon are for"),
        (["tictactoe:easy", "random", "--processes", "0"], "processes must be at least 1, got 0"),
        (["tictactoe", "tictactoe"], "each with a name of its own; got tictactoe; tictactoe"),
        (
            ["tictactoe", "tictactoe:fast"],
            "tictactoe:fast: after the colon comes a number of simulations or beginner, easy",
        ),
        (["tictactoe", "random", "--games", "3"], "games must be even and at least 2"),
        (["tictactoe", "random", "--sprt", "5", "5"], "elo0 must be less than elo1, and both within -2000..2000"),
        (["tictactoe", "random", "--anchor", "me"], "unknown anchor 'me'; players: tictactoe; random"),
        (["tictactoe", "random", "--anchor", "random"], "anchor and plot are for the ratings of three players or more"),
        (["tictactoe", "random", "--plot", "r.png"], "anchor and plot are for the ratings of three players or more"),
        (["tictactoe", "random", "--records", "."], ". cannot be written: it is a folder"),
        (["tictactoe", "random", "--sprt", "0", "7000"], "both within -2000..2000; got 0.0 and 7000.0"),
        (["random", "uct:3000000000", "--game", "tictactoe"], "num_simulations must be at most 16,777,216"),
        (["tictactoe", "random", "--records", "/nowhere/g.jsonl"], "there is no folder /nowhere"),
        (["tictactoe", "random", "--pool", "/nowhere/g.jsonl"], "there is no folder /nowhere"),
        (["tictactoe", "random", "--pool", "g", "--sprt", "0", "5"], "sprt is for a match of its own, not for a pool"),
        (["random", "uct:10"], "a player by name needs a game too"),
        (
            ["random", "uct:10", "--game", "connect2", "--solver", "--leaves-per-step", "2"],
            "solver, leaves_per_step: for searches of trained agents, and none of the players has one",
        ),
        (["connect2", "random", "--policy", "minimax"], "unknown policy 'minimax'; available: alphazero, gumbel, uct"),
    ],
)
def test_an_impossible_match_is_refused(capsys, arguments, message):
    assert message in refused(capsys, ["match", *arguments])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["match", "brandub:8", "brandub:16", "--repetitions", "3"],
            "--repetitions is an option of brandub: add --game brandub",
        ),
        (["match", "brandub", "random", "--tables", "nowhere.npz"], "there is no file nowhere.npz"),
        (
            ["match", "tictactoe", "random", "--gaems", "4"],
            "--gaems, 4 (did you mean --games?); `azjax match tictactoe",
        ),
    ],
)
def test_bad_input_is_refused_in_one_line(capsys, tmp_path, monkeypatch, arguments, message):
    assert message in refused_without_a_file(capsys, tmp_path, monkeypatch, arguments)
