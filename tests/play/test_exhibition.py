"""The page as static files: its engine, run by Node, answers as the server and the search of Python do."""

import collections
import dataclasses
import functools
import json

import jax
import numpy as np
import pytest
from node import ask_engine, needs_node

from azjax.agents import SearchSpec
from azjax.core.errors import FileError, InputError
from azjax.games.hex import Hex
from azjax.games.registry import make
from azjax.play import exhibition as exhibition_module
from azjax.play.exhibition import CHUNK, FILES, MAX_SIMULATIONS, Look, elements_of, export_page, notation
from azjax.play.search_pool import SearchPool
from azjax.play.session import PlaySession
from azjax.search import AlphaZero, SearchHyper, evaluators
from azjax.training import Config

GAMES = {
    "santorini": {"size": 3, "workers": 1},
    "hex": {"size": 3, "swap": True},
}
MORE_GAMES = {
    "brandub": {},
    "breakthrough": {"columns": 3, "rows": 4},
    "chomp": {},
    "connect2": {},
    "connect_four": {"columns": 5, "rows": 4},
    "othello": {"size": 4},
    "tablut": {},
    "tictactoe": {},
}
SIMULATIONS = 2 * CHUNK
slow = [pytest.param(name, marks=pytest.mark.slow) for name in MORE_GAMES]


@functools.cache
def session_of(name):
    """A page of a network that has not learned."""
    game = make(name, **(GAMES | MORE_GAMES)[name])
    network = Config(network="mlp", width=8, depth=1).make_network(game)
    policy = AlphaZero(game, evaluators.network(network, game), CHUNK)
    search = SearchSpec(policy, network.init(jax.random.key(3), game), SearchHyper())
    pool = SearchPool(search.policy, search.params, search.hyper)
    return PlaySession(game, "agent", pool, {}, num_simulations=SIMULATIONS), search


@pytest.fixture(scope="module", params=[*GAMES, *slow])
def exhibition(request, tmp_path_factory):
    session, search = session_of(request.param)
    folder = tmp_path_factory.mktemp("page") / "new"
    parts = list(export_page(session, search, folder))
    assert parts == ["the rules", "the search", "the pictures", "the files"]
    return session, search, folder


def random_game(session, seed=0):
    """The actions of a game of random moves, to its end."""
    rng, actions = np.random.default_rng(seed), []
    while not (answer := session.position({"start": None, "actions": actions}))["over"]:
        actions.append(int(rng.choice([move["action"] for move in answer["legal"]])))
    return actions


@pytest.mark.slow_except("hex")
@needs_node
def test_the_engine_tells_of_positions_what_the_server_does(exhibition):
    session, _, folder = exhibition
    actions = random_game(session)
    questions = [{"start": None, "actions": actions[:ply]} for ply in range(len(actions) + 1)]
    answers = ask_engine(folder, [("position", question) for question in questions])
    for question, (answer,) in zip(questions, answers, strict=True):
        wanted = json.loads(json.dumps(session.position(question)))
        told = "moves", "movers", "over", "rewards", "legal"
        assert {key: answer[key] for key in told} == {key: wanted[key] for key in told}
        assert answer["text"] == " ".join(wanted["moves"])


@pytest.mark.slow_except("hex")
@needs_node
def test_the_engine_searches_as_the_search_of_python(exhibition):
    session, search, folder = exhibition
    actions = random_game(session, 1)[:2]
    body = {"start": None, "actions": actions, "level": "search", "simulations": SIMULATIONS}
    ((*_, last), (alone,)) = ask_engine(folder, [("think", body), ("think", {**body, "level": "medium"})])
    state = session.running_state(None, actions)
    batch = jax.tree.map(lambda leaf: np.asarray(leaf)[None], state)
    # It ends before that only where it has proven the value.
    assert last["simulations"] == SIMULATIONS or last["proven"]
    policy = AlphaZero(session.game, search.policy.evaluator, last["simulations"], solver=True)
    result = jax.device_get(policy(search.params, jax.random.key(0), batch, hyper=search.hyper))
    assert (last["action"], last["last"]) == (int(result.action[0]), True)
    assert last["value"] == pytest.approx(float(result.value[0]), abs=1e-4)
    for move in last["policy"]:
        assert move["share"] == pytest.approx(float(result.policy[0][move["action"]]), abs=1e-4)
    logits, value = search.policy.evaluator(search.params, jax.random.key(0), batch)
    mask = np.asarray(session.game.legal_action_mask(state))
    assert alone["action"] == int(np.argmax(np.where(mask, logits[0], -np.inf)))
    assert alone["value"] == pytest.approx(float(value[0]), abs=1e-5)


@pytest.mark.slow_except("hex")
@needs_node
def test_the_engine_reviews_a_game_and_draws_a_level_that_varies(exhibition):
    session, _, folder = exhibition
    actions = random_game(session, 2)
    easy = {"start": None, "actions": [], "level": "easy"}
    review, *drawn = ask_engine(
        folder,
        [("analyze", {"start": None, "actions": actions, "simulations": CHUNK}), *[("think", easy)] * 20],
    )
    assert [answer["ply"] for answer in review] == list(range(len(actions)))
    assert all(0 <= answer["loss"] <= 2 and -1 <= answer["value"] <= 1 for answer in review)
    assert len({answer["action"] for (answer,) in drawn}) > 1


@pytest.mark.slow_except("hex")
@needs_node
def test_the_engine_refuses_what_is_no_game(exhibition):
    session, _, folder = exhibition
    ended = random_game(session)
    illegal = [*ended[:1], *[-7]]
    (start,), (illegal,), (over,) = ask_engine(
        folder,
        [
            ("position", {"start": "a text", "actions": []}),
            ("position", {"start": None, "actions": illegal}),
            ("think", {"start": None, "actions": ended, "level": "search", "simulations": 16}),
        ],
    )
    assert start == {"error": "a game begins at the start here"}
    assert illegal == {"error": "action 2: -7 is not a legal action there"}
    assert over == {"error": "the game is over"}


@pytest.mark.slow_except("hex")
@pytest.mark.parametrize("name", [*GAMES, *slow])
def test_a_picture_is_that_of_the_game_without_its_marks(name):
    session, _ = session_of(name)
    game = session.game
    look = Look(game, game.init(jax.random.key(0))).as_json()
    for state in session.states(None, random_game(session))[:-1]:
        parts = collections.Counter()
        for layers in [
            look["common"],
            *(look["cells"][at][cell] for at, cell in enumerate(game.cells(state).tolist())),
        ]:
            for layer, text in layers.items():
                parts[layer] += len(text)
        wanted = collections.Counter()
        for (layer, element), count in elements_of(game, state)[1].items():
            wanted[layer] += count * len(element)
        assert parts == wanted
    assert look["head"].startswith("<svg ")
    assert "--{{color}}" in look["caption"]
    assert "{{status}}" in look["caption"]


@pytest.mark.slow_except("hex")
def test_the_page_is_told_that_it_has_no_server(exhibition):
    session, _, folder = exhibition
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)
    page = (folder / "index.html").read_text()
    first = json.loads(page.split('id="first">')[1].split("</script>")[0])
    assert first["game"]["static"] is True
    assert first["game"]["levels"] == ["beginner", "easy", "medium", "search"]
    assert first["game"]["most"] == MAX_SIMULATIONS
    assert first["position"] == json.loads(json.dumps(session.position({})))
    assert "new Worker" in page


@pytest.mark.slow
def test_nothing_is_written_over_or_left_half_written(tmp_path, monkeypatch):
    session, search = session_of("santorini")
    (tmp_path / "there").mkdir()
    with pytest.raises(InputError, match="there exists already"):
        list(export_page(session, search, tmp_path / "there"))
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="could not be made"):
        list(export_page(session, search, tmp_path / "file" / "folder"))
    monkeypatch.setattr(exhibition_module, "FILES", ("index.html", "no/such/folder", "c", "d"))
    with pytest.raises(FileError, match="could not be written"):
        list(export_page(session, search, tmp_path / "failed"))
    assert not (tmp_path / "failed").exists()
    rollouts = search._replace(policy=AlphaZero(session.game, evaluators.rollout(session.game), CHUNK), params=None)
    with pytest.raises(InputError, match="for agents with a network"):
        list(export_page(session, rollouts, tmp_path / "rollouts"))
    assert not (tmp_path / "rollouts").exists()


@dataclasses.dataclass(frozen=True)
class WrittenInTwoWays(Hex):
    """A game whose moves are written by the number of stones."""

    def action_to_text(self, state, action):
        return super().action_to_text(state, action) + "!" * (int(np.asarray(self.cells(state)).sum()) % 2)


def test_a_notation_that_depends_on_the_position_is_refused():
    with pytest.raises(InputError, match=r"hex: action \d+ is written in several ways, as {0}"):
        notation(WrittenInTwoWays(3))
    assert set(notation(make("santorini", size=3, workers=1))) == {"{0}-{1}^{2}"}
    assert notation(make("connect_four", columns=5, rows=4)) == ["1", "2", "3", "4", "5"]
    assert notation(make("hex", size=3, swap=True)) == ["{0}"] * 9 + ["swap"]
