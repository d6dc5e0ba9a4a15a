"""The server of the page, with the questions of the page."""

import json
import re
import socket
import threading

import jax
import numpy as np
import pytest
from rich.console import Console
from starlette.testclient import TestClient

from azjax.agents import load_search_spec
from azjax.evaluation import GameRecord, random_player
from azjax.games.game import Game
from azjax.games.protocols import action_from_text
from azjax.games.registry import make
from azjax.play import server
from azjax.play.search_pool import SearchPool
from azjax.play.server import make_app, serve
from azjax.play.session import PlaySession
from azjax.render import svg
from azjax.search import AlphaZero, evaluators

GAME = make("tictactoe")
ADDRESS = "http://127.0.0.1:8000"


def actions(moves):
    state, found = GAME.init(jax.random.key(0)), []
    for move in moves.split():
        found.append(action_from_text(GAME, state, move))
        state = GAME.step(state, np.int32(found[-1]))
    return found


def actions_of(before, moves):
    """Alternative moves after others."""
    return [actions(f"{before} {move}")[-1] for move in moves.split()]


def first(client):
    """The game and its start, as the page holds them."""
    return json.loads(re.search(r'id="first">(.*)</script>', client.get("/").text).group(1))


def lines(response):
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in response.text.splitlines()]


def test_the_page_holds_the_start_so_that_it_is_drawn_at_once(client):
    assert first(client)["position"] == client.post("/position", json={}).json()
    assert client.get("/").text.count("<svg") == 2  # the graph and the arrows: that of the start is inside the text


def test_the_page_loads_nothing_from_other_sites(client):
    response = client.get("/")
    assert response.status_code == 200
    assert "default-src 'none'" in response.headers["content-security-policy"]
    for outside in ("http://", "https://", "//cdn", "@import", "src="):
        assert outside not in response.text.replace("http://www.w3.org/2000/svg", "")  # a name, not an address


def test_the_game_is_described(client):
    answer = first(client)["game"]
    assert answer.pop("rules").startswith("X begins.")
    assert answer.pop("notation").startswith("A move is its cell")
    (example,) = answer.pop("examples")
    assert example["shows"] == "X has 3 in a row and wins."
    assert example["svg"].startswith("<svg ")
    assert answer == {
        "game": "tictactoe",
        "options": {},
        "agent": "agent",
        "facts": {"strength": "great"},
        "players": ["X", "O"],
        "levels": ["easy", "search"],
        "most": 64,
        "simulations": 64,
        "board": True,
        "rows_from_top": False,
        "pieces": ["nothing", "X", "O"],
        "book": 0,
    }


def test_a_position_is_described(client):
    answer = client.post("/position", json={"actions": actions("b2 a1")}).json()
    assert answer["text"] == "____X_O__"
    assert answer["moves"] == ["b2", "a1"]
    assert answer["movers"] == [0, 1, 0]
    assert not answer["over"]
    assert [each["move"] for each in answer["legal"]] == ["a3", "b3", "c3", "a2", "c2", "b1", "c1"]
    assert answer["legal"][0] == {"action": 0, "move": "a3", "squares": [0], "exact": 0}
    assert answer["svg"].startswith("<svg")
    assert 'data-columns="3"' in answer["svg"]
    over = client.post("/position", json={"actions": actions("b2 a1 c1 a2 a3")}).json()
    assert (over["over"], over["legal"], over["rewards"]) == (True, [], [1, -1])


def test_every_move_of_a_solved_game_has_its_exact_value(client):
    """After b2, a corner draws and an edge loses; then b2 b1 wins by a corner."""
    answer = client.post("/position", json={"actions": actions("b2")}).json()
    assert {each["move"]: each["exact"] for each in answer["legal"]} == {
        **dict.fromkeys(("a1", "a3", "c1", "c3"), 0),
        **dict.fromkeys(("a2", "b1", "b3", "c2"), -1),
    }
    answer = client.post("/position", json={"actions": actions("b2 b1 a1 c3")}).json()
    assert {each["move"] for each in answer["legal"] if each["exact"] == 1} == {"a3", "a2"}


def test_the_moves_of_a_board_are_those_of_its_notation(client):
    """`a1` is at the bottom left, whatever the numbers of the squares are."""
    answer = client.post("/position", json={}).json()
    assert 'data-rows="3"' in answer["svg"]
    for each in answer["legal"]:
        row, column = divmod(each["squares"][0], 3)
        assert each["move"] == GAME.action_to_text(GAME.init(jax.random.key(0)), each["action"])
        assert each["action"] == 3 * row + column


def test_a_search_sends_updates_while_it_runs(client):
    answer = lines(client.post("/think", json={"actions": actions("b2"), "level": "search", "simulations": 64}))
    assert answer[-1]["last"]
    assert answer[-1]["simulations"] == 64
    assert sum(each["share"] for each in answer[-1]["policy"]) == pytest.approx(1, abs=1e-5)
    assert answer[-1]["tree"]["visits"] == 65
    assert answer[-1]["variation"][0] == answer[-1]["policy"][0]["move"]
    assert [each["simulations"] for each in answer] == sorted(each["simulations"] for each in answer)


def test_a_player_without_search_answers_in_one_line_once_it_is_compiled():
    session = PlaySession(
        GAME, "agent", SearchPool(AlphaZero(GAME, evaluators.rollout(GAME), 16)), {"easy": random_player(GAME)}
    )
    with TestClient(make_app(session), base_url=ADDRESS) as client:
        ask = {"actions": [], "level": "easy"}
        told, first = lines(client.post("/think", json=ask))
        assert told == {"waiting": "The player is being compiled"}
        (answer,) = lines(client.post("/think", json=ask))
    for each in (first, answer):
        assert each["value"] is None  # random play expects nothing
        assert 0 <= each["action"] < 9


def test_the_loss_of_each_move_of_a_solved_game_is_exact(client):
    """O answers the middle with an edge, which loses; X makes two threats at once."""
    answer = lines(client.post("/analyze", json={"actions": actions("b2 b1 a1 c3 a3"), "simulations": 16}))
    assert [each["value"] for each in answer] == [0, 0, 1, -1, 1]
    assert [each["loss"] for each in answer] == [0, 1, 0, 0, 0]
    assert [each["mover"] for each in answer] == [0, 1, 0, 1, 0]
    assert all(each["exact"] for each in answer)
    assert answer[1]["best"] in actions_of("b2", "a1 a3 c1 c3")
    assert answer[4]["best"] in actions_of("b2 b1 a1 c3", "a2 a3")


def test_a_resigned_game_is_saved_and_loaded_with_its_result(client):
    result = {"winner": 1, "end": "resignation"}
    line = client.post("/record", json={"actions": actions("b2 a1"), "result": result}).json()["line"]
    assert (json.loads(line)["rewards"], json.loads(line)["end"]) == ([-1, 1], "resignation")
    assert client.post("/load", json={"line": line}).json()["result"] == result
    over = client.post("/record", json={"actions": actions("b2 b1 a1 c3 a3 c1 a2"), "result": result}).json()["line"]
    assert (json.loads(over)["rewards"], json.loads(over)["end"]) == ([1, -1], None)
    for wrong in (5, {"winner": 2, "end": "x"}, {"winner": 0}, {"winner": 0, "end": 3}):
        assert client.post("/record", json={"actions": [], "result": wrong}).status_code == 400


def test_pieces_are_placed_and_an_impossible_position_is_explained(client):
    asked = {"actions": actions("b2 a1"), "pieces": [[0, 1]], "mover": None}
    answer = client.post("/edit", json=asked).json()
    assert (answer["text"], answer["wrong"], answer["mover"]) == ("X___X_O__", None, 1)
    assert answer["svg"] == svg(GAME, GAME.from_text("X___X_O__"))
    answer = client.post("/edit", json={**asked, "pieces": [[0, 1], [8, 1], [4, 0], [4, 1]]}).json()
    assert answer["text"] == "X___X_O_X"
    assert answer["wrong"] == "tictactoe: 'X___X_O_X' has 3 X and 1 O; X moves first, so 0 or 1 more X"
    assert answer["svg"].startswith("<svg")


def test_games_are_saved_and_loaded(client):
    asked = {"actions": actions("b2 a1 c1 a2 a3"), "players": ["me", "you"]}
    line = client.post("/record", json=asked).json()["line"]
    assert GameRecord.from_json(line).players == ("me", "you")
    answer = client.post("/load", json={"line": line}).json()
    assert answer == {
        "start": None,
        "actions": asked["actions"],
        "result": None,
        "players": ["me", "you"],
        "opening_plies": 0,
    }


def test_a_random_opening_is_saved_and_loaded(client):
    line = client.post("/record", json={"actions": actions("b2 a1 c1"), "opening_plies": 2}).json()["line"]
    assert GameRecord.from_json(line).opening_plies == 2
    assert client.post("/load", json={"line": line}).json()["opening_plies"] == 2


def test_a_position_is_set_up_or_refused_with_the_reason(client):
    assert client.post("/setup", json={"text": " X___O____ "}).json() == {"start": "X___O____"}
    start = client.post("/position", json={"start": "X___O____", "actions": [1]}).json()
    assert start["text"] == "XX__O____"
    refused = client.post("/setup", json={"text": "XXX______"})
    assert refused.status_code == 400
    assert "tictactoe" in refused.json()["error"]


def test_one_search_too_many_closes_the_oldest(monkeypatch):
    """Searches wait for a pool that has not started."""
    monkeypatch.setattr(server, "MAX_SEARCHES", 2)
    pool = SearchPool(AlphaZero(GAME, evaluators.rollout(GAME), 16), max_simulations=64)
    session = PlaySession(GAME, "agent", pool, {})
    answer, ended = {}, []

    def ask(client, number):
        answer[number] = client.post("/think", json={"level": "search", "simulations": 16}).text
        ended.append(number)

    with TestClient(make_app(session), base_url=ADDRESS) as client:
        threads = [threading.Thread(target=ask, args=(client, number)) for number in range(3)]
        for number, thread in enumerate(threads):
            thread.start()
            while len(pool._waiting) < number + 1:
                threading.Event().wait(0.01)
        while not ended:
            threading.Event().wait(0.01)
        assert ended == [0]
        assert "closed: too many" in answer[0]
        pool.start()
        for thread in threads:
            thread.join()
    pool.close()
    assert all('"last": true' in answer[number] for number in (1, 2))


def test_a_host_that_is_no_name_is_refused():
    with pytest.raises(OSError, match=r"cannot be served at bücher\.\.de, port 0: "):
        serve(
            GAME,
            "random",
            load_search_spec("random", GAME),
            {},
            exact=None,
            facts={},
            book=None,
            num_simulations=16,
            host="bücher..de",
            port=0,
            console=Console(quiet=True),
        )


def test_an_address_that_is_taken_is_refused():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port, spec = taken.getsockname()[1], load_search_spec("random", GAME)
        with pytest.raises(OSError, match=rf"cannot be served at 127\.0\.0\.1, port {port}"):
            serve(
                GAME,
                "random",
                spec,
                {},
                exact=None,
                facts={},
                book=None,
                num_simulations=16,
                host="127.0.0.1",
                port=port,
                console=Console(),
            )


def test_the_page_is_open_while_the_search_is_compiled():
    """The pool of this page starts late."""
    pool = SearchPool(AlphaZero(GAME, evaluators.rollout(GAME), 16), max_simulations=64)
    with TestClient(make_app(PlaySession(GAME, "agent", pool, {})), base_url=ADDRESS) as client:
        assert client.post("/position", json={}).json()["text"] == "_________"
        answers = []

        def ask():
            answers.extend(lines(client.post("/think", json={"level": "search", "simulations": 16})))

        thread = threading.Thread(target=ask)
        thread.start()
        while not pool._waiting:
            threading.Event().wait(0.01)
        pool.start()
        thread.join()
        assert answers[0] == {"waiting": "The search is being compiled"}
        assert answers[1]["simulations"] == 16
        assert answers[-1]["last"]
        (first, *_) = lines(client.post("/think", json={"level": "search", "simulations": 16}))
        assert first["simulations"] == 16
    pool.close()


def test_a_visitor_reads_why_no_search_runs():
    def no_room(params, key, states):
        raise MemoryError("no room for the trees")

    pool = SearchPool(AlphaZero(GAME, no_room, 16), max_simulations=64)
    pool.start()
    with TestClient(make_app(PlaySession(GAME, "agent", pool, {})), base_url=ADDRESS) as client:
        for path in ("think", "analyze"):
            asked = {"actions": actions("b2"), "level": "search", "simulations": 16}
            assert lines(client.post(f"/{path}", json=asked))[-1] == {"error": "the memory ran out"}
    pool.close()


class Bare(Game):
    """Tic-tac-toe by its rules alone, without text, board and picture."""

    name = "bare"
    num_actions = GAME.num_actions
    max_legal_actions = GAME.max_legal_actions
    max_plies = GAME.max_plies
    observation_shape = GAME.observation_shape
    init, step, legal_action_mask, observe = GAME.init, GAME.step, GAME.legal_action_mask, GAME.observe


def test_a_game_without_text_and_board_is_played_by_action_numbers():
    game = Bare()
    pool = SearchPool(AlphaZero(game, evaluators.uniform(game), 16), max_simulations=16)
    pool.start()
    session = PlaySession(game, "agent", pool, {"easy": random_player(game)})
    with TestClient(make_app(session), base_url=ADDRESS) as client:
        described = first(client)["game"]
        assert (described["board"], described["pieces"]) == (False, [])
        assert described["players"] == ["the first player", "the second player"]
        assert described["options"] == {}
        answer = client.post("/position", json={"actions": [4]}).json()
        assert (answer["svg"], answer["text"], answer["moves"]) == (None, "4", ["4"])
        assert answer["legal"][0] == {"action": 0, "move": "0", "squares": []}
        last = lines(client.post("/think", json={"actions": [4], "level": "search", "simulations": 16}))[-1]
        assert last["svg"] is None
        assert last["variation"][0] == last["policy"][0]["move"]
        assert client.post("/setup", json={"text": "x"}).status_code == 400
        # A position is the moves that lead there.
        assert client.post("/setup", json={"text": " 4  0 8"}).json() == {"start": "4 0 8"}
        further = client.post("/position", json={"start": "4 0 8", "actions": [2]}).json()
        assert (further["text"], further["moves"]) == ("4 0 8 2", ["2"])
        refused = client.post("/setup", json={"text": "4 0 4"})
        assert refused.status_code == 400
        assert refused.json()["error"].startswith("move 3: '4' is not a legal move here; legal: 1, 2, 3, 5")
        assert client.post("/edit", json={"pieces": []}).status_code == 400
    pool.close()


def test_another_player_to_move_leaves_the_pieces_where_they_stand():
    """Breakthrough keeps its board as the player to move sees it."""
    game = make("breakthrough", columns=3, rows=4)
    session = PlaySession(game, "random", SearchPool(AlphaZero(game, evaluators.uniform(game), 4), None), {})
    asked = {"start": None, "actions": [], "pieces": [[4, 2]]}
    assert [session.edit({**asked, "mover": mover})["text"] for mover in (0, 1)] == [
        "bbb/.b./.../www w",
        "bbb/.b./.../www b",
    ]
