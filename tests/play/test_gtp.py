"""The engine, as a program talks to it."""

import gc
import io
import random
import subprocess
import sys
import tracemalloc
from pathlib import Path

import jax
import pytest

from azjax.evaluation import (
    ExternalPlayer,
    optimal_player,
    play_match,
    random_player,
    search_player,
    solve,
    uct_player,
)
from azjax.games.registry import make
from azjax.play.gtp import GtpEngine
from azjax.play.lines import read_lines, serve
from azjax.play.ongoing_game import OngoingGame
from azjax.search import evaluators

GAME = make("tictactoe")
AZJAX = str(Path(sys.executable).with_name("azjax"))

TRANSCRIPT = """\
> protocol_version
= 2

> 7 name
=7 azjax optimal

> known_command genmove
= true

> known_command reg_genmove
= false

> game
= tictactoe

> game connect_four
? this engine plays tictactoe, not connect_four

> boardsize 3
=

> boardsize 19
? unacceptable size

> play b b2
=

> play b a1
? it is the other side's turn

> play w b2
? illegal move

> 12 play a1 # a corner, which draws
=12

> legal_actions
= a3 b3 c3 a2 c2 b1 c1

> is_terminal
= false

> final_score
? the game is not over

> showboard
=
3  . . .
2  . X .
1  O . .
   a b c

> play b c1
=

> genmove
= a3

> play b c3
=

> undo
=

> play a2
=

> play w c2
=

> play b3
=

> play w b1
=

> play b c3
=

> is_terminal
= true

> returns
= 0 0

> final_score
= 0

> genmove w
? the game is over

> clear_board
=

> undo
? cannot undo

> time_settings 60 10 5
=

> time_left b 30 0
=

> time_left white 9 2
=

> genmove purple
? syntax error: genmove COLOR

> time_left green 9 2
? syntax error: time_left COLOR TIME STONES

> time_settings 1 2
? syntax error: time_settings MAIN_TIME BYO_YOMI_TIME BYO_YOMI_STONES

> time_settings -1 0 0
? syntax error: '-1' is not a whole number of 0 or more

> time_settings 0 1 0
=

> num_simulations 8
? optimal does not search

> num_simulations 0
? num_simulations must be 1..100000

> num_simulations
? syntax error: num_simulations NUMBER

> does_not_exist
? unknown command

> quit
=

"""


@pytest.fixture(scope="module")
def best():
    return optimal_player(solve(GAME))


def test_a_conversation_goes_as_written(best):
    engine = GtpEngine(OngoingGame(GAME, best))
    parts = TRANSCRIPT.split("> ")[1:]
    for part in parts:
        line, _, expected = part.partition("\n")
        said = engine.answer(line)
        assert said.endswith("\n\n")
        assert "\n".join(row.strip() for row in said.splitlines()) == "\n".join(
            row.strip() for row in expected.splitlines()
        ), line
    assert engine.has_ended


def test_lines_without_a_command_are_not_answered(best):
    output = io.StringIO()
    serve(GtpEngine(OngoingGame(GAME, best)), ["\n", "# a comment\n", "  \t \n", "3\n", "quit\n", "name\n"], output)
    assert output.getvalue() == "=\n\n"


@pytest.mark.parametrize("name", ["connect_four", "brandub", "santorini"])
def test_every_game_is_played_to_its_end(name):
    game = make(name)
    engine = GtpEngine(OngoingGame(game, random_player(game)))
    for _ in range(game.max_plies):
        if engine.answer("is_terminal") == "= true\n\n":
            break
        legal = engine.answer("legal_actions")[2:].split()
        assert engine.answer("genmove")[2:].strip() in legal
    assert engine.answer("is_terminal") == "= true\n\n"
    first, second = map(float, engine.answer("returns")[2:].split())
    assert first == -second


def _searcher(num_simulations=8, **options):
    return search_player(GAME, evaluators.rollout(GAME), num_simulations=num_simulations, name="search", **options)


@pytest.mark.slow
def test_time_limits_the_search_in_place_of_simulations():
    engine = GtpEngine(OngoingGame(GAME, _searcher()))
    assert engine.answer("time_settings 2 0 0") == "=\n\n"
    legal = engine.answer("legal_actions")[2:].split()
    assert engine.answer("genmove b")[2:].strip() in legal
    black, white = engine._ongoing.clocks
    assert black.seconds < 2
    assert white.seconds == 2
    engine.answer("time_left w 0 0")
    assert engine.answer("genmove w").startswith("= ")
    engine.answer("clear_board")
    assert [clock.seconds for clock in engine._ongoing.clocks] == [2, 2]
    for no_limit in ("0 1 0", "7 1 0", "0 0 0"):
        assert engine.answer(f"time_settings {no_limit}") == "=\n\n"
        assert engine._ongoing.clocks == [None, None]


def test_nothing_compiles_while_a_clock_runs(monkeypatch):
    game, compiled = OngoingGame(GAME, _searcher()), []

    def compile_search(self, seconds):
        compiled.append(seconds)
        self._most_seconds = seconds

    monkeypatch.setattr(OngoingGame, "compile_timed_search", compile_search)
    engine = GtpEngine(game)
    for line in ("time_settings 100 0 0", "play b b2", "time_left w 1000 0", "clear_board", "time_settings 1000 0 0"):
        assert engine.answer(line) == "=\n\n"
    assert compiled == [0.9 * 100 / 20, 0.9 * 1000 / 20]


@pytest.mark.slow_except("player0")
@pytest.mark.parametrize("player", [_searcher(reuse_tree=True), uct_player(GAME, num_simulations=8)])
def test_simulations_can_be_set_during_a_game(player):
    engine = GtpEngine(OngoingGame(GAME, player))
    assert engine.answer("genmove b").startswith("= ")
    assert engine.answer("num_simulations 12") == "=\n\n"
    assert engine._ongoing.player.policy.policy.num_simulations == 12
    assert engine.answer("genmove w").startswith("= ")
    assert engine.answer("undo") == "=\n\n"
    assert engine.answer("genmove w").startswith("= ")


def test_seconds_a_move_are_for_those_who_can_search_so_long(best):
    engine = GtpEngine(OngoingGame(GAME, _searcher(), seconds=0.05))
    assert engine.answer("genmove").startswith("= ")
    with pytest.raises(ValueError, match="seconds is for searches; optimal does not search"):
        OngoingGame(GAME, best, seconds=1.0)
    with pytest.raises(ValueError, match="seconds must be above 0, got 0"):
        OngoingGame(GAME, _searcher(), seconds=0.0)


def test_a_line_that_does_not_end_is_not_kept():
    read = list(read_lines(io.StringIO("name\n" + "x" * 10**6 + "\n\nquit")))
    assert [len(line) for line in read] == [4, 4098, 0, 4]


def _fuzz(best, count):
    source = random.Random(0)
    engine = GtpEngine(OngoingGame(GAME, best))
    words = [
        *engine._commands,
        "b",
        "w",
        "white",
        "a1",
        "b2",
        "c3",
        "4",
        "9",
        "-1",
        "#",
        "19",
        "x" * 5000,
        "é",
        "\0",
        "\t",
    ]
    for number in range(count):
        line = " ".join(source.choice(words) for _ in range(source.randrange(5)))
        answer = engine.answer(line)
        assert answer == "" or (answer[0] in "=?" and answer.endswith("\n\n")), (number, line, answer)
        assert "Traceback" not in answer
        assert len(engine._ongoing.states) <= 10


def test_random_lines_are_answered_or_refused(best):
    _fuzz(best, 2000)


@pytest.mark.slow
def test_a_hundred_thousand_random_lines_are_answered_or_refused_in_bounded_memory(best, tries):
    _fuzz(best, 1000)
    tracemalloc.start()
    _fuzz(best, tries(100_000))
    gc.collect()  # the tests let garbage pile up; see conftest.py
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 10**6  # bytes: ten a line would be more


@pytest.mark.slow
def test_it_plays_a_match_as_an_external_program():
    command = f"{AZJAX} gtp uct:200 --game tictactoe"
    engine = ExternalPlayer("theirs", "gtp", command, seconds=60)
    match = play_match(GAME, uct_player(GAME, num_simulations=200), engine, 4, jax.random.key(0))
    assert match.games == 4
    assert match.forfeits == (None,) * 4


@pytest.mark.slow
def test_the_command_answers_on_standard_output():
    command = [AZJAX, "gtp", "tictactoe", "--num-simulations", "16"]
    told = "play b b2\ngenmove w\nquit\n"
    done = subprocess.run(command, input=told, capture_output=True, text=True, check=True)
    lines = done.stdout.split("\n\n")
    assert lines[0] == "="
    assert lines[1][2:] in ("a1", "c1", "a3", "c3")  # a corner, or it loses
    assert done.stderr == ""
