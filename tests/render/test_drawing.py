import functools
import re
import types
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_play import OPTIONS, random_game
from rules_alone import RulesAlone

import azjax.games
from azjax.core.errors import InputError
from azjax.games.protocols import BoardGame, action_from_text
from azjax.games.registry import make
from azjax.render.boards.mnk import winning_lines
from azjax.render.boards.santorini import possible_moves
from azjax.render.picture import svg
from azjax.render.squares import draw_squares

SVG = "{http://www.w3.org/2000/svg}"
GAME = make("tictactoe")
START = GAME.init(jax.random.key(0))


@functools.cache
def pictures(name):
    """Pictures of the start, of a middle position with policy and last move, and of the last position."""
    game, states, actions = random_game(name)
    middle = len(actions) // 2
    mask = np.asarray(game.legal_action_mask(states[middle]))
    policy = np.where(mask, np.arange(game.num_actions) % 7 + 1.0, 0.0)
    return [
        svg(game, states[0]),
        svg(game, states[middle], policy=policy / policy.sum(), last_action=actions[middle - 1]),
        svg(game, states[-1], last_action=actions[-1]),
    ]


def texts(picture):
    return ["".join(element.itertext()) for element in ElementTree.fromstring(picture).iter(f"{SVG}text")]


def label(picture):
    return ElementTree.fromstring(picture).attrib["aria-label"]


def pieces(picture):
    return ElementTree.fromstring(picture).findall(f"{SVG}g[@class='pieces']/*")


@pytest.mark.parametrize("name", OPTIONS)
def test_a_picture_is_one_scalable_document_without_references(name):
    for picture in pictures(name):
        root = ElementTree.fromstring(picture)
        assert root.tag == f"{SVG}svg"
        assert len(root.attrib["viewBox"].split()) == 4
        assert "height" not in root.attrib
        assert root.attrib["role"] == "img"
        assert root.find(f"{SVG}title").text
        assert root.attrib["aria-label"].startswith(root.find(f"{SVG}title").text)
        assert {element.tag for element in root.iter()} <= {
            f"{SVG}{tag}" for tag in ("svg", "title", "style", "g", "rect", "circle", "path", "text", "tspan")
        }
        assert "href" not in picture
        assert "url(" not in picture
        assert picture.count("http") == 1  # the namespace


@pytest.mark.parametrize("name", OPTIONS)
def test_every_color_is_defined_in_light_and_in_dark_mode(name):
    for picture in pictures(name):
        light, dark = re.search("<style>(.*)@media(.*)</style>", picture).groups()
        used = set(re.findall(r"var\((--[\w-]+)\)", picture))
        assert used <= set(re.findall(r"(--[\w-]+):", light))
        assert used <= set(re.findall(r"(--[\w-]+):", dark))
        assert dark.startswith("(prefers-color-scheme:dark)")


@pytest.mark.parametrize("name", OPTIONS)
def test_equal_positions_have_equal_pictures(name):
    assert pictures.__wrapped__(name) == pictures(name)


@pytest.mark.parametrize("name", OPTIONS)
def test_a_policy_of_another_shape_is_refused(name):
    game, states, _ = random_game(name)
    with pytest.raises(ValueError, match=rf"\({game.num_actions},\), got \(2,\)"):
        svg(game, states[0], policy=np.ones(2))


def test_the_label_of_a_picture_describes_the_position():
    game = azjax.games.make("tictactoe")
    picture = svg(
        game, game.from_text("XO__X___O"), policy=np.array([0, 0, 0.3, 0.5, 0, 0, 0.2, 0.004, 0]), last_action=8
    )
    assert label(picture) == (
        "tictactoe: X to move. X on a3, b2. O on b3, c1. Last move c1. Likely moves a2 50%, c3 30%, a1 20%"
    )
    assert {"50%", "30%", "20%"} <= set(texts(picture))
    assert "0%" not in texts(picture)
    assert len(pieces(picture)) == 4


@pytest.mark.parametrize(
    ("text", "result"),
    [("XXXOO____", "X won"), ("OOOXX_X__", "O won"), ("XOXXOOOXX", "Draw"), ("_________", "X to move")],
)
def test_the_result_is_written_below_the_board(text, result):
    game = azjax.games.make("tictactoe")
    assert any(written.endswith(result) for written in texts(svg(game, game.from_text(text))))


def test_winning_lines_are_found_from_end_to_end():
    board = np.zeros((6, 7), int)
    board[5, 1:6] = 1
    board[[5, 4, 3, 2], [1, 2, 3, 4]] = 1
    board[0, 0:3] = 2
    assert list(winning_lines(board, 4)) == [((2, 4), (5, 1)), ((5, 1), (5, 5))]


def test_a_line_is_struck_through_only_after_the_end():
    game = azjax.games.make("connect_four")
    assert 'stroke="var(--win)"' in svg(game, game.from_text("4152637"))
    assert 'stroke="var(--win)"' not in svg(game, game.from_text("415263"))


def test_connect_four_shows_a_policy_where_the_disc_would_land():
    game = azjax.games.make("connect_four")
    picture = svg(game, game.from_text("44"), policy=np.eye(7)[3])
    (sign,) = [element for element in ElementTree.fromstring(picture).iter(f"{SVG}text") if element.text == "100%"]
    assert (sign.attrib["x"], sign.attrib["y"]) == ("350", "350")  # column 4, third row from the bottom


def test_brandub_draws_likely_moves_and_marks_both_squares_of_the_last_one():
    game = azjax.games.make("brandub")
    state = game.init(jax.random.key(0))
    first = action_from_text(game, state, "d2-c2")
    after = game.step(state, jnp.int32(first))
    reply = action_from_text(game, after, "d5-b5")
    picture = svg(game, after, policy=np.eye(game.num_actions)[reply], last_action=first)
    assert "Last move d2-c2. Likely moves d5-b5 100%" in label(picture)
    assert "100%" in texts(picture)
    marks = ElementTree.fromstring(picture).findall(f"{SVG}g[@class='marks']/*")
    assert [(mark.attrib["x"], mark.attrib["y"]) for mark in marks] == [("306", "506"), ("203", "503")]  # d2, then c2


def test_santorini_marks_the_last_move_if_no_other_is_possible():
    certain = 0
    for seed in range(2):
        game, states, actions = random_game("santorini", seed)
        for before, after, action in zip(states, states[1:], actions, strict=False):
            played = game.action_to_text(before, action)
            mover = int(before.current_player)
            squares = tuple(divmod(square, 5) for square in game.action_squares(before, action))
            moves = possible_moves(*boards(game, after), mover, action)
            assert squares in moves
            certain += len(moves) == 1
            assert (f"Last move {played}" in label(svg(game, after, last_action=action))) == (len(moves) == 1)
    assert certain > 30


def boards(game, state):
    """Heights and owners, int [size, size], of a Santorini position, read from its observation."""
    planes = np.asarray(game.observe(state)).astype(int)
    mover = int(state.current_player)
    owners = planes[..., 0] * (mover + 1) + planes[..., 1] * (2 - mover)
    return planes[..., 2:].argmax(-1), owners


def test_santorini_draws_the_policy_of_placements():
    game = azjax.games.make("santorini", size=5, workers=2, placement=True)
    state = game.init(jax.random.key(0))
    first = action_from_text(game, state, "c3")
    state = game.step(state, jnp.int32(first))
    policy = np.zeros(game.num_actions)
    policy[action_from_text(game, state, "b2")] = 1
    picture = svg(game, state, policy=policy, last_action=first)
    assert "Last move c3. Likely moves b2 100%" in label(picture)
    assert "100%" in texts(picture)


def test_the_game_of_the_reference_page_draws_itself():
    page = (Path(__file__).parents[2] / "docs" / "reference" / "render.md").read_text()
    names = {}
    exec(re.search(r"```python\n(.*?)```", page, re.DOTALL)[1], names)
    game = type("Pebbles", (RulesAlone, names["Pebbles"]), {})()
    state = types.SimpleNamespace(
        cells=np.array([0, 1, 2, 0, 0, 0, 0, 0]),
        current_player=np.int32(0),
        terminated=np.bool_(False),
        rewards=np.zeros(2),
    )
    picture = svg(game, state, policy=np.eye(9)[3])
    assert label(picture) == "bare: The first player to move. Likely moves 3 100%"
    assert len(pieces(picture)) == 2
    assert len(texts(picture)) == 8 + 1 + 2  # the columns, the policy, and the caption with its legend


@pytest.mark.parametrize(("name", "options"), [("hex", {"size": 3, "swap": True}), ("santorini", {"placement": True})])
def test_a_policy_that_is_not_masked_is_drawn(name, options):
    options = options | {"size": 5, "workers": 2} if name == "santorini" else options
    game = azjax.games.make(name, **options)
    policy = np.full(game.num_actions, 1 / game.num_actions) if name == "hex" else np.eye(game.num_actions)[0]
    assert svg(game, game.init(jax.random.key(0)), policy=policy).startswith("<svg")


@pytest.mark.usefixtures("types_unchecked")
@pytest.mark.parametrize(
    ("game", "state", "options", "message"),
    [
        ("tictactoe", START, {}, "game must be a game, such as .*, got its name"),
        (make("connect_four"), START, {}, "these states are of another game than ConnectFour"),
        (GAME, jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), START), {}, "tictactoe needs one state; got a leaf"),
        (GAME, "_________", {}, "these states are of another game"),
        (GAME, START, {"last_action": 9}, "last_action must be an action of tictactoe, 0..8, got 9"),
        (GAME, START, {"last_action": -1}, "last_action must be an action of tictactoe, 0..8, got -1"),
        (GAME, START, {"last_action": "b2"}, "last_action must be an action of tictactoe, 0..8, got 'b2'"),
    ],
)
def test_what_cannot_be_drawn_is_refused(game, state, options, message):
    with pytest.raises(InputError, match=message):
        svg(game, state, **options)


class Round(RulesAlone, BoardGame):
    """Tic-tac-toe whose moves end where they began."""

    def action_squares(self, state, action):
        return (0, 4, 0) if action == 0 else (action, action)


def test_a_move_that_ends_where_it_began_has_an_arrow_or_a_shade():
    picture = draw_squares(Round(), START, np.zeros((3, 3), int), policy=np.full(9, 1 / 9))
    assert picture.count('<path d="M') == 1


def test_columns_beyond_z_have_two_letters():
    owners = np.zeros((2, 54), int)
    owners[1, [25, 26, 53]] = 1
    picture = draw_squares(RulesAlone(), START, owners)
    assert "on z1, aa1, bb1" in label(picture)
    assert {"z", "aa", "ab", "bb"} <= set(texts(picture))
