"""The analysis engine, as a program talks to it."""

import io
import json
import queue
import random
import subprocess
import sys
import threading
from pathlib import Path

import jax.numpy as jnp
import pytest

from azjax.core.errors import InputError
from azjax.games.registry import make
from azjax.play import analysis
from azjax.play.analysis import MAX_QUERY, AnalysisEngine
from azjax.play.search_pool import SearchPool
from azjax.search import AlphaZero, evaluators

GAME = make("tictactoe")
AZJAX = str(Path(sys.executable).with_name("azjax"))
WON = ["b2", "b1", "a1", "c3", "a3"]  # X wins with a2 or c1; it is O's turn, who stops one of the two only


@pytest.fixture(scope="module")
def pool():
    started = SearchPool(AlphaZero(GAME, evaluators.uniform(GAME), 16), max_simulations=512)
    started.start()
    yield started
    started.close()


@pytest.fixture
def engine(pool):
    return AnalysisEngine("even", pool, num_simulations=64)


def ask(engine, *queries):
    """The answers to queries, which may be lines or dictionaries."""
    output = io.StringIO()
    engine.serve([query if isinstance(query, str) else json.dumps(query) for query in queries], output)
    return [json.loads(line) for line in output.getvalue().splitlines()]


def test_a_won_position_is_proven_with_its_line(engine):
    (answer,) = ask(engine, {"id": "x", "moves": [*WON, "a2"], "maxVisits": 512})
    assert (answer["id"], answer["turnNumber"], answer["isDuringSearch"]) == ("x", 6, False)
    root = {key: answer["rootInfo"][key] for key in ("currentPlayer", "utility", "winrate", "isProven")}
    assert root == {"currentPlayer": "B", "utility": 1, "winrate": 1, "isProven": True}
    best = answer["moveInfos"][0]
    assert (best["move"], best["order"], best["pv"], best["isProven"]) == ("c1", 0, ["c1"], True)


def test_every_turn_is_analyzed_for_its_player_to_move(engine):
    query = {
        "id": "x",
        "moves": [*WON, "a2", "c1"],
        "analyzeTurns": [7, 5, 6],
        "maxVisits": 512,
        "includePVVisits": True,
    }
    answers = {answer["turnNumber"]: answer for answer in ask(engine, query)}
    assert sorted(answers) == [5, 6, 7]
    assert [answers[turn]["rootInfo"]["utility"] for turn in (5, 6, 7)] == [-1, 1, -1]
    assert [answers[turn]["rootInfo"]["currentPlayer"] for turn in (5, 6, 7)] == ["W", "B", "W"]
    assert answers[7]["moveInfos"] == []
    assert answers[7]["rootInfo"]["visits"] == 0
    for info in answers[5]["moveInfos"]:
        assert len(info["pvVisits"]) == len(info["pv"])
        assert info["pvVisits"][0] == info["visits"]
        assert info["pv"][0] == info["move"]
    assert len(answers[5]["moveInfos"][0]["pv"]) == 2  # one move stops one threat, the other one wins


def test_visits_add_up_and_priors_are_those_of_the_search(engine):
    (answer,) = ask(engine, {"id": "x"})
    infos = answer["moveInfos"]
    assert {info["move"] for info in infos} == {column + row for column in "abc" for row in "123"}
    assert all(info["prior"] == pytest.approx(1 / 9, abs=1e-6) for info in infos)
    # The first of the 64 simulations evaluates the position itself.
    assert answer["rootInfo"]["visits"] == 64
    assert sum(info["visits"] for info in infos) in (63, 64)
    assert [info["order"] for info in infos] == list(range(9))
    assert infos[0]["visits"] == max(info["visits"] for info in infos)
    for info in infos:
        assert info["winrate"] == pytest.approx((1 + info["utility"]) / 2, abs=1e-6)


def test_a_position_may_be_given_as_text(engine):
    (answer,) = ask(engine, {"id": "x", "initialPosition": "XX____OO_", "maxVisits": 512})
    assert answer["moveInfos"][0]["move"] == "c3"
    assert answer["rootInfo"]["isProven"]


@pytest.mark.parametrize(
    ("query", "field", "reason"),
    [
        ("nonsense", None, "the line is not JSON"),
        ("[1, 2]", None, "a query must be a JSON object"),
        ("[" * 100_000, None, "nested too deeply"),
        ('{"id": "x", "maxVisits": 1' + "0" * 400 + "}", None, "too large"),
        ({"moves": []}, "id", "id must be a text"),
        ({"id": 7}, "id", "id must be a text"),
        ({"id": "x", "moves": "b2"}, "moves", "moves must be a list of moves"),
        ({"id": "x", "moves": ["b2", "b2"]}, "moves", "move 2: 'b2' is not a legal move here"),
        (
            {"id": "x", "moves": ["a1", "a2", "b1", "b2", "c1", "c2"]},
            "moves",
            "the game ended after 5 moves, and has 6",
        ),
        ({"id": "x", "initialPosition": "?"}, "initialPosition", "tictactoe"),
        ({"id": "x", "initialPosition": 3}, "initialPosition", "must be a position"),
        ({"id": "x", "analyzeTurns": [1]}, "analyzeTurns", "after 0 moves a turn is 0..0, got 1"),
        ({"id": "x", "analyzeTurns": [True]}, "analyzeTurns", "must be a list of whole numbers"),
        ({"id": "x", "maxVisits": 513}, "maxVisits", "maxVisits must be 1..512, got 513"),
        ({"id": "x", "maxVisits": 2.5}, "maxVisits", "must be a whole number"),
        ({"id": "x", "maxTime": 0}, "maxTime", "must be a number of seconds above 0"),
        ('{"id": "x", "maxTime": NaN}', "maxTime", "must be a number of seconds above 0"),
        ({"id": "x", "includePVVisits": 1}, "includePVVisits", "must be true or false"),
        ({"id": "x", "reportDuringSearchEvery": -1}, "reportDuringSearchEvery", "above 0"),
        ({"id": "x", "action": "dance"}, "action", "unknown action 'dance'; available: query_version"),
        ({"id": "x", "action": "terminate"}, "terminateId", "must be the id of a query"),
        ({"id": "x", "action": "terminate_all", "turnNumbers": 3}, "turnNumbers", "list of whole numbers"),
        ({"id": "x", "analyzeTurns": [0, 0]}, "analyzeTurns", "analyzeTurns must be one or more different turns"),
        ({"id": "x", "analyzeTurns": []}, "analyzeTurns", "analyzeTurns must be one or more different turns"),
        (" " * 10 + "x" * MAX_QUERY, None, "a query has at most"),
    ],
)
def test_a_bad_query_is_refused_with_its_field_and_the_next_one_is_answered(engine, query, field, reason):
    refusal, answer = ask(engine, query, {"id": "next", "maxVisits": 16})
    assert reason in refusal["error"]
    assert refusal.get("field") == field
    assert (answer["id"], answer["turnNumber"]) == ("next", 0)


def test_too_many_positions_are_refused_together(engine, monkeypatch):
    monkeypatch.setattr(analysis, "MAX_WAITING", 1)
    refusal, answer = ask(engine, {"id": "x", "moves": ["b2"], "analyzeTurns": [0, 1]}, {"id": "next", "maxVisits": 16})
    assert refusal == {"error": "more than 1 positions are waiting", "id": "x"}
    assert answer["id"] == "next"


@pytest.mark.slow
def test_a_winning_move_of_a_single_visit_is_the_first_of_the_answer():
    """Column 1 wins. Its prior is so low that 256 nodes are visited more often than it."""

    def evaluate(params, key, states):
        prior = jnp.full((len(states.current_player), 7), 1 / 7).at[:, 0].set(1e-4)
        return jnp.log(prior), jnp.zeros(len(states.current_player))

    game = make("connect_four")
    pool = SearchPool(AlphaZero(game, evaluate, 16), max_simulations=4096)
    pool.start()
    (answer,) = ask(AnalysisEngine("skewed", pool, num_simulations=4096), {"id": "x", "moves": list("121213")})
    pool.close()
    assert answer["rootInfo"]["isProven"]
    assert answer["rootInfo"]["visits"] > 256
    best, *others = answer["moveInfos"]
    assert (best["move"], best["utility"], best["isProven"], best["pv"]) == ("1", 1, True, ["1"])
    assert len(others) == 6


def test_unknown_fields_are_told_and_ignored(engine):
    warning, answer = ask(engine, {"id": "x", "komi": 7.5, "maxVisits": 16})
    assert warning == {"warning": "unknown field", "field": "komi", "id": "x"}
    assert answer["rootInfo"]["visits"] == 16


def test_it_names_itself(engine):
    version, models = ask(engine, {"id": "1", "action": "query_version"}, {"id": "2", "action": "query_models"})
    assert version["id"] == "1"
    assert version["version"].count(".") == 2
    assert models["models"] == [{"name": "even", "game": "tictactoe"}]


class _Conversation(io.TextIOBase):
    """An engine in a thread, and what it has answered so far."""

    def __init__(self, engine):
        self._lines, self.answers = queue.SimpleQueue(), queue.SimpleQueue()
        self._thread = threading.Thread(target=engine.serve, args=(iter(self._lines.get, None), self))
        self._thread.start()

    def say(self, query):
        self._lines.put(query if query is None else json.dumps(query))

    def write(self, line):
        self.answers.put(json.loads(line))

    def flush(self):
        pass

    def hear(self):
        return self.answers.get(timeout=60)

    def end(self):
        self.say(None)
        self._thread.join(60)
        assert not self._thread.is_alive()


@pytest.fixture(scope="module")
def endless():
    """A pool whose searches end by a proof long after any test."""
    game = make("connect_four")
    started = SearchPool(AlphaZero(game, evaluators.uniform(game), 16), max_simulations=50_000)
    started.start()
    yield started
    started.close()


def test_searches_report_while_they_run_and_can_be_terminated(endless):
    conversation = _Conversation(AnalysisEngine("even", endless, num_simulations=50_000))
    conversation.say({"id": "long", "analyzeTurns": [0, 1], "moves": ["4"], "reportDuringSearchEvery": 0.01})
    first = conversation.hear()
    assert first["isDuringSearch"]
    assert first["rootInfo"]["visits"] < 50_000
    conversation.say({"id": "stop", "action": "terminate", "terminateId": "long", "turnNumbers": [0]})
    while not (answer := conversation.hear()).get("noResults"):
        pass
    assert answer == {"id": "long", "turnNumber": 0, "isDuringSearch": False, "noResults": True}
    assert conversation.hear()["action"] == "terminate"
    while (answer := conversation.hear())["turnNumber"] != 1:
        pass
    assert answer["isDuringSearch"]
    conversation.say({"id": "all", "action": "terminate_all"})
    while not (answer := conversation.hear()).get("noResults"):
        pass
    assert answer["turnNumber"] == 1
    conversation.end()


def test_a_search_ends_with_its_time(endless):
    (answer,) = ask(AnalysisEngine("even", endless, num_simulations=50_000, seconds=0.05), {"id": "x"})
    assert not answer["isDuringSearch"]
    assert 16 <= answer["rootInfo"]["visits"] < 50_000


def test_the_failure_of_a_search_is_an_answer_and_an_error_in_the_end():
    pool = SearchPool(AlphaZero(GAME, lambda *_: 1 / 0, 16), max_simulations=64)
    pool.start()
    output = io.StringIO()
    with pytest.raises(InputError, match=r"searches failed: .*division by zero"):
        AnalysisEngine("broken", pool, num_simulations=16).serve(['{"id": "x"}', '{"id": "y"}'], output)
    pool.close()
    first, second = map(json.loads, output.getvalue().splitlines())
    assert [first["id"], second["id"]] == ["x", "y"]
    assert "division by zero" in first["error"]


def _random_query(source, number):
    moves = source.sample([column + row for column in "abc" for row in "123"], source.randrange(4))
    fields = {
        "moves": [moves, "b2", [1], [*moves, "z9"], {}],
        "analyzeTurns": [[0], [0, len(moves)], [-1], [99], "0", [], [2**40], [0] * 5],
        "maxVisits": [1, 16, 40, 0, -5, None, 1e300, 10**18],
        "maxTime": [0.001, 5, 0, None, "1", -1e9],
        "initialPosition": ["____X___O", "XXX____OO", "", "XO", 3, "\x00", "X" * 1000],
        "includePVVisits": [True, False, 1, None],
        "reportDuringSearchEvery": [0.001, 100, 0, "x"],
        "colour": ["blue"],
    }
    chosen = source.sample(sorted(fields), source.randrange(5))
    return {"id": str(number), **{name: source.choice(fields[name]) for name in chosen}}


def _fuzz(engine, count):
    """Each query gets one final answer for each of its turns, or one error."""
    source = random.Random(0)
    queries = {str(number): _random_query(source, number) for number in range(count)}
    lines = [json.dumps(query) for query in queries.values()]
    damaged = [line[: source.randrange(1, len(line))] for line in lines]
    answers = ask(engine, *[line for both in zip(lines, damaged, strict=True) for line in both])
    final = {number: 0 for number in queries}
    for answer in answers:
        if "id" not in answer:
            assert "error" in answer
        elif "warning" not in answer and not answer.get("isDuringSearch"):
            final[answer["id"]] += 1
            if "error" not in answer:
                assert -1 <= answer["rootInfo"]["utility"] <= 1
    refused = {answer["id"] for answer in answers if "id" in answer and "error" in answer}
    for number, query in queries.items():
        assert final[number] == (1 if number in refused else len(query.get("analyzeTurns", [0]))), query


def test_random_queries_are_answered_or_refused(engine):
    _fuzz(engine, 300)


@pytest.mark.slow
def test_ten_thousand_random_queries_are_answered_or_refused(engine, tries):
    """Each goes whole and cut."""
    _fuzz(engine, tries(20_000) // 2)


@pytest.mark.slow
def test_the_command_answers_until_the_end_of_its_input():
    lines = '{"id": "x", "moves": ["b2"], "analyzeTurns": [0, 1]}\n\n{"id": "é", "action": "query_version"}\n'
    command = [AZJAX, "gtp", "tictactoe", "--protocol", "json", "--num-simulations", "32"]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=300)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, done.stderr
    assert sorted(answer["id"] for answer in answers) == ["x", "x", "é"]
    assert done.stderr == ""


@pytest.mark.slow
def test_options_that_its_searches_do_not_have_are_refused():
    command = [AZJAX, "gtp", "tictactoe", "--protocol", "json", "--policy", "uct"]
    done = subprocess.run(command, input="", capture_output=True, text=True, timeout=300)
    assert done.returncode != 0
    assert done.stdout == ""
    assert "json goes without --policy and --seed" in done.stderr
