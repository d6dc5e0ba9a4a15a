import functools
import re
import xml.etree.ElementTree as ElementTree

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import azjax.games
from azjax.games.protocols import action_from_text
from azjax.render.animation import animate
from azjax.render.boards.mnk import winning_lines
from azjax.render.boards.santorini import possible_moves
from azjax.render.picture import svg

SVG = "{http://www.w3.org/2000/svg}"
GAMES = {
    "tictactoe": {},
    "connect2": {},
    "mnk": {"columns": 15, "rows": 15, "in_a_row": 5},
    "connect_four": {},
    "santorini": {"size": 5, "workers": 2},
    "brandub": {},
}


@functools.cache
def random_game(name, seed=0, plies=30, **options):
    """(the game, states, actions) of at most so many random plies."""
    game, generator = azjax.games.make(name, **options), np.random.default_rng(seed)
    step, mask = jax.jit(game.step), jax.jit(game.legal_action_mask)
    states, actions = [game.init(jax.random.key(0))], []
    while len(actions) < plies and not states[-1].terminated:
        actions.append(int(generator.choice(np.flatnonzero(mask(states[-1])))))
        states.append(step(states[-1], jnp.int32(actions[-1])))
    return game, states, actions


@functools.cache
def pictures(name):
    """Pictures of the start, of a middle with policy and last move, and of the last position."""
    game, states, actions = random_game(name, **GAMES[name])
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


@pytest.mark.parametrize("name", GAMES)
def test_a_picture_is_a_document_of_its_own_with_a_size_that_scales(name):
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


@pytest.mark.parametrize("name", GAMES)
def test_every_color_is_told_in_light_and_in_dark_mode(name):
    for picture in pictures(name):
        light, dark = re.search("<style>(.*)@media(.*)</style>", picture).groups()
        used = set(re.findall(r"var\((--[\w-]+)\)", picture))
        assert used <= set(re.findall(r"(--[\w-]+):", light))
        assert used <= set(re.findall(r"(--[\w-]+):", dark))
        assert dark.startswith("(prefers-color-scheme:dark)")


@pytest.mark.parametrize("name", GAMES)
def test_equal_positions_have_equal_pictures(name):
    assert pictures.__wrapped__(name) == pictures(name)


@pytest.mark.parametrize("name", GAMES)
def test_a_policy_of_another_shape_is_refused(name):
    game, states, _ = random_game(name, **GAMES[name])
    with pytest.raises(ValueError, match=rf"\({game.num_actions},\), got \(2,\)"):
        svg(game, states[0], policy=np.ones(2))


def test_tictactoe_is_told_in_words():
    game = azjax.games.make("tictactoe")
    picture = svg(game, game.from_text("XO__X___O"), policy=[0, 0, 0.3, 0.5, 0, 0, 0.2, 0.004, 0], last_action=8)
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
def test_the_end_of_a_game_is_written_beneath_the_board(text, result):
    game = azjax.games.make("tictactoe")
    assert any(written.endswith(result) for written in texts(svg(game, game.from_text(text))))


def test_lines_that_won_are_found_from_end_to_end():
    board = np.zeros((6, 7), int)
    board[5, 1:6] = 1
    board[[5, 4, 3, 2], [1, 2, 3, 4]] = 1
    board[0, 0:3] = 2
    assert list(winning_lines(board, 4)) == [((2, 4), (5, 1)), ((5, 1), (5, 5))]


def test_a_line_is_struck_through_only_when_the_game_is_over():
    game = azjax.games.make("connect_four")
    assert 'stroke="var(--win)"' in svg(game, game.from_text("4152637"))
    assert 'stroke="var(--win)"' not in svg(game, game.from_text("415263"))


def test_connect_four_shows_a_policy_where_the_disc_would_land():
    game = azjax.games.make("connect_four")
    picture = svg(game, game.from_text("44"), policy=np.eye(7)[3])
    (sign,) = [element for element in ElementTree.fromstring(picture).iter(f"{SVG}text") if element.text == "100%"]
    assert (sign.attrib["x"], sign.attrib["y"]) == ("350", "350")  # column 4, third row from the bottom


def test_brandub_shows_a_move_as_an_arrow_and_where_the_last_one_came_from():
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


def test_santorini_marks_the_last_move_wherever_one_move_alone_is_possible():
    certain = 0
    for seed in range(2):
        game, states, actions = random_game("santorini", seed=seed, size=5, workers=2)
        for before, after, action in zip(states, states[1:], actions, strict=False):
            played = game.action_to_text(before, action)
            mover = int(before.current_player)
            squares = tuple(divmod(square, 5) for square in game.action_squares(before, action))
            found = possible_moves(*boards(game, after), mover, action)
            assert squares in found
            certain += len(found) == 1
            assert (f"Last move {played}" in label(svg(game, after, last_action=action))) == (len(found) == 1)
    assert certain > 30


def boards(game, state):
    """Heights and owners, int [size, size], of a Santorini position, read from its observation."""
    planes = np.asarray(game.observe(state)).astype(int)
    mover = int(state.current_player)
    owners = planes[..., 0] * (mover + 1) + planes[..., 1] * (2 - mover)
    return planes[..., 2:].argmax(-1), owners


def test_santorini_placements_show_where_workers_may_go():
    game = azjax.games.make("santorini", size=5, workers=2, placement=True)
    state = game.init(jax.random.key(0))
    first = action_from_text(game, state, "c3")
    state = game.step(state, jnp.int32(first))
    policy = np.zeros(game.num_actions)
    policy[action_from_text(game, state, "b2")] = 1
    picture = svg(game, state, policy=policy, last_action=first)
    assert "Last move c3. Likely moves b2 100%" in label(picture)
    assert "100%" in texts(picture)


# Animations.


@pytest.mark.parametrize("name", GAMES)
def test_an_animation_is_smaller_than_its_frames_and_ends_on_the_last_position(name):
    game, states, actions = random_game(name, **GAMES[name])
    film = animate(game, states, actions)
    assert film == animate(game, states, actions)
    frames = [svg(game, states[0]), *(svg(game, s, last_action=a) for s, a in zip(states[1:], actions, strict=True))]
    if len(actions) > 10:
        assert len(film) < sum(map(len, frames)) / 4
    root = ElementTree.fromstring(film)
    assert root.attrib["viewBox"] == ElementTree.fromstring(frames[-1]).attrib["viewBox"]
    assert "prefers-reduced-motion" in film
    assert f"A game of {len(actions)} plies" in label(film)
    seen = {
        (ElementTree.tostring(child).split(b">", 1)[1], child.attrib["transform"])
        for child in pieces(film)
        if child.attrib.get("opacity") != "0"
    }
    assert seen == {(ElementTree.tostring(c).split(b">", 1)[1], c.attrib["transform"]) for c in pieces(frames[-1])}


def test_the_keyframes_that_an_animation_names_are_there():
    film = animate(*random_game("connect_four"))
    named = set(re.findall(r"animation-name:([\w-]+)", film))
    assert named == set(re.findall(r"@keyframes ([\w-]+)", film))


def test_a_piece_that_moves_is_one_shape_and_a_captured_one_fades():
    game = azjax.games.make("brandub")
    states = [game.from_text("3t3/7/3T3/t2K3/1T5/7/2t4 a")]
    actions = []
    for move in ("a4-a3", "d5-d6", "c1-c3"):
        actions.append(action_from_text(game, states[-1], move))
        states.append(game.step(states[-1], jnp.int32(actions[-1])))
    assert [len(pieces(svg(game, state))) for state in states] == [6, 6, 6, 5]
    film = animate(game, states, actions)
    assert len(pieces(film)) == 6
    (captured,) = [piece for piece in pieces(film) if piece.attrib.get("opacity") == "0"]
    assert captured.attrib["transform"] == "translate(150 450)"


def test_an_animation_takes_one_second_a_ply_and_three_plies_of_rest():
    game, states, actions = random_game("connect2")
    assert f"animation:{len(actions) + 3}s " in animate(game, states, actions)
    assert f"animation:{(len(actions) + 3) / 2:g}s " in animate(game, states, actions, seconds_per_ply=0.5)


def test_an_animation_of_states_and_actions_that_do_not_fit_is_refused():
    game, states, actions = random_game("connect2")
    with pytest.raises(ValueError, match=f"{len(actions)} actions has {len(actions) + 1} states, got {len(actions)}"):
        animate(game, states[1:], actions)
    with pytest.raises(ValueError, match="seconds_per_ply must be positive, got 0"):
        animate(game, states, actions, seconds_per_ply=0)
