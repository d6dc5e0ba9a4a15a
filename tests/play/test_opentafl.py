"""The engine of OpenTafl's protocol, as a host talks to it."""

import dataclasses
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from azjax.evaluation import ExternalPlayer, MoveChoice, Player, play_match, random_player, search_player
from azjax.evaluation.engine_protocols import rules_record
from azjax.games.game import Game
from azjax.games.protocols import legal_texts
from azjax.games.registry import make
from azjax.play.ongoing_game import OngoingGame
from azjax.play.opentafl import OpenTaflEngine
from azjax.search import evaluators

GAME = make("brandub")
BRANDUB_RULES = rules_record(GAME)
AZJAX = str(Path(sys.executable).with_name("azjax"))
START = "/3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3/"

# The player takes the first legal move: of the topmost, leftmost piece, downwards, upwards, to the right, to the left.
TRANSCRIPT = f"""\
> rules {BRANDUB_RULES}
> play attackers
move d7-e7
> move /3t3/3t3/3T3/ttTKTtt/3T3/3t3/4t2/
> opponent-move d5-c5 /3t3/3t3/3T3/ttTKTtt/2T4/3t3/4t2/
> play attackers
move e7-e6
> error 2
> opponent-move d5-c5 /3t3/3t3/3T3/ttTKTtt/2T4/3t3/4t2/
> play attackers
error -1 e7-e6 is refused, and legal here
> position /3t3/3t3/3T3/ttTKTtt/2T4/3t3/4t2/
> play attackers
move e7-e6
> move /3t3/3t3/3T3/ttTKTtt/2T4/3tt2/7/
> play attackers
error -1 it is the turn of the defenders
> opponent-move c5-c7 /7/3t3/3T3/ttTKTtt/7/3tt2/2T4/
error 0 after c5-c7 the board is /3t3/3t3/3T3/ttTKTtt/7/3tt2/2T4/ here; goes on at /7/3t3/3T3/ttTKTtt/7/3tt2/2T4/
> play attackers
move d6-d5
> opponent-move c7-f3 /7/3t3/3T1T1/ttTKTtt/3t3/4t2/7/
error 0 after c7-f3 the board is /7/3t3/3T3/ttTKTtt/3t3/4t2/2T4/ here; goes on at /7/3t3/3T1T1/ttTKTtt/3t3/4t2/7/
> finish 3
> play attackers
move d7-e7
> rules
error -1 this engine plays by the rules {BRANDUB_RULES}
> rules dim:7 name:Brandub surf:n atkf:y ks:w cenh: cenhe: start:{START}
error -1 this engine plays by the rules {BRANDUB_RULES}
> position /7/7/7/7/4t2/7/2K4/
> side defenders
> analyze 3 1
analysis 1 c7-c6 0.000
> position /7/7/7/7/4t2/7/K6/
> play attackers
error -1 the game is over
> analyze 3 1
error 0 the game is over
> position 7
error 0 a position begins and ends with a slash, got '7'
> position /7/
error 0 brandub: a position has 7 rows with / between, got 1: '7'
> position
error 0 syntax error: position RECORD
> side white
error 0 syntax error: side attackers|defenders
> clock 1000 2000* 30 1 2
> clock 1000 2000* 30 1
error 0 syntax error: clock ATTACKER_MILLIS[*] DEFENDER_MILLIS[*] OVERTIME_SECONDS ATTACKER_OVERTIMES DEFENDER_OVERTIMES
> clock soon 2000* 30 1 2
error 0 syntax error: 'soon' is not a whole number of 0 or more
> hello
> castle
error 0 unknown command 'castle'
> goodbye
"""


@dataclasses.dataclass(frozen=True)
class _First:
    game: Game

    def __call__(self, params: Any, key: jax.Array, states: Any) -> MoveChoice:
        del params, key
        first = jnp.argmax(jax.vmap(self.game.legal_action_mask)(states), axis=1)
        chosen = jax.nn.one_hot(first, self.game.num_actions)
        return MoveChoice(chosen, jnp.full(states.terminated.shape, jnp.nan), chosen)


@pytest.fixture
def engine():
    return OpenTaflEngine(OngoingGame(GAME, Player("first", _First(GAME))))


def test_a_conversation_goes_as_written(engine):
    assert engine.greeting == "hello\n"
    for part in TRANSCRIPT.split("> ")[1:]:
        line, _, expected = part.partition("\n")
        assert engine.answer(line) == expected, line
    assert engine.has_ended


@pytest.mark.parametrize(
    "record",
    [
        f"dim:7 name:Unknown_Tafl surf:n atkf:y ks:c cens: start:{START}",  # as OpenTafl writes it again
        f"dim:7 esc:c nj:n cj:n surf:n ks:c cens: cenhe:tcnkmgTCNKMG sw:n starti:{START}",
    ],
)
def test_records_that_mean_the_same_rules_are_taken(engine, record):
    assert engine.answer(f"rules {record}") == ""


@pytest.mark.parametrize("change", ["ks:c>ks:s", "surf:n>surf:y", "cens:>cens:K", "dim:7>dim:9", "atkf:y>atkf:n"])
def test_records_of_other_rules_are_refused(engine, change):
    record = BRANDUB_RULES.replace(*change.split(">"))
    assert engine.answer(f"rules {record}").startswith("error -1 this engine plays by the rules dim:7 ")


@pytest.mark.parametrize(
    ("name", "record"),
    [
        ("ard_ri", "dim:7 esc:e surf:n atkf:y ks:s spd:1 cor: cenh: cenhe: start:/2ttt2/3t3/t1TTT1t/ttTKTtt/t1TTT1t/"),
        ("tablut", "dim:9 esc:e surf:n atkf:y ks:c cor: cenh: cenhe:tcnkmTCNKM cens: linc:n start:/3ttt3/4t4/"),
        ("tawlbwrdd", "dim:11 esc:e surf:n atkf:y ks:w cor: cen: start:/4ttt4/4t1t4/5t5/5T5/tt2TTT2tt/t1tTTKTTt1t/"),
        ("hnefatafl", "dim:11 surf:y atkf:y ks:s cenhe:tcnkmTCNKM start:/3ttttt3/5t5/11/t4T4t/t3TTT3t/tt1TTKTT1tt/"),
    ],
)
def test_each_game_of_tafl_has_its_record(name, record):
    assert rules_record(make(name, repetitions=4)).startswith(record)
    with pytest.raises(ValueError, match=f"opentafl is for .* by their default rules, not for {name} .*longest_move=3"):
        rules_record(make(name, king="by_two", castle="nobody", longest_move=3))


def test_who_is_to_move_in_a_position_is_what_comes_next(engine):
    # Asked to play, told a move of a piece, or told the side.
    for line, answer in [
        ("play attackers", "move c6-c5\n"),
        ("play defenders", "move d4-d3\n"),
        ("opponent-move d4-e4 /7/7/7/4K2/7/2t4/7/", ""),
        ("opponent-move c6-c1 /2t4/7/7/3K3/7/7/7/", ""),
    ]:
        assert engine.answer("position /7/7/7/3K3/7/2t4/7/") == ""
        assert engine.answer(line) == answer
    assert engine.answer("position /7/7/7/3K3/7/2t4/7/") == ""
    assert engine.answer("side defenders") == ""
    assert engine.answer("analyze 1 1") == "analysis 1 d4-d3 0.000\n"


def test_a_draw_by_our_rules_goes_on_where_the_host_goes_on(engine):
    for move, record in [
        ("d7-e7", "/3t3/3t3/3T3/ttTKTtt/3T3/3t3/4t2/"),
        ("d5-e5", "/3t3/3t3/3T3/ttTKTtt/4T2/3t3/4t2/"),
        ("e7-d7", "/3t3/3t3/3T3/ttTKTtt/4T2/3t3/3t3/"),
        ("e5-d5", START),
    ]:
        assert engine.answer(f"opponent-move {move} {record}") == ""
    assert engine._ongoing.is_over
    assert engine.answer("play attackers") == "move d7-e7\n"


def test_several_moves_are_told_at_once(engine):
    assert engine.answer("opponent-move d7-e7|d5-e5 /3t3/3t3/3T3/ttTKTtt/4T2/3t3/4t2/") == ""
    assert engine.answer("play attackers") == "move e7-e6\n"


@pytest.mark.slow
def test_the_clock_limits_a_search_and_analysis_tells_several_moves():
    player = search_player(GAME, evaluators.uniform(GAME), num_simulations=4, name="search")
    engine = OpenTaflEngine(OngoingGame(GAME, player))
    assert engine.answer("clock 2000 1000* 30 0 1") == ""
    attackers, defenders = engine._ongoing.clocks
    assert (attackers.seconds, attackers.moves, attackers.period) == (2, 0, 0)
    assert (defenders.seconds, defenders.moves, defenders.period) == (1, 1, 30)
    assert engine.answer("play attackers").startswith("move ")
    assert engine._ongoing.clocks[0].seconds < 2
    head, number, *pairs = engine.answer("analyze 3 1").split()
    assert (head, number) == ("analysis", "3")
    legal = legal_texts(GAME, engine._ongoing.state)
    assert all(move in legal for move in pairs[::2])
    assert all(-1 <= float(value) <= 1 for value in pairs[1::2])


@pytest.mark.parametrize(("name", "options"), [("tictactoe", {}), ("brandub", {"rules": "seed000"})])
def test_other_games_and_rules_are_refused(name, options):
    game = make(name, **options)
    with pytest.raises(ValueError, match=r"opentafl is for brandub, .* by their default rules, not for "):
        OpenTaflEngine(OngoingGame(game, random_player(game)))


def _fuzz(engine, count):
    source = random.Random(0)
    words = [
        *engine._commands,
        "attackers",
        "defenders",
        "d7-e7",
        "d5-e5|e7-d7",
        "17",
        "0",
        "-1",
        "x" * 5000,
        "é",
        "\0",
    ]
    words += [START, "/7/7/7/7/4t2/7/2K4/", "/7/", "/7/7/7/7/7/7/K6/", "1000*", "30", *BRANDUB_RULES.split()]
    heads = ["error 0 ", "error -1 ", "move ", "analysis "]
    for number in range(count):
        line = " ".join(source.choice(words) for _ in range(source.randrange(6)))
        if number % 3 == 0:  # or hardly any is whole
            line = source.choice([f"rules {BRANDUB_RULES}", "play attackers", "play defenders", f"position {START}"])
        answer = engine.answer(line)
        assert answer == "" or any(answer.startswith(head) for head in heads), (number, line, answer)
        assert answer.count("\n") == bool(answer)
        assert answer.isascii()
        assert len(engine._ongoing.states) <= GAME.max_plies + 1


def test_random_lines_are_answered_or_refused(engine):
    _fuzz(engine, 1000)


@pytest.mark.slow
def test_a_hundred_thousand_random_lines_are_answered_or_refused(engine, tries):
    _fuzz(engine, tries(100_000))


@pytest.mark.slow
def test_it_plays_a_match_as_an_external_program():
    command = f"{AZJAX} gtp brandub --protocol opentafl --num-simulations 8"
    engine = ExternalPlayer("theirs", "opentafl", command, seconds=120)
    match = play_match(GAME, random_player(GAME), engine, 4, jax.random.key(0), opening_plies=2)
    assert match.forfeits == (None,) * 4


@pytest.mark.slow
def test_the_command_answers_bytes_that_are_no_text():
    told = f"rules {BRANDUB_RULES}\n".encode() + b"\xff\xfe\n\nplay attackers\ngoodbye\n"
    command = [AZJAX, "gtp", "random", "--game", "brandub", "--protocol", "opentafl"]
    done = subprocess.run(command, input=told, capture_output=True, check=True)
    hello, error, move = done.stdout.decode("ascii").splitlines()
    assert (hello, error) == ("hello", "error 0 unknown command '??'")
    assert move.removeprefix("move ") in legal_texts(GAME, GAME.init(jax.random.key(0)))
    assert done.stderr == b""
