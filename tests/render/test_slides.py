import functools
import html.parser
import re
import xml.etree.ElementTree as ElementTree

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import azjax.games
from azjax.evaluation.host_step import step_one
from azjax.render.drawing import LAYERS
from azjax.render.picture import svg
from azjax.render.slides import slideshow

GAMES = {
    "tictactoe": {},
    "mnk": {"columns": 15, "rows": 15, "in_a_row": 5},
    "connect_four": {},
    "santorini": {"size": 5, "workers": 2},
    "brandub": {},
}


@functools.cache
def random_game(name, plies=30):
    """(the game, states, actions) of at most so many random plies."""
    game, generator = azjax.games.make(name, **GAMES[name]), np.random.default_rng(3)
    states, actions = [game.init(jax.random.key(0))], []
    while len(actions) < plies and not states[-1].terminated:
        actions.append(int(generator.choice(np.flatnonzero(game.legal_action_mask(states[-1])))))
        states.append(step_one(game, states[-1], actions[-1]))
    return game, states, actions


def board_of(page):
    return ElementTree.fromstring(re.search(r'<div class="board">(.*?)</div>\n', page, re.DOTALL)[1])


def shown_at(board, ply):
    """The shapes that are seen at a ply, each with its place, sorted; as the script of the page finds them."""
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
            above_the_board = place.endswith(" -100")  # where discs wait until they fall
            if not gone and not above_the_board:
                seen.append((ElementTree.tostring(shape), "" if place == "0 0" else place))
    return sorted(seen)


class Wellformed(html.parser.HTMLParser):
    """Counts elements, and holds that each ends where it must."""

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


@pytest.mark.parametrize("name", GAMES)
def test_every_ply_shows_the_shapes_of_its_picture(name):
    game, states, actions = random_game(name)
    page = slideshow(game, states, actions, title="a game")
    board = board_of(page)
    for ply, (state, action) in enumerate(zip(states, [None, *actions], strict=True)):
        picture = ElementTree.fromstring(svg(game, state, last_action=action))
        # The same shape twice at one place is seen once.
        assert set(shown_at(board, ply)) == set(shown_at(picture, 0))
    moves = [game.action_to_text(state, action) for state, action in zip(states, actions, strict=False)]
    assert re.findall(r'data-label="[^"]+">([^<]*)</button>', page) == ["start", *moves]
    assert f'max="{len(actions)}" value="{len(actions)}"' in page


def test_it_loads_nothing_has_no_ids_and_is_small():
    game, states, actions = random_game("brandub", plies=100)
    page = slideshow(game, states, actions, title="a game")
    assert len(actions) == 100
    assert len(page) < 200_000
    assert set(re.findall(r"https?://[^\"' ]+", page)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"\b(src|href|id|on\w+)=|url\(|@import|fetch\(|import\(", page)


def test_words_are_written_as_text():
    game, states, actions = random_game("tictactoe")
    title = "</p><script>alert(1)</script> \"a\" & 'b' <!--MOVES-->"
    page = slideshow(game, states, actions, title=title)
    elements = Wellformed(page)
    assert elements.count["script"] == elements.count["ol"] == 1
    assert elements.count["li"] == len(actions) + 1
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &quot;a&quot; &amp; &#x27;b&#x27;" in page


def test_without_a_script_the_last_position_is_seen_and_nothing_to_press():
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


def test_a_game_that_did_not_begin_has_one_position():
    game = azjax.games.make("connect2")
    page = slideshow(game, [game.init(None)], [], title="nothing yet")
    assert Wellformed(page).count["li"] == 1
    assert 'max="0"' in page


def test_pictures_of_another_library_are_shown_whole():
    pytest.importorskip("pgx")
    game = azjax.games.make("pgx:tic_tac_toe")
    states = [game.init(jax.random.key(0))]
    for action in (4, 0):
        states.append(game.step(states[-1], jnp.int32(action)))
    board = board_of(slideshow(game, states, [4, 0], title="a game"))
    assert len(board.findall(".//*[@data-changes]")) == 3


def test_states_and_actions_must_fit():
    game, states, actions = random_game("tictactoe")
    with pytest.raises(ValueError, match=rf"has {len(states)} states, got {len(states) - 1}"):
        slideshow(game, states[:-1], actions, title="a game")
