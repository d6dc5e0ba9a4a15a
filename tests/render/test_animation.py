"""Whole games as animations and as slides."""

import html.parser
import re
import xml.etree.ElementTree as ElementTree

import jax
import jax.numpy as jnp
import pytest
from random_play import OPTIONS, random_game

import azjax.games
from azjax.games.protocols import action_from_text
from azjax.render import animate, slideshow, svg
from azjax.render.drawing import LAYERS

SVG = "{http://www.w3.org/2000/svg}"


def label(picture):
    return ElementTree.fromstring(picture).attrib["aria-label"]


def pieces(picture):
    return ElementTree.fromstring(picture).findall(f"{SVG}g[@class='pieces']/*")


@pytest.mark.slow_except("brandub", "tictactoe")
@pytest.mark.parametrize("name", OPTIONS)
def test_an_animation_is_smaller_than_its_frames_and_ends_on_the_last_position(name):
    game, states, actions = random_game(name)
    animation = animate(game, states, actions)
    assert animation == animate(game, states, actions)
    frames = [svg(game, states[0]), *(svg(game, s, last_action=a) for s, a in zip(states[1:], actions, strict=True))]
    if len(actions) > 10:
        assert len(animation) < sum(map(len, frames)) / 4
    root = ElementTree.fromstring(animation)
    assert root.attrib["viewBox"] == ElementTree.fromstring(frames[-1]).attrib["viewBox"]
    assert "prefers-reduced-motion" in animation
    assert f"A game of {len(actions)} plies" in label(animation)
    seen = {
        (ElementTree.tostring(child).split(b">", 1)[1], child.attrib["transform"])
        for child in pieces(animation)
        if child.attrib.get("opacity") != "0"
    }
    assert seen == {(ElementTree.tostring(c).split(b">", 1)[1], c.attrib["transform"]) for c in pieces(frames[-1])}


def test_an_animation_defines_the_keyframes_that_it_uses():
    animation = animate(*random_game("connect_four"))
    named = set(re.findall(r"animation-name:([\w-]+)", animation))
    assert named == set(re.findall(r"@keyframes ([\w-]+)", animation))


def test_a_moving_piece_is_one_shape_and_a_captured_one_fades():
    game = azjax.games.make("brandub")
    states = [game.from_text("3t3/7/3T3/t2K3/1T5/7/2t4 a")]
    actions = []
    for move in ("a4-a3", "d5-d6", "c1-c3"):
        actions.append(action_from_text(game, states[-1], move))
        states.append(game.step(states[-1], jnp.int32(actions[-1])))
    assert [len(pieces(svg(game, state))) for state in states] == [6, 6, 6, 5]
    animation = animate(game, states, actions)
    assert len(pieces(animation)) == 6
    (captured,) = [piece for piece in pieces(animation) if piece.attrib.get("opacity") == "0"]
    assert captured.attrib["transform"] == "translate(150 450)"


def test_an_animation_takes_a_second_per_ply_and_rests_for_three_plies():
    game, states, actions = random_game("connect2")
    assert f"animation:{len(actions) + 3}s " in animate(game, states, actions)
    assert f"animation:{(len(actions) + 3) / 2:g}s " in animate(game, states, actions, seconds_per_ply=0.5)


def test_an_animation_needs_one_state_more_than_actions_and_a_positive_time():
    game, states, actions = random_game("connect2")
    with pytest.raises(ValueError, match=f"{len(actions)} actions has {len(actions) + 1} states, got {len(actions)}"):
        animate(game, states[1:], actions)
    with pytest.raises(ValueError, match="seconds_per_ply must be positive, got 0"):
        animate(game, states, actions, seconds_per_ply=0.0)


def board_of(page):
    return ElementTree.fromstring(re.search(r'<div class="board">(.*?)</div>\n', page, re.DOTALL)[1])


def shown_at(board, ply):
    """The visible shapes of a slide with their places, sorted, as the script of the page computes them."""
    seen = []
    for group in board.iter():
        for shape in group if group.attrib.get("class") in LAYERS else ():
            shape = ElementTree.fromstring(ElementTree.tostring(shape))
            place = shape.attrib.pop("transform", "").removeprefix("translate(").removesuffix(")")
            gone = shape.attrib.pop("opacity", "1") == "0" and "data-changes" in shape.attrib
            changes = shape.attrib.pop("data-changes", None)
            if changes is not None:
                change = [now.split() for now in changes.split(";") if int(now.split()[0]) <= ply][-1]
                place, gone = " ".join(change[1:3]), len(change) == 4
            shape.attrib.pop("data-from", None)
            above_the_board = place.endswith(" -100")  # where discs wait before they fall
            if not gone and not above_the_board:
                seen.append((ElementTree.tostring(shape), "" if place == "0 0" else place))
    return sorted(seen)


class Wellformed(html.parser.HTMLParser):
    """Counts elements and asserts that each is closed."""

    def __init__(self, page):
        super().__init__()
        self.open, self.count = [], {}
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.count[tag] = self.count.get(tag, 0) + 1
        if tag != "input":
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.count[tag] = self.count.get(tag, 0) + 1

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.slow_except("brandub", "tictactoe")
@pytest.mark.parametrize("name", OPTIONS)
def test_every_slide_shows_the_shapes_of_its_picture(name):
    game, states, actions = random_game(name)
    page = slideshow(game, states, actions, title="a game")
    board = board_of(page)
    for ply, (state, action) in enumerate(zip(states, [None, *actions], strict=True)):
        picture = ElementTree.fromstring(svg(game, state, last_action=action))
        # Two equal shapes at one place look like one.
        assert set(shown_at(board, ply)) == set(shown_at(picture, 0))
    moves = [game.action_to_text(state, action) for state, action in zip(states, actions, strict=False)]
    assert re.findall(r'data-label="[^"]+">([^<]*)</button>', page) == ["start", *moves]
    assert f'max="{len(actions)}" value="{len(actions)}"' in page


def test_slides_load_nothing_have_no_ids_and_are_small():
    game, states, actions = random_game("brandub", plies=100)
    page = slideshow(game, states, actions, title="a game")
    assert len(actions) == 100
    assert len(page) < 200_000
    assert set(re.findall(r"https?://[^\"' ]+", page)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"\b(src|href|id|on\w+)=|url\(|@import|fetch\(|import\(", page)


def test_a_title_of_slides_is_escaped():
    game, states, actions = random_game("tictactoe")
    title = "</p><script>alert(1)</script> \"a\" & 'b' <!--MOVES-->"
    page = slideshow(game, states, actions, title=title)
    elements = Wellformed(page)
    assert elements.count["script"] == elements.count["ol"] == 1
    assert elements.count["li"] == len(actions) + 1
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &quot;a&quot; &amp; &#x27;b&#x27;" in page


def test_without_scripts_slides_show_the_last_position_and_no_controls():
    game, states, actions = random_game("connect_four")
    page = slideshow(game, states, actions, title="a game")
    board, last = board_of(page), ElementTree.fromstring(svg(game, states[-1], last_action=actions[-1]))
    assert board.attrib["aria-label"] == last.attrib["aria-label"]
    for shape in board.iter():
        if (changes := shape.attrib.get("data-changes")) is not None:
            _, *place = changes.split(";")[-1].split()
            assert shape.attrib.get("transform", "translate(0 0)") == f"translate({' '.join(place[:2])})"
            assert (shape.attrib.get("opacity") == "0") == (place[2:] == ["-"])
    assert '<div class="controls" hidden>' in page
    assert page.count('<li><button type="button" disabled ') == page.count("<li>")


def test_a_game_without_moves_has_one_slide():
    game = azjax.games.make("connect2")
    page = slideshow(game, [game.init(jax.random.key(0))], [], title="nothing yet")
    assert Wellformed(page).count["li"] == 1
    assert 'max="0"' in page


def test_slides_of_pgx_games_show_its_pictures():
    pytest.importorskip("pgx")
    game = azjax.games.make("pgx:tic_tac_toe")
    states = [game.init(jax.random.key(0))]
    for action in (4, 0):
        states.append(game.step(states[-1], jnp.int32(action)))
    board = board_of(slideshow(game, states, [4, 0], title="a game"))
    assert len(board.findall(".//*[@data-changes]")) == 3


def test_slides_need_one_state_more_than_actions():
    game, states, actions = random_game("tictactoe")
    with pytest.raises(ValueError, match=rf"has {len(states)} states, got {len(states) - 1}"):
        slideshow(game, states[:-1], actions, title="a game")
