"""The page in Chromium, as people use it: playing, placing pieces, looks."""

import json
import random
from urllib.parse import quote

import pytest
from clicking import CHROMIUM, click, people, play_to_the_end

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")]


def test_a_whole_game_is_played_by_clicking_against_the_agent(page):
    page.select_option("#player1", "easy")
    assert play_to_the_end(page, random.Random(0)) >= 2
    assert page.inner_text("#status").endswith(("won", "draw"))
    assert page.locator("#moves button").count() == page.evaluate("game.actions.length")


def test_moves_are_taken_back_and_gone_through(page):
    people(page)
    source = random.Random(1)
    for _ in range(2):
        click(page, source)
    first, second = (button.inner_text() for button in page.locator("#moves button").all())
    page.click("#back")
    page.wait_for_function("shown.moves.length === 1")
    assert page.locator("#moves button").count() == 2
    page.keyboard.press("End")
    page.wait_for_function("shown.moves.length === 2")
    page.locator("#moves button").first.click()
    page.wait_for_function("shown.moves.length === 1 && arrived()")
    page.fill("#move", second)
    page.keyboard.press("Enter")
    assert page.inner_text("#message") == "go to the end of the game to move (End)"
    page.locator("#moves button").first.focus()
    page.keyboard.press("End")
    page.wait_for_function("shown.moves.length === 2")
    page.click("#undo")
    page.wait_for_function("shown.moves.length === 1 && game.actions.length === 1")
    page.fill("#move", second)
    page.keyboard.press("Enter")
    page.wait_for_function("shown.moves.length === 2")
    assert page.evaluate("shown.moves") == [first, second]
    page.fill("#move", "nonsense")
    page.keyboard.press("Enter")
    page.wait_for_function("document.getElementById('message').textContent !== ''")
    assert "nonsense is not a legal move here" in page.inner_text("#message")


def test_a_position_is_set_up_and_a_bad_one_refused_with_the_reason(page):
    people(page)
    source = random.Random(2)
    click(page, source)
    text = page.evaluate("shown.text")
    page.click("#new")
    page.wait_for_function("shown.moves.length === 0")
    page.click("summary:has-text('Set up')")
    page.fill("#position", text)
    page.click("#setup button")
    page.wait_for_function(f"shown.text === {text!r}")
    assert page.evaluate("game.actions.length") == 0
    page.fill("#position", "nonsense!")
    page.click("#setup button")
    page.wait_for_function("document.getElementById('message').textContent !== ''")
    assert "nonsense!" in page.inner_text("#message") or "'n'" in page.inner_text("#message")
    assert page.evaluate("shown.text") == text


def test_a_position_is_set_up_by_placing_pieces(page):
    people(page)
    page.click("summary:has-text('Set up')")
    start = page.inner_text("#text")
    page.click("#place")
    # A piece of each side on the first square: at most one of them, or none, can be there.
    pieces = page.evaluate("about.pieces")
    refused = 0
    for name in (pieces[1] if len(pieces) > 2 else pieces[0], pieces[-1]):
        before = page.inner_text("#text")
        page.click(f'#pieces button:text-is("{name}")')
        page.click('#squares button[data-square="0"]')
        page.wait_for_function("before => document.getElementById('text').textContent !== before", arg=before)
        refused += page.is_disabled("#placed")
        assert page.is_disabled("#placed") == (page.inner_text("#message") != "")
    assert refused or page.evaluate("about.game") == "othello"  # where a corner may have either
    page.keyboard.press("Escape")
    page.wait_for_function("start => document.getElementById('text').textContent === start", arg=start)
    assert page.inner_text("#message") == ""
    assert page.inner_text("#status").endswith(" to move")
    assert page.evaluate("edits") is None
    click(page, random.Random(0))
    ply_text = page.inner_text("#text")
    page.click("#place")
    page.wait_for_function("!document.getElementById('placed').disabled")
    page.click("#placed")
    page.wait_for_function("game.start !== null && shown.moves.length === 0")
    assert page.inner_text("#text") == ply_text


def test_two_agents_play_while_one_watches(page):
    page.select_option("#strength", "16")
    page.select_option("#player0", "easy")
    page.wait_for_function("game.actions.length >= 2 || shown.over")


def test_it_fits_a_phone_and_turns_dark(page):
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.click("#dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light
    styles = page.locator("#picture svg > style").all_text_contents()
    assert all("@media all" in style for style in styles)


@pytest.mark.parametrize("size", [(1200, 900), (1200, 500), (390, 844)])
def test_squares_lie_on_the_board(page, size):
    page.set_viewport_size(dict(zip(("width", "height"), size, strict=True)))
    board, inside = page.locator("#picture svg").bounding_box(), page.locator("#squares button").all()
    assert board["height"] <= size[1]
    ratio = page.evaluate("document.querySelector('#picture svg').viewBox.baseVal.width") / board["width"]
    first, second = (square.bounding_box() for square in inside[:2])
    # A square is 100 units wide, as high as wide, and beside the one before.
    for square in (first, second):
        assert square["width"] * ratio == pytest.approx(100, abs=1)
        assert square["height"] * ratio == pytest.approx(100, abs=1)
    assert (second["x"] - first["x"]) * ratio == pytest.approx(100, abs=1)


def test_every_square_and_button_has_a_name(page):
    nameless = """[...document.querySelectorAll("button, input, select, textarea")].filter(each => !(
        each.getAttribute("aria-hidden") || each.getAttribute("aria-label") || each.textContent.trim() ||
        each.labels.length)).length"""
    assert page.evaluate(nameless) == 0
    page.focus("#squares button")
    before = page.evaluate("document.activeElement.dataset.square")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.dataset.square") != before


def test_the_sides_have_the_colors_of_their_pieces_and_the_own_one_is_below(page):
    names = page.evaluate("about.players.map(capital)")
    ends = "[...document.querySelectorAll('#bar i')].map(each => each.dataset.seat)"
    assert page.evaluate(ends) == ["1", "0"]
    color = "each => ['first', 'second'].map(role => getComputedStyle(each).getPropertyValue(`--${role}`).trim())"
    pieces, sides = (page.eval_on_selector(each, color) for each in ("#picture svg", ":root"))
    assert pieces == sides
    assert len(set(sides)) == 2
    page.click("#swap")
    page.wait_for_function(f"{ends}[1] === '1'")
    assert page.inner_text("#shares").split(" ")[0] == names[1].split(" ")[0]


def test_clicks_that_come_too_fast_are_one_move(page, tries):
    """Double and concurrent clicks; the page and the server agree after each."""
    people(page)
    source = random.Random(4)
    for _ in range(tries(200)):
        if page.evaluate("shown.over"):
            page.click("#new")
            page.wait_for_function("shown.moves.length === 0 && game.ply === 0")
        before = page.evaluate("game.ply")
        move = source.choice(page.evaluate("shown.legal"))
        other = source.choice(page.evaluate("shown.legal"))["squares"]
        clicks = "squares => squares.forEach(each => document.getElementById('squares').children[each].click())"
        page.evaluate(clicks, [*move["squares"], *move["squares"][-1:] * 2, *other])
        if not move["squares"]:
            page.get_by_role("group", name="legal moves").get_by_role("button", name=move["move"]).dblclick()
        page.wait_for_function("shown.moves.length === game.ply")
        assert page.evaluate("game.ply") == before + 1
        assert page.inner_text("#message") == ""
        page.keyboard.press("Escape")


def test_the_address_holds_the_game(page, browser):
    people(page)
    source = random.Random(5)
    for _ in range(2):
        click(page, source)
    other = browser.new_page(bypass_csp=True)
    other.goto(page.url)
    other.wait_for_function("shown !== null && shown.moves.length >= 2")
    assert other.evaluate("shown.moves.slice(0, 2)") == page.evaluate("shown.moves")
    other.close()


def link(told):
    """The fragment of an address."""
    return "#" + quote(json.dumps(told))


def test_an_address_that_holds_no_game_of_this_page_is_refused_and_stays(page, browser, address):
    name = page.evaluate("about.game")
    refusals = {
        "#nonsense": "the address holds no game",
        link({"actions": [999999]}): "the game of the address cannot be shown: action 1: 999999 is not a legal action",
        link({"game": "chess", "actions": []}): "the address holds a game of chess",
        link({"game": name, "options": {"sides": 3}, "actions": []}): f"the address holds a game of {name} (sides=3)",
    }
    for fragment, reason in refusals.items():
        other = browser.new_page(bypass_csp=True)
        other.goto(address + fragment)
        other.wait_for_function("document.getElementById('message').textContent !== ''")
        assert other.inner_text("#message").startswith(reason)
        assert other.evaluate("[shown.moves.length, location.hash]") == [0, fragment]
        other.close()
    people(page)
    source = random.Random(5)
    for _ in range(2):
        click(page, source)
    moves, old = page.evaluate("shown.moves"), link({"actions": page.evaluate("game.actions")})
    page.select_option("#clock", "1")
    page.evaluate("Object.assign(clock, {limit: 60, left: [30, 60]})")
    for fragment, reason in refusals.items():
        page.evaluate("fragment => { location.hash = fragment; }", fragment)
        page.wait_for_function("start => document.getElementById('message').textContent.startsWith(start)", arg=reason)
        assert page.evaluate("[shown.moves, location.hash]") == [moves, fragment]
        assert page.evaluate("clock.left[0] <= 30 && movers.length === 3")
    page.evaluate("fragment => { location.hash = fragment; }", old)  # as it was before addresses named their game
    page.wait_for_function("clock.left[0] === 60 && game.actions.length === 2 && arrived()")
    assert page.inner_text("#message") == ""


def test_the_browser_goes_back_to_a_game_that_was_ended_or_cut(page):
    people(page)
    source = random.Random(5)
    for _ in range(2):
        click(page, source)
    moves = page.evaluate("shown.moves")
    page.click("#new")
    page.wait_for_function("shown.moves.length === 0 && arrived()")
    assert page.evaluate("location.hash") == ""
    page.go_back()
    page.wait_for_function("shown.moves.length === 2 && arrived()")
    page.click("#begin")
    page.wait_for_function("shown.moves.length === 0 && arrived()")
    page.click("#forward")
    page.wait_for_function("shown.moves.length === 1 && arrived()")
    page.keyboard.press("u")
    page.wait_for_function("game.actions.length === 0 && arrived()")
    page.go_back()
    page.wait_for_function("shown.moves.length === 2 && arrived()")
    assert page.evaluate("shown.moves") == moves


def test_the_rules_and_the_notation_are_told(page):
    if page.evaluate("about.game") == "hexapawn":
        assert not page.is_visible("#rules")
        return
    assert page.inner_text("#writing").startswith("A move is")
    page.click("#rules summary")
    assert page.inner_text("#how") == page.evaluate("about.rules") != ""


def test_a_click_while_a_position_is_on_its_way_plays_nothing(page):
    people(page)
    click(page, random.Random(13))
    text = page.evaluate("shown.text")
    page.click("#new")
    page.wait_for_function("shown.moves.length === 0 && arrived()")
    page.evaluate(
        "([start, action]) => { begin(start); play(action); }", [text, page.evaluate("shown.legal[0].action")]
    )
    page.wait_for_function("shown.text === game.start && arrived()")
    assert page.evaluate("game.actions.length") == 0
    assert page.inner_text("#message") == ""


def test_the_keyboard_stays_among_the_buttons_at_both_ends_of_a_game(page):
    people(page)
    click(page, random.Random(13))
    for button, moves, beside in (
        ("back", 0, "forward"),
        ("end", 1, "back"),
        ("begin", 0, "forward"),
        ("forward", 1, "back"),
    ):
        page.focus(f"#{button}")
        page.keyboard.press("Enter")
        page.wait_for_function(f"shown.moves.length === {moves} && arrived()")
        page.wait_for_function(f"document.activeElement.id === '{beside}'")


def test_sound_is_off_until_it_is_asked_for(page):
    people(page)
    click(page, random.Random(9))
    assert page.evaluate("audio") is None
    page.click("#sound")
    assert page.get_attribute("#sound", "aria-pressed") == "true"
    assert page.evaluate("audio.constructor.name") == "AudioContext"


def test_a_turned_board_is_played_upside_down_with_its_texts_upright(page):
    people(page)
    first = page.locator("#squares button").first
    before = first.bounding_box()
    page.click("#turn")
    board, after = page.locator("#board").bounding_box(), first.bounding_box()
    middle = 2 * board["x"] + board["width"]
    assert after["x"] + after["width"] == pytest.approx(middle - before["x"], abs=1)
    click(page, random.Random(10))
    angle = "each => { const m = each.getScreenCTM(); return Math.sign(m.a); }"
    assert page.eval_on_selector_all("#picture svg text", f"all => all.map({angle})") != []
    assert set(page.eval_on_selector_all("#picture svg text", f"all => all.map({angle})")) == {1}
    page.focus("#squares button")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("document.activeElement.dataset.square") == "1"
    page.click("#turn")
    assert first.bounding_box() == before


def test_the_keyboard_keeps_its_square_and_the_last_move_is_told(page):
    people(page)
    move = page.evaluate("shown.legal.find(each => each.squares.length)")
    for square in move["squares"]:
        page.focus(f'#squares button[data-square="{square}"]')
        page.keyboard.press("Enter")
    page.wait_for_function("game.ply === 1 && arrived() && shown.moves.length === 1")
    assert page.evaluate("document.activeElement.dataset.square") == str(move["squares"][-1])
    assert page.evaluate("document.activeElement.tabIndex") == 0
    assert page.text_content("#status").startswith(f"{move['move']}. ")
