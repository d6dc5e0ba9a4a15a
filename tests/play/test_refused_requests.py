"""Malformed and hostile requests to the server of the page."""

import asyncio
import gc
import json
import random
import tracemalloc

import pytest
from starlette.testclient import TestClient

from azjax.evaluation import GameRecord, game_record
from azjax.games.registry import make
from azjax.play import server
from azjax.play.server import MAX_BODY, make_app

GAME = make("tictactoe")
ADDRESS = "http://127.0.0.1:8000"


@pytest.mark.parametrize("pieces", [None, 3, [3], [[0]], [[9, 1]], [[0, 3]], [[-1, 1]], [[True, 1]], [[0, 1]] * 1025])
def test_malformed_pieces_are_refused(client, pieces):
    response = client.post("/edit", json={"pieces": pieces})
    assert response.status_code == 400
    assert response.json()["error"] == "pieces must be at most 1024 pairs of a square and a piece"


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
        ("analyze", {"simulations": 999999}, "num_simulations must be 1..64, got 999999"),
        ("analyze", {"seconds": -1}, "seconds must be above 0, got -1"),
        ("think", {"start": "XXX_OO___", "level": "easy"}, "the game is over"),
        ("think", {"level": "best"}, "unknown level 'best'; available: easy, search"),
        ("record", {"players": ["me"]}, "players must be two names"),
        ("record", {"actions": [4], "opening_plies": 2}, "opening_plies must be 0..1, the number of moves, got 2"),
        ("setup", {}, "text must be a position"),
        ("load", {"line": "{}"}, "no game record"),
        ("load", {"line": 1}, "line must be a game as a line of JSON"),
        (
            "load",
            {"line": GameRecord(make("connect2"), ("a", "b"), ("b1",), None).to_json()},
            "that is a game of connect2 by the options {}, not of Mnk(",
        ),
    ],
)
def test_a_bad_question_is_refused_with_the_reason(client, path, body, reason):
    response = client.post(f"/{path}", json=body)
    assert response.status_code == 400
    assert reason in response.json()["error"]
    assert "Traceback" not in response.text


def test_requests_from_other_sites_are_refused(client):
    ask = {"json": {}}
    assert client.post("/position", **ask).status_code == 200
    assert client.post("/position", headers={"Host": "evil.example:8000"}, **ask).status_code == 400
    assert client.get("/", headers={"Host": "evil.example"}).status_code == 400
    assert client.post("/position", headers={"Origin": "http://evil.example"}, **ask).status_code == 403
    assert client.post("/position", headers={"Origin": "null"}, **ask).status_code == 403
    assert client.post("/position", headers={"Origin": ADDRESS}, **ask).status_code == 200
    assert client.post("/position", content="{}", headers={"Content-Type": "text/plain"}).status_code == 415


def test_a_host_may_be_named_in_capitals(session):
    client = TestClient(make_app(session, ("MyPC",)), base_url="http://mypc:8000")
    for host in ("mypc:8000", "MyPC:8000"):
        assert client.get("/", headers={"Host": host, "Origin": f"http://{host}"}).status_code == 200
    assert client.get("/", headers={"Host": "mypc.evil.example"}).status_code == 400


def test_numeric_addresses_are_accepted_when_the_server_listens_to_all(session):
    for any_number, status in ((True, 200), (False, 400)):
        client = TestClient(make_app(session, any_number=any_number), base_url="http://192.168.1.7:8000")
        assert client.get("/").status_code == status
        assert client.get("/", headers={"Host": "evil.example"}).status_code == 400


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


def test_a_game_that_the_page_does_not_play_is_not_made(client, monkeypatch):
    line = GameRecord(GAME, ("a", "b"), ("b2",), None).to_json()
    monkeypatch.setattr(game_record, "make", lambda name, **options: pytest.fail(f"made {name} {options}"))
    for other in (line.replace("tictactoe", "pgx:chess"), line.replace('"options": {}', '"options": {"columns": 99}')):
        response = client.post("/load", json={"line": other})
        assert response.status_code == 400
        assert "that is a game of " in response.json()["error"]


async def post_in_parts(app, *, leaves):
    """The answer to a body of which one part comes, and then nothing or the end of the connection."""
    headers = [(b"host", b"127.0.0.1:8000"), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": "/setup", "query_string": b"", "headers": headers}
    parts, sent = [{"type": "http.request", "body": b"{", "more_body": True}], []

    async def receive():
        if parts:
            return parts.pop()
        await asyncio.sleep(0 if leaves else 600)
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    await app(scope, receive, send)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent)


def test_a_body_that_trickles_in_is_refused(client, monkeypatch):
    monkeypatch.setattr(server, "BODY_SECONDS", 0.05)
    status, body = asyncio.run(post_in_parts(client.app, leaves=False))
    assert (status, json.loads(body)) == (408, {"error": "the body must be there within 0.05 s"})


def test_a_visitor_who_leaves_in_the_middle_of_a_body_is_no_error(client):
    assert asyncio.run(post_in_parts(client.app, leaves=True)) == (499, b"")


def _random_question(source):
    """A question, mostly malformed."""
    values = [None, True, -1, 4, 10**30, 0.5, "", "X___O____", "search", "easy", [], [4], [4, 0, 8], [[]], {}, {"a": 1}]
    values += [[[4, 1]], [[9, 0]], 1]
    names = ["start", "actions", "level", "simulations", "seconds", "text", "line", "players", "pieces", "mover"]
    names += ["opening_plies"]
    return {name: source.choice(values) for name in source.sample(names, source.randrange(len(names)))}


def _fuzz(client, count, seed=0):
    source = random.Random(seed)
    for _ in range(count):
        path = source.choice(["position", "think", "analyze", "setup", "edit", "record", "load", "game", "", "x/y"])
        body = json.dumps(_random_question(source)).encode()
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
def test_ten_thousand_random_questions_are_answered_or_refused_in_the_same_memory(client, tries):
    half = tries(10_000) // 2
    _fuzz(client, half)
    gc.collect()
    tracemalloc.start()
    _fuzz(client, half, seed=1)
    gc.collect()
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 2_000_000
