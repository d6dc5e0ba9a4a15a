"""The files of docs/examples: the game keeps the rules of Hexapawn, and the loop learns. They run elsewhere."""

import json
import re
import shutil
import subprocess
import sys
import textwrap

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from examples import EXAMPLES, games_forgotten, load_example
from starlette.testclient import TestClient

import azjax
from azjax.core.errors import InputError
from azjax.evaluation import perft, solve
from azjax.games import check_game
from azjax.games.protocols import action_from_text, legal_texts
from azjax.play.search_pool import SearchPool
from azjax.play.server import make_app
from azjax.play.session import PlaySession
from azjax.search import AlphaZero, evaluators

KEY = jax.random.key(0)


@pytest.fixture(scope="module")
def hexapawn(tmp_path_factory):
    """The module of the game, which is registered while the tests of this file run."""
    with games_forgotten():
        yield load_example("hexapawn", tmp_path_factory.mktemp("elsewhere"))


@pytest.mark.slow
def test_the_file_can_be_the_first_import_of_a_process(tmp_path):
    shutil.copy(EXAMPLES / "hexapawn.py", tmp_path)
    script = "import hexapawn, azjax; print(azjax.make('hexapawn', rows=7))"
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("Hexapawn(columns=3, rows=7)\n", "")


@pytest.mark.slow
@pytest.mark.parametrize(("columns", "rows"), [(5, 5), (3, 7)])
def test_the_example_game_keeps_every_law(hexapawn, columns, rows):
    checked = check_game(azjax.make("hexapawn", columns=columns, rows=rows), num_games=16)
    assert checked.lacks == ()


class PlainHexapawn:
    """The rules in plain Python, by sets of pawns. A position: own pawns, other pawns, and where the mover goes."""

    def __init__(self, columns, rows):
        self.rows = rows
        white = frozenset((0, column) for column in range(columns))
        self.start = white, frozenset((rows - 1, column) for _, column in white), 1

    def is_lost(self, own, other, ahead):
        return not list(self.following(own, other, ahead))

    def following(self, own, other, ahead):
        if any(row == (0 if ahead == 1 else self.rows - 1) for row, _ in other):
            return
        for row, column in own:
            for side in (-1, 0, 1):
                target = (row + ahead, column + side)
                if target in other if side else target not in own | other:
                    yield other - {target}, own - {(row, column)} | {target}, -ahead

    def count_sequences(self, depth, position=None):
        position = position or self.start
        return 1 if depth == 0 else sum(self.count_sequences(depth - 1, each) for each in self.following(*position))

    def values(self):
        """The value of each position for its mover."""
        known = {}

        def value(position):
            if position not in known:
                results = [-value(each) for each in self.following(*position)]
                known[position] = -1 if self.is_lost(*position) else max(results)
            return known[position]

        value(self.start)
        return known


@pytest.mark.parametrize(("columns", "rows", "depth"), [(3, 3, 7), (5, 5, 5)])
def test_sequences_of_moves_are_counted_as_by_plain_rules(hexapawn, columns, rows, depth):
    game, plain = azjax.make("hexapawn", columns=columns, rows=rows), PlainHexapawn(columns, rows)
    assert perft(game, depth) == [plain.count_sequences(plies) for plies in range(1, depth + 1)]


def test_a_small_board_is_solved_as_by_plain_recursion(hexapawn):
    plain, facts = PlainHexapawn(3, 4), solve(azjax.make("hexapawn", columns=3, rows=4)).summary()
    values = plain.values()
    unfinished = [each for each in values if not plain.is_lost(*each)]
    assert facts.reachable == len(values)
    assert facts.value_first_player == values[plain.start]
    assert facts.won == sum(values[each] == 1 for each in unfinished)
    assert facts.lost == sum(values[each] == -1 for each in unfinished)
    # Gardner: the second player wins.
    assert solve(azjax.make("hexapawn")).summary().value_first_player == -1


def test_a_pawn_captures_diagonally_and_steps_straight(hexapawn):
    game = azjax.make("hexapawn", columns=3, rows=4)
    state = game.from_text("b../.b./.w./..w w")
    assert legal_texts(game, state) == ["c1c2"]
    state = game.from_text("b../.b./w../..w w")
    assert legal_texts(game, state) == ["a2a3", "a2b3", "c1c2"]
    after = game.step(state, jnp.int32(action_from_text(game, state, "a2b3")))
    assert game.to_text(after) == "b../.w./.../..w b"


@pytest.mark.parametrize(
    ("text", "move", "rewards"),
    [
        ("b../..w/.../... w", "c3c4", [1, -1]),
        ("..b/.../.b./..w b", "b2b1", [-1, 1]),
        (".../b../.w./... w", "b2a3", [1, -1]),  # no pawn is left
        ("..b/.../.../..w w", "c1c2", None),
        (".../..b/.../..w w", "c1c2", [1, -1]),  # the pawn is blocked
    ],
)
def test_the_last_row_and_a_blocked_side_end_the_game(hexapawn, text, move, rewards):
    game = azjax.make("hexapawn", columns=3, rows=4)
    state = game.from_text(text)
    after = game.step(state, jnp.int32(action_from_text(game, state, move)))
    assert (bool(after.terminated), after.rewards.tolist()) == (rewards is not None, rewards or [0, 0])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("bbb/.../www w", "a position is 4 rows of 3 squares, separated by /, and w or b to move"),
        ("bxb/.../.../www w", "a square is w, b or '.', got 'x'"),
        ("bbb/.w./.../www b", "has more than 3 pawns w"),
        ("w../.b./.../... w", "is impossible: w has won, and is to move"),
    ],
)
def test_impossible_positions_are_refused_with_the_reason(hexapawn, text, reason):
    with pytest.raises(InputError, match=reason):
        azjax.make("hexapawn", columns=3, rows=4).from_text(text)


def test_the_page_of_the_game_has_a_picture_and_squares(hexapawn):
    game = azjax.make("hexapawn", columns=5, rows=5)
    pool = SearchPool(AlphaZero(game, evaluators.uniform(game), 4), max_simulations=4)  # is not started
    with TestClient(make_app(PlaySession(game, "agent", pool, {})), base_url="http://127.0.0.1:8000") as client:
        about = json.loads(re.search(r'id="first">(.*)</script>', client.get("/").text).group(1))["game"]
        assert about["board"]
        assert about["pieces"] == ["nothing", "white pawn", "black pawn"]
        start = client.post("/position", json={}).json()
        assert 'data-columns="5"' in start["svg"]
        clicks = {each["move"]: each["squares"] for each in start["legal"]}
        assert (clicks["a1a2"], clicks["e1e2"], len(clicks)) == ([20, 15], [24, 19], 5)
        first = next(each["action"] for each in start["legal"] if each["move"] == "a1a2")
        second = client.post("/position", json={"actions": [first]}).json()
        assert second["text"] == "bbbbb/...../...../w..../.wwww b"
        assert {each["move"]: each["squares"] for each in second["legal"]}["b5b4"] == [1, 6]
        assert "Last move a1-a2" in second["svg"]
        assert "White on a2, b1, c1, d1, e1" in second["svg"]
        shown = client.post("/edit", json={"pieces": [[12, 2]]}).json()
        assert shown["text"] == "bbbbb/...../..b../...../wwwww w"


def test_the_policy_is_drawn_as_arrows(hexapawn):
    game = azjax.make("hexapawn")
    state = game.init(KEY)
    policy = np.zeros(game.num_actions)
    policy[action_from_text(game, state, "a1a2")] = 1
    picture = azjax.render.svg(game, state, policy=policy)
    assert ">100%<" in picture
    assert "Likely moves a1a2 100%" in picture


@pytest.mark.slow
def test_the_loop_learns(tmp_path, monkeypatch, capsys):
    loop = load_example("own_loop", tmp_path)
    monkeypatch.setattr(loop, "ITERATIONS", 10)
    loop.main()
    before, after = (int(count) for count in re.findall("iterations: ([0-9]+) mistakes", capsys.readouterr().out))
    assert after < before / 2


@pytest.mark.slow
def test_the_loop_learns_as_its_page_says(tmp_path):
    path = shutil.copy(EXAMPLES / "own_loop.py", tmp_path)
    done = subprocess.run([sys.executable, path], cwd=tmp_path, capture_output=True, text=True, check=True)
    first, *_, last = (int(count) for count in re.findall("iterations: ([0-9]+) mistakes", done.stdout))
    assert last < first / 5


def test_the_pages_show_the_files():
    pages = {name: (EXAMPLES.parent / f"{name}.md").read_text() for name in ("your_own_loop", "adding_a_game")}
    assert f"```python\n{(EXAMPLES / 'own_loop.py').read_text()}```" in pages["your_own_loop"]
    (excerpt,) = re.findall("```python\n(def svg.*?)```", pages["adding_a_game"], re.S)
    file = (EXAMPLES / "hexapawn.py").read_text()
    assert all(textwrap.indent(method, " " * 4) in file for method in excerpt.split("\n\n\n"))
