"""The server of the page, asked as the page asks it, and as nobody should."""

import gc
import json
import random
import socket
import threading
import tracemalloc

import jax
import numpy as np
import pytest
from rich.console import Console
from starlette.testclient import TestClient

from azjax.agents import load_mind
from azjax.evaluation import GameRecord, optimal_player, random_player, solve
from azjax.games.game import Game
from azjax.games.protocols import action_from_text
from azjax.games.registry import make
from azjax.play import server
from azjax.play.server import MAX_BODY, make_app, serve
from azjax.play.table import Table
from azjax.play.thinking import Thinker
from azjax.search import evaluators

GAME = make("tictactoe")
ADDRESS = "http://127.0.0.1:8000"


@pytest.fixture(scope="module")
def table():
    thinker = Thinker(GAME, evaluators.rollout(GAME), max_simulations=64)
    thinker.start()
    exact = optimal_player(solve(GAME))
    yield Table(GAME, "somebody", thinker, {"easy": random_player(GAME)}, exact)
    thinker.close()


@pytest.fixture
def client(table):
    with TestClient(make_app(table), base_url=ADDRESS, raise_server_exceptions=False) as client:
        yield client


def actions(moves):
    state, found = GAME.init(jax.random.key(0)), []
    for move in moves.split():
        found.append(action_from_text(GAME, state, move))
        state = GAME.step(state, np.int32(found[-1]))
    return found


def lines(response):
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in response.text.splitlines()]


def test_the_page_asks_nobody_else(client):
    response = client.get("/")
    assert response.status_code == 200
    assert "default-src 'none'" in response.headers["content-security-policy"]
    for outside in ("http://", "https://", "//cdn", "@import", "src="):
        assert outside not in response.text


def test_the_game_is_told(client):
    told = client.get("/game").json()
    assert told == {
        "game": "tictactoe",
        "agent": "somebody",
        "players": ["X", "O"],
        "levels": ["easy", "search"],
        "most": 64,
        "simulations": 64,
        "pieces": ["nothing", "X", "O"],
        "exact": True,
    }


def test_a_position_is_told(client):
    told = client.post("/position", json={"actions": actions("b2 a1")}).json()
    assert told["text"] == "____X_O__"
    assert told["moves"] == ["b2", "a1"]
    assert told["movers"] == [0, 1, 0]
    assert not told["over"]
    assert [each["move"] for each in told["legal"]] == ["a3", "b3", "c3", "a2", "c2", "b1", "c1"]
    assert told["legal"][0] == {"action": 0, "move": "a3", "squares": [0]}
    assert told["svg"].startswith("<svg")
    assert 'data-columns="3"' in told["svg"]
    over = client.post("/position", json={"actions": actions("b2 a1 c1 a2 a3")}).json()
    assert (over["over"], over["legal"], over["rewards"]) == (True, [], [1, -1])


def test_the_moves_of_a_board_are_those_of_its_notation(client):
    """`a1` is at the bottom left, whatever the numbers of the squares are."""
    told = client.post("/position", json={}).json()
    svg = told["svg"]
    assert 'data-rows="3"' in svg
    for each in told["legal"]:
        row, column = divmod(each["squares"][0], 3)
        assert each["move"] == GAME.action_to_text(None, each["action"])
        assert each["action"] == 3 * row + column


def test_a_search_is_told_as_it_goes_on(client):
    told = lines(client.post("/think", json={"actions": actions("b2"), "level": "search", "simulations": 64}))
    assert told[-1]["last"]
    assert told[-1]["simulations"] == 64
    assert sum(each["share"] for each in told[-1]["policy"]) == pytest.approx(1, abs=1e-5)
    assert told[-1]["tree"]["visits"] == 65
    assert told[-1]["variation"][0] == told[-1]["policy"][0]["move"]
    assert [each["simulations"] for each in told] == sorted(each["simulations"] for each in told)


def test_who_moves_at_once_is_told_in_one_line(client):
    (told,) = lines(client.post("/think", json={"actions": [], "level": "easy"}))
    assert told["value"] is None  # random play expects nothing
    assert 0 <= told["action"] < 9


def test_what_each_move_of_a_solved_game_gave_away_is_exact(client):
    """O answers the middle with an edge, which loses; X makes two threats at once."""
    told = lines(client.post("/analyse", json={"actions": actions("b2 b1 a1 c3 a3"), "simulations": 16}))
    assert [each["value"] for each in told] == [0, 0, 1, -1, 1]
    assert [each["loss"] for each in told] == [0, 1, 0, 0, 0]


def test_a_position_is_set_up_piece_by_piece_and_tells_what_is_wrong_meanwhile(client):
    asked = {"actions": actions("b2 a1"), "pieces": [[0, 1]], "mover": None}
    told = client.post("/edit", json=asked).json()
    assert (told["text"], told["wrong"], told["mover"]) == ("X___X_O__", None, 1)
    assert told["svg"] == GAME.svg(GAME.from_text("X___X_O__"))
    told = client.post("/edit", json={**asked, "pieces": [[0, 1], [8, 1], [4, 0], [4, 1]]}).json()
    assert told["text"] == "X___X_O_X"
    assert told["wrong"] == "tictactoe: 'X___X_O_X' has 3 X and 1 O; X moves first, so 0 or 1 more X"
    assert told["svg"].startswith("<svg")


@pytest.mark.parametrize("pieces", [None, 3, [3], [[0]], [[9, 1]], [[0, 3]], [[-1, 1]], [[True, 1]], [[0, 1]] * 1025])
def test_pieces_that_are_none_are_refused(client, pieces):
    response = client.post("/edit", json={"pieces": pieces})
    assert response.status_code == 400
    assert response.json()["error"] == "pieces must be at most 1024 pairs of a square and a piece"


def test_games_are_saved_and_loaded(client):
    asked = {"actions": actions("b2 a1 c1 a2 a3"), "players": ["me", "you"]}
    line = client.post("/record", json=asked).json()["line"]
    assert GameRecord.from_json(line).players == ("me", "you")
    told = client.post("/load", json={"line": line}).json()
    assert told == {"start": None, "actions": asked["actions"], "players": ["me", "you"]}


def test_a_position_is_set_up_or_refused_with_the_reason(client):
    assert client.post("/setup", json={"text": " X___O____ "}).json() == {"start": "X___O____"}
    start = client.post("/position", json={"start": "X___O____", "actions": [1]}).json()
    assert start["text"] == "XX__O____"
    refused = client.post("/setup", json={"text": "XXX______"})
    assert refused.status_code == 400
    assert "tictactoe" in refused.json()["error"]


@pytest.mark.parametrize(
    ("path", "body", "reason"),
    [
        ("position", {"actions": [9]}, "action 1: 9 is not a legal action there"),
        ("position", {"actions": [4, 4]}, "action 2: 4 is not a legal action there"),
        ("position", {"actions": "b2"}, "actions must be a list of numbers"),
        ("position", {"actions": [True]}, "actions must be a list of numbers"),
        ("position", {"start": 3}, "start must be a position or null"),
        ("position", {"start": "nonsense"}, "tictactoe"),
        ("position", [], "the body must be a JSON object"),
        ("think", {"level": "search", "simulations": 65}, "num_simulations must be 1..64, got 65"),
        ("think", {"level": "search", "simulations": "all"}, "simulations and seconds must be numbers"),
        ("think", {"level": "search", "seconds": 0}, "seconds must be above 0, got 0"),
        ("think", {"start": "XXX_OO___", "level": "easy"}, "the game is over"),
        ("think", {"level": "best"}, "unknown level 'best'; available: easy, search"),
        ("record", {"players": ["me"]}, "players must be two names"),
        ("setup", {}, "text must be a position"),
        ("load", {"line": "{}"}, "no game record"),
        ("load", {"line": 1}, "line must be a game as a line of JSON"),
        (
            "load",
            {"line": GameRecord(make("connect2"), ("a", "b"), ("b1",), None).to_json()},
            "and this page plays",
        ),
    ],
)
def test_a_bad_question_is_refused_with_the_reason(client, path, body, reason):
    response = client.post(f"/{path}", json=body)
    assert response.status_code == 400
    assert reason in response.json()["error"]
    assert "Traceback" not in response.text


def test_who_comes_from_elsewhere_is_turned_away(client):
    ask = {"json": {}}
    assert client.post("/position", **ask).status_code == 200
    assert client.post("/position", headers={"Host": "evil.example:8000"}, **ask).status_code == 400
    assert client.get("/", headers={"Host": "evil.example"}).status_code == 400
    assert client.post("/position", headers={"Origin": "http://evil.example"}, **ask).status_code == 403
    assert client.post("/position", headers={"Origin": "null"}, **ask).status_code == 403
    assert client.post("/position", headers={"Origin": ADDRESS}, **ask).status_code == 200
    assert client.post("/position", content="{}", headers={"Content-Type": "text/plain"}).status_code == 415


def test_numeric_addresses_are_known_where_all_are_listened_to(table):
    for any_number, status in ((True, 200), (False, 400)):
        client = TestClient(make_app(table, any_number=any_number), base_url="http://192.168.1.7:8000")
        assert client.get("/game").status_code == status
        assert client.get("/game", headers={"Host": "evil.example"}).status_code == 400


@pytest.mark.parametrize("path", ["/nothing", "/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/page.html", "/game/"])
def test_unknown_paths_are_not_found(client, path):
    response = client.get(path, follow_redirects=False)
    assert response.status_code in (404, 307)
    assert "root:" not in response.text


def test_a_large_body_is_refused(client):
    exactly = json.dumps({"text": "X" * (MAX_BODY - 12)})
    assert len(exactly) == MAX_BODY
    headers = {"Content-Type": "application/json"}
    assert client.post("/setup", content=exactly, headers=headers).status_code == 400
    response = client.post("/setup", content=exactly + " ", headers=headers)
    assert response.status_code == 413
    assert f"{MAX_BODY:,} bytes" in response.json()["error"]


def test_one_search_too_many_ends_the_oldest(monkeypatch):
    """Searches wait for a thinker that has not begun."""
    monkeypatch.setattr(server, "MAX_SESSIONS", 2)
    thinker = Thinker(GAME, evaluators.rollout(GAME), max_simulations=64)
    table = Table(GAME, "somebody", thinker, {})
    told, ended = {}, []

    def ask(client, number):
        told[number] = client.post("/think", json={"level": "search", "simulations": 16}).text
        ended.append(number)

    with TestClient(make_app(table), base_url=ADDRESS) as client:
        threads = [threading.Thread(target=ask, args=(client, number)) for number in range(3)]
        for number, thread in enumerate(threads):
            thread.start()
            while len(thinker._waiting) < number + 1:
                threading.Event().wait(0.01)
        while not ended:
            threading.Event().wait(0.01)
        assert ended == [0]
        assert "closed: too many" in told[0]
        thinker.start()
        for thread in threads:
            thread.join()
    thinker.close()
    assert all('"last": true' in told[number] for number in (1, 2))


def _something(source):
    """Whatever might come: near a question, or far from it."""
    values = [None, True, -1, 4, 10**30, 0.5, "", "X___O____", "search", "easy", [], [4], [4, 0, 8], [[]], {}, {"a": 1}]
    values += [[[4, 1]], [[9, 0]], 1]
    names = ["start", "actions", "level", "simulations", "seconds", "text", "line", "players", "pieces", "mover"]
    return {name: source.choice(values) for name in source.sample(names, source.randrange(len(names)))}


def _fuzz(client, count, seed=0):
    source = random.Random(seed)
    for _ in range(count):
        path = source.choice(["position", "think", "analyse", "setup", "edit", "record", "load", "game", "", "x/y"])
        body = json.dumps(_something(source)).encode()
        if source.random() < 0.2:
            at = source.randrange(len(body))
            body = body[:at] + bytes([source.randrange(256)]) + body[at + source.randrange(3) :]
        headers = {"Content-Type": "application/json"}
        response = client.request(
            source.choice(["POST", "POST", "POST", "GET"]), f"/{path}", content=body, headers=headers
        )
        assert response.status_code in (200, 400, 404, 405), (path, body, response.text)
        assert "Traceback" not in response.text
        if response.status_code == 400:
            assert response.json()["error"]


def test_random_questions_are_answered_or_refused(client):
    _fuzz(client, 300)


@pytest.mark.slow
def test_ten_thousand_random_questions_are_answered_or_refused_in_the_same_memory(client):
    _fuzz(client, 5000)
    gc.collect()
    tracemalloc.start()
    _fuzz(client, 5000, seed=1)
    gc.collect()
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 2_000_000


def test_an_address_that_is_taken_is_refused():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port, mind = taken.getsockname()[1], load_mind("random", GAME)
        with pytest.raises(OSError, match=rf"cannot be served at 127\.0\.0\.1, port {port}"):
            serve(GAME, "random", mind, {}, num_simulations=16, host="127.0.0.1", port=port, console=Console())


def test_a_game_without_a_picture_is_refused(monkeypatch):
    monkeypatch.setattr(type(GAME), "svg", Game.svg)
    with pytest.raises(ValueError, match="the page draws the board, and tictactoe has no picture"):
        serve(
            GAME,
            "random",
            load_mind("random", GAME),
            {},
            num_simulations=16,
            host="127.0.0.1",
            port=0,
            console=Console(),
        )
