"""Matches against another process that plays well, is slow or silent, crashes, plays illegally or floods."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import jax
import pytest

from azjax.core.errors import InputError
from azjax.evaluation import ExternalPlayer, Record, SequentialTest, play_match, random_player, records_of
from azjax.evaluation import external as external_module
from azjax.evaluation.engine_process import EngineError, EngineProcess
from azjax.evaluation.engine_protocols import _santorini_move as santorini_move
from azjax.evaluation.engine_protocols import _santorini_record as santorini_record
from azjax.evaluation.ratings import pairings_of
from azjax.games.registry import make

TICTACTOE = make("tictactoe")
PROGRAM = Path(__file__).parents[1] / "scripted_engine.py"


def player(protocol: str, behavior: str, after: int = 0, **options) -> ExternalPlayer:
    command = shlex.join([sys.executable, str(PROGRAM), protocol, behavior, str(after)])
    return ExternalPlayer("program", protocol, command, **options)


def against_random(external: ExternalPlayer, games: int = 2, **options):
    return play_match(TICTACTOE, external, random_player(TICTACTOE), games, jax.random.key(0), **options)


def running(word: str = str(PROGRAM)) -> int:
    """Processes that are alive and were started with this word, by the tests of this process."""
    found, own = 0, f"PYTEST_XDIST_WORKER={os.environ.get('PYTEST_XDIST_WORKER', '')}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
            variables = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        of_another = own not in variables and any(each.startswith(b"PYTEST_XDIST_WORKER=") for each in variables)
        found += word.encode() in words and state != "Z" and not of_another
    return found


@pytest.fixture(autouse=True)
def no_process_is_left():
    yield
    assert running() == 0


@pytest.mark.parametrize(
    ("protocol", "behavior"), [("gtp", "good"), ("gtp", "numbers"), ("gtp", "slow"), ("line", "good")]
)
def test_games_are_played_to_the_end(protocol, behavior):
    result = against_random(player(protocol, behavior), 4)
    assert result.forfeits == (None,) * 4
    for number, actions in enumerate(result.actions):
        # Its first move is the first square that is free; it moves first in even games.
        opponent = actions[0] if number % 2 else -1
        assert actions[number % 2] == (1 if opponent == 0 else 0)
        assert len(set(actions)) == len(actions)


def test_openings_are_sent_and_many_games_are_played_side_by_side():
    results = [against_random(player("line", "good", processes=processes), 8, opening_plies=2) for processes in (1, 3)]
    for result in results:
        assert result.forfeits == (None,) * 8
        assert all(len(set(actions)) == len(actions) for actions in result.actions)
    assert [actions[:2] for actions in results[0].actions] == [actions[:2] for actions in results[1].actions]


def test_the_start_is_sent_by_protocols_that_can(positions_of):
    starts = positions_of(TICTACTOE, "XX_OO____")
    result = against_random(player("line", "good"), start_states=starts)
    # X to move: the program takes the first free square, which wins; in the other game random moves first.
    assert result.actions[0] == (2,)
    assert result.rewards[0] == 1
    with pytest.raises(InputError, match="program cannot play this game: gtp has no command to begin at the position"):
        against_random(player("gtp", "good"), start_states=starts)


def test_opentafls_protocol_plays_brandub(tmp_path):
    log, brandub = tmp_path / "log.txt", make("brandub", max_plies=2)
    result = play_match(
        brandub, player("opentafl", str(log)), random_player(brandub), 2, jax.random.key(0), opening_plies=0
    )
    assert result.forfeits[0] is None
    assert brandub.action_to_text(brandub.init(jax.random.key(0)), result.actions[0][0]) == "d7-e7"
    # In the second game the opponent moved first, and the program moves a piece of the opponent.
    rules, *first = log.read_text().splitlines()
    assert rules == "rules dim:7 surf:n atkf:y ks:c cens: cenhe:tcnkmTCNKM start:/3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3/"
    assert first[:2] == ["start", "play attackers"]
    assert first[2:4] == [rules, "start"]
    states, _ = records_of(brandub, result)[1].replay()
    move = records_of(brandub, result)[1].moves[0]
    # Records begin with the first rank, which our text ends with.
    rows = brandub.to_text(states[1]).split()[0].split("/")
    assert first[4] == f"opponent-move {move} /{'/'.join(rows[::-1])}/"
    assert first[5] == "play defenders"
    assert result.forfeits[1] == "illegal move: 'e7-d7'"


def test_opentafl_is_told_the_side_to_move_of_a_position_and_never_its_own(tmp_path, positions_of):
    log, brandub = tmp_path / "log.txt", make("brandub", max_plies=2)
    starts = positions_of(brandub, "3t3/3t3/3T3/ttTKT1t/3T2t/3t3/3t3 d")
    play_match(brandub, player("opentafl", str(log)), random_player(brandub), 2, jax.random.key(0), start_states=starts)
    lines = [line for line in log.read_text().splitlines() if not line.startswith(("rules", "opponent-move"))]
    position = "position /3t3/3t3/3T2t/ttTKT1t/3T3/3t3/3t3/"
    # The program plays the attackers in the first game, which the defenders begin.
    assert lines[:4] == [position, "side defenders", "start", "play attackers"]
    assert lines[4:8] == [position, "side defenders", "start", "play defenders"]


def test_santorini_ais_protocol_plays_positions(tmp_path, positions_of):
    game = make("santorini", size=5, workers=2)
    # Player 0 wins from a5 to b5, player 1 from e5 to d5; e1 has the sixth block.
    start = "23032" + "0" * 19 + "2" + "0040" + "0434"
    position = "2303200000000000000000002/1/mortal:A5,A1/mortal:E5,E2"
    answers, log = tmp_path / "answers.json", tmp_path / "log.txt"
    answers.write_text(json.dumps({position: "2303200000000000000000002/2/mortal#:B5,A1/mortal:E5,E2"}))
    program = Path(__file__).parents[1] / "santorini_engine.py"
    command = shlex.join([sys.executable, str(program), str(answers), str(log)])
    player = ExternalPlayer("program", "santorini", command, seconds=0.2)
    result = play_match(game, player, random_player(game), 2, jax.random.key(1), start_states=positions_of(game, start))
    assert log.read_text().splitlines()[:3] == ["ping", f"set_position {position}", "stop"]
    assert result.rewards[0] == 1
    assert records_of(game, result)[0].moves == ("a5-b5^a5",)
    # In the second game it moves after the opponent, in a position that it has no answer for.
    second = log.read_text().splitlines()[3]
    assert re.fullmatch(r"set_position [0-4]{25}/2/mortal:[A-E][1-5],[A-E][1-5]/mortal:E5,E2", second)
    assert result.forfeits == (None, "silence: no move within 0.2 s")


@pytest.mark.parametrize("processes", [1, 2])
def test_an_interrupt_does_not_wait_for_an_answer(processes):
    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 2.0)
    try:
        with pytest.raises(KeyboardInterrupt):
            against_random(player("gtp", "silent", seconds=500, processes=processes))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_the_moves_of_santorini_ai_are_read_from_its_next_positions():
    start = "0" * 25 + "1133" + "1331"
    before = "0" * 25 + "/1/mortal:B4,D2/mortal:D4,B2"
    assert santorini_record(start) == before
    following = "0" * 6 + "1" + "0" * 18 + "/2/mortal:C3,D2/mortal:B2,D4"
    assert santorini_move(start, following) == "b4-c3^b4"
    for illegal in ("0" * 25 + "/2/mortal:C3,C2/mortal:B2,D4", "nothing", "1" * 25 + "/2/mortal:C3,D2/mortal:B2,D4"):
        assert santorini_move(start, illegal) == illegal


def test_santorini_ais_protocol_is_for_its_board_alone():
    player = ExternalPlayer("program", "santorini", "cat")
    for options in ({"size": 3}, {"size": 5, "workers": 2, "placement": True}):
        game = make("santorini", **options)
        with pytest.raises(InputError, match="for santorini with size 5, workers 2 and no placement, got Santorini"):
            play_match(game, player, random_player(game), 2, jax.random.key(0))


@pytest.mark.parametrize("protocol", ["gtp", "line"])
@pytest.mark.parametrize(
    ("behavior", "reason"),
    [
        ("silent", "silence: no answer within 0.5 s"),
        ("crash", "crash: it ended with exit code 3; its last error: that was all"),
        ("illegal", "illegal move: 'z9'"),
        ("empty", "illegal move: ''"),
        ("binary", "illegal move: "),
        ("resign", "illegal move: 'resign'"),
        ("flood", "flood: 10,000 lines without an answer"),
        ("long", "flood: a line of more than 64 kB"),
    ],
)
def test_a_fault_of_the_program_loses_the_game(protocol, behavior, reason):
    if (protocol, behavior) == ("gtp", "flood"):
        pytest.skip("the same reading as of `line`")
    if (protocol, behavior) == ("gtp", "resign"):
        pytest.skip("there it is no move, but an answer of its own")
    began = time.monotonic()
    result = against_random(player(protocol, behavior, after=1, seconds=0.5 if behavior == "silent" else 10.0))
    assert result.rewards == (-1, -1)
    assert [forfeit.startswith(reason) for forfeit in result.forfeits] == [True, True]
    # Its first move counts, and each game was played by a new process.
    assert [len(actions) for actions in result.actions] == [2, 3]
    assert time.monotonic() - began < 60
    records = records_of(TICTACTOE, result)
    assert [record.rewards for record in records] == [(-1.0, 1.0), (1.0, -1.0)]
    assert records[0].end.startswith(reason)
    assert type(records[0]).from_json(records[0].to_json()) == records[0]


@pytest.mark.parametrize("protocol", ["gtp", "line"])
def test_a_program_may_resign_which_is_a_loss_and_no_forfeit(protocol):
    result = against_random(player(protocol, "resigns", after=1))
    assert result.rewards == (-1, -1)
    assert [len(actions) for actions in result.actions] == [2, 3]
    assert result.ends == ("resignation",) * 2
    assert (result.forfeits, result.num_forfeits) == ((None, None), 0)
    assert result.played_out == Record(0, 0, 2)
    assert pairings_of([result]) == [("program", "random", Record(0, 0, 1)), ("random", "program", Record(1, 0, 0))]
    records = records_of(TICTACTOE, result)
    assert [(record.rewards, record.end) for record in records] == [
        ((-1.0, 1.0), "resignation"),
        ((1.0, -1.0), "resignation"),
    ]
    assert type(records[0]).from_json(records[0].to_json()) == records[0]


def test_a_name_that_is_no_text_is_refused():
    with pytest.raises(InputError, match=r"the name of a program must be printable text, got 'line:\./engine \\udcff'"):
        ExternalPlayer("line:./engine \udcff", "line", "./engine")


def test_a_program_that_closes_its_output_or_refuses_a_move_loses():
    result = against_random(player("line", "deaf"))
    assert result.forfeits == ("crash: it closed its output",) * 2
    result = against_random(player("line", "refuse"))
    assert result.forfeits[1].startswith("refusal of 'play ")
    assert result.rewards[1] == -1


def test_a_program_that_cannot_play_at_all_is_an_error(monkeypatch):
    monkeypatch.setattr(external_module, "_SECONDS_TO_START", 0.5)
    for bad, message in [
        (player("line", "unfit"), "program cannot play tictactoe: refusal of 'azjax 1': only chess here"),
        (player("gtp", "unfit", seconds=0.1), "program cannot play tictactoe: silence: no answer within 0.5 s"),
        (ExternalPlayer("x", "gtp", "/no/such/program"), "'/no/such/program' could not be started: No such file"),
        (ExternalPlayer("x", "gtp", ""), "could not be started: there is no command"),
        (ExternalPlayer("x", "gtp", "'"), "could not be started: No closing quotation"),
        (
            ExternalPlayer("x", "opentafl", "cat"),
            "x cannot play tictactoe: opentafl is for brandub, ard_ri, tablut, tawlbwrdd, hnefatafl by their default "
            "rules, not for tictactoe",
        ),
    ]:
        with pytest.raises(InputError, match=message):
            against_random(bad)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"protocol": "uci"}, "unknown protocol 'uci'; available: gtp, opentafl, santorini, line"),
        ({"seconds": 0.0}, "seconds must be above 0, got 0.0"),
        ({"seconds": float("inf")}, "seconds must be at most 1,000,000, got inf"),
        ({"processes": 0}, "processes must be at least 1, got 0"),
    ],
)
def test_options_out_of_range_are_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        ExternalPlayer(**{"name": "x", "protocol": "gtp", "command": "cat"} | fields)


def test_closing_ends_the_child_processes_of_a_program():
    nap = f"600.{os.getpid()}"
    command = shlex.join(["sh", "-c", f"sleep {nap} & exec {sys.executable} {PROGRAM} line silent"])
    result = against_random(ExternalPlayer("x", "line", command, seconds=0.5))
    assert result.rewards == (-1, -1)
    assert running(nap) == 0


def _ends(call) -> bool:
    """Whether a call that might hang returns."""
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(timeout=30)
    return not thread.is_alive()


def test_a_child_that_holds_the_output_open_does_not_hold_the_match():
    child = (
        "import subprocess, sys; subprocess.Popen(['sleep', '61'], start_new_session=True); print('there', flush=True)"
    )
    engine = EngineProcess(shlex.join([sys.executable, "-c", child]), seconds=1.0)
    assert engine.answer(20.0).line() == "there"
    try:
        assert _ends(engine.close)
    finally:
        subprocess.run(["pkill", "-f", "sleep 61"], check=False)


def test_a_program_that_does_not_read_is_silent_and_can_be_closed():
    engine = EngineProcess(shlex.join([sys.executable, "-c", "import time; time.sleep(600)"]), seconds=0.1)
    with pytest.raises(EngineError, match=r"silence: it did not read for 0\.1 s"):
        engine.send("x" * 1_000_000)
    assert _ends(lambda: engine.close("quit"))


def test_lines_arrive_whole_however_they_are_written():
    parts = ["a", "b\nc", "d\n", "\n", "last"]
    code = f"import sys, time\nfor part in {parts}:\n    sys.stdout.write(part); sys.stdout.flush(); time.sleep(0.05)"
    engine = EngineProcess(shlex.join([sys.executable, "-c", code]), seconds=1.0)
    answer = engine.answer(20.0)
    assert [answer.line() for _ in range(4)] == ["ab", "cd", "", "last"]
    with pytest.raises(EngineError, match=r"crash: it ended with exit code 0; its last line: last$"):
        answer.line()
    engine.close()


def test_a_sequential_test_takes_no_forfeit_for_a_loss():
    match = against_random(player("line", "illegal"), 16, sequential_test=SequentialTest(0.0, 400.0))
    assert match.num_forfeits == match.games == 16
    assert match.accepted is None
