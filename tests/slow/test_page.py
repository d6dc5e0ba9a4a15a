"""The page in Chromium, as people use it. The last game is registered by a file outside the package."""

import random
import threading
import time

import jax
import pytest
import uvicorn
from clicking import CHROMIUM, click, play_to_the_end
from examples import games_forgotten, load_example

from azjax.evaluation import optimal_player, play_match, random_player, records_of, solve
from azjax.games.registry import make
from azjax.play.book import Book
from azjax.play.search_pool import SearchPool
from azjax.play.server import make_app
from azjax.play.session import PlaySession
from azjax.search import AlphaZero, evaluators

GAMES = {
    "chomp": {"columns": 4, "rows": 3},
    "tictactoe": {},
    "connect2": {},
    "mnk": {"columns": 5, "rows": 4, "in_a_row": 3},
    "connect_four": {},
    "hex": {"size": 4, "swap": True},
    "othello": {"size": 4},
    "santorini": {"size": 3, "workers": 1},
    "brandub": {},
    "hnefatafl": {},
    "breakthrough": {"columns": 4, "rows": 5},
    "hexapawn": {},
}

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")]


@pytest.fixture(scope="module", autouse=True)
def hexapawn(tmp_path_factory):
    """Registers the game of the docs while these tests run."""
    with games_forgotten():
        load_example("hexapawn", tmp_path_factory.mktemp("elsewhere"))
        yield


@pytest.fixture(scope="module", params=GAMES)
def address(request):
    """Where a server of the game listens."""
    game = make(request.param, **GAMES[request.param])
    pool = SearchPool(AlphaZero(game, evaluators.uniform(game), 16), max_simulations=64)
    pool.start()
    exact = optimal_player(solve(game)) if request.param in ("tictactoe", "connect2") else None
    match = play_match(game, random_player(game), random_player(game), 4, jax.random.key(0))
    book = Book(game, records_of(game, match))
    session = PlaySession(game, "agent", pool, {"easy": random_player(game)}, exact, book=book)
    session.choose_move({"level": "easy", "actions": []})
    server = uvicorn.Server(uvicorn.Config(make_app(session), port=0, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()
    pool.close()


@pytest.fixture
def page(browser, address):
    """The page, ready; nothing may go wrong on it, and it may ask nobody else."""
    page = browser.new_page(
        viewport={"width": 1200, "height": 900},
        color_scheme="light",
        reduced_motion="reduce",
        bypass_csp=True,  # waiting for a condition evaluates it
    )
    page.set_default_timeout(60_000)
    wrong = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda asked: asked.url.startswith((address, "data:", "blob:")) or wrong.append(asked.url))
    page.on("console", lambda told: told.type == "error" and "400" not in told.text and wrong.append(told.text))
    page.goto(address)
    page.wait_for_function("shown !== null")
    yield page
    page.close()
    assert wrong == []


def people(page):
    for seat in (0, 1):
        page.select_option(f"#player{seat}", "person")
    page.wait_for_function("shown !== null")


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
    page.wait_for_function("shown.moves.length === 1")
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
    page.click("#unplaced")
    page.wait_for_function("start => document.getElementById('text').textContent === start", arg=start)
    assert page.inner_text("#message") == ""
    click(page, random.Random(0))
    ply_text = page.inner_text("#text")
    page.click("#place")
    page.wait_for_function("!document.getElementById('placed').disabled")
    page.click("#placed")
    page.wait_for_function("game.start !== null && shown.moves.length === 0")
    assert page.inner_text("#text") == ply_text


def test_a_game_is_saved_loaded_and_reviewed(page):
    people(page)
    source = random.Random(3)
    for _ in range(2):
        click(page, source)
    moves = page.evaluate("shown.moves")
    page.click("summary:has-text('Set up')")
    with page.expect_download() as download:
        page.click("#save")
    line = download.value.path().read_text()
    assert page.input_value("#line") == line.strip()
    page.click("#new")
    page.wait_for_function("shown.moves.length === 0")
    page.click("#take")
    page.wait_for_function("shown.moves.length === 2")
    assert page.evaluate("shown.moves") == moves
    page.select_option("#strength", "16")
    page.click("#review")
    page.wait_for_function("document.getElementById('reviewed').textContent.includes(' away ')")
    assert page.evaluate("losses.size") == 2


def test_the_agent_shows_what_it_thinks_and_gives_hints(page):
    people(page)
    page.click("#analyze")
    page.wait_for_function("document.querySelectorAll('#policy tr').length > 0")
    page.wait_for_function("document.querySelectorAll('#tree > *').length > 0")
    assert "simulations" in page.inner_text("#thought")
    assert page.inner_text("#variation").startswith("It expects ")
    page.click("#hint")
    page.wait_for_function("document.getElementById('thought').textContent.startsWith('Hint: ')")


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
    other.goto(page.url.split("#")[0] + "#%7B%22actions%22%3A%5B999999%5D%7D")
    other.reload()
    other.wait_for_function("shown !== null && shown.moves.length === 0")
    other.close()


def test_the_rules_and_the_notation_are_told(page):
    if page.evaluate("about.game") == "hexapawn":
        assert not page.is_visible("#rules")
        return
    assert page.inner_text("#writing").startswith("A move is")
    page.click("#rules summary")
    assert page.inner_text("#how") == page.evaluate("about.rules") != ""


def test_a_game_is_resigned_by_a_second_press(page, browser):
    people(page)
    click(page, random.Random(6))
    loser, names = page.evaluate("shown.movers.at(-1)"), page.evaluate("about.players")
    page.click("#resign")
    assert page.evaluate("game.result") is None
    page.click("#resign")
    page.wait_for_function("document.getElementById('status').textContent.includes('resigned')")
    assert page.inner_text("#status").lower() == f"{names[1 - loser]} won: {names[loser]} resigned".lower()
    assert page.evaluate("going([]).length") == 0
    moves = page.evaluate("game.actions.length")
    other = browser.new_page(bypass_csp=True)
    other.goto(page.url)
    other.wait_for_function("shown !== null && game.result !== null")
    other.close()
    page.click("summary:has-text('Set up')")
    with page.expect_download() as download:
        page.click("#save")
    assert '"end": "resignation"' in download.value.path().read_text()
    page.click("#undo")  # takes back the resignation alone
    page.wait_for_function("mine()")
    assert page.evaluate("game.actions.length") == moves
    click(page, random.Random(6))


def test_a_clock_runs_for_the_side_to_move_and_ends_the_game(page):
    people(page)
    page.select_option("#clock", "1")
    page.wait_for_function("clock.side === 0 && clock.left[0] < 60")
    assert page.inner_text("#clocks").split()[1] == "1:00"
    click(page, random.Random(7))
    page.wait_for_function("arrived() && clock.side === shown.movers.at(-1)")
    page.evaluate("clock.left[clock.side] = 0.1")
    page.wait_for_function("document.getElementById('status').textContent.includes('ran out of time')")
    assert page.evaluate("going([]).length") == 0
    page.click("#undo")  # who ran out of time goes on without a clock
    page.wait_for_function("mine() && game.result === null")
    assert not page.is_visible("#clocks")
    page.click("#new")
    page.wait_for_function("mine() && clock.left[1] === 60")


def test_looking_back_stops_the_clock_of_an_agent_and_the_game_goes_on(page):
    page.select_option("#clock", "1")
    page.select_option("#strength", "64")
    click(page, random.Random(11))
    page.keyboard.press("Home")
    page.wait_for_function("shown.moves.length === 0 && arrived()")
    assert page.evaluate("clock.side === null || people(clock.side)")
    assert page.is_disabled("#hint") == page.evaluate("!(game.ply < game.actions.length || mine() || shown.over)")
    page.keyboard.press("End")
    page.wait_for_function("shown.over || (mine() && game.actions.length >= 2)")


def test_taking_back_before_the_answer_is_there_keeps_the_game(page):
    page.select_option("#player0", "person")
    click(page, random.Random(12))
    page.wait_for_function("shown.over || (mine() && game.actions.length >= 2)")
    page.evaluate("jump(0)")
    page.wait_for_function("shown.moves.length === 0 && arrived()")
    count = page.evaluate("game.actions.length")
    page.evaluate("jump(game.actions.length); takeBack()")
    assert page.evaluate("game.actions.length") == count


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


def test_a_review_from_the_start_values_every_ply_for_its_player(page):
    people(page)
    source = random.Random(14)
    for _ in range(3):
        click(page, source)
    page.select_option("#strength", "16")
    page.click("#review")
    page.wait_for_function("document.getElementById('reviewed').textContent.includes(' away ')")
    values = page.evaluate("[...expected]")
    page.click("#begin")
    page.wait_for_function("shown.moves.length === 0 && arrived()")
    page.click("#review")
    page.wait_for_function(
        "losses.size === game.actions.length && document.getElementById('reviewed').textContent.includes(' away ')"
    )
    assert page.evaluate("[...expected]") == values


def test_a_bad_move_and_a_better_one_are_shown(page):
    people(page)
    click(page, random.Random(8))
    page.click("#begin")
    page.wait_for_function("shown.moves.length === 0 && arrived()")
    other = "shown.legal.find(each => each.action !== game.actions[0]).action"
    page.evaluate(f"losses.set(0, 1.5); better.set(0, {other}); verdict()")
    best = page.evaluate("shown.legal.find(each => each.action !== game.actions[0]).move")
    played = page.evaluate("names[0]")
    assert page.inner_text("#verdict") == f"1. {played} gives away 0.75 of a point; {best} is better"
    assert page.locator("#arrows .better").count() == 1
    assert page.locator("#arrows .played").count() == 1
    page.click("#end")
    page.wait_for_function("shown.moves.length === 1 && arrived()")
    assert page.locator("#arrows *").count() == 0
    assert not page.is_visible("#verdict")


def test_the_exact_values_of_a_solved_game_are_shown(page):
    people(page)
    values = page.inner_text("#exact")
    game = page.evaluate("about.game")
    expected = {"tictactoe": "Exactly: a3 b3 c3 a2 b2 c2 a1 b1 c1 draw", "connect2": "Exactly: b1 c1 win; a1 d1 draw"}
    assert values == expected.get(game, "")


def test_sound_is_off_until_it_is_asked_for(page):
    people(page)
    click(page, random.Random(9))
    assert page.evaluate("audio") is None
    page.click("#sound")
    assert page.get_attribute("#sound", "aria-pressed") == "true"
    assert page.evaluate("audio.constructor.name") == "AudioContext"


def test_the_book_tells_what_was_played_here_and_how_it_ended(page):
    people(page)
    rows = [row.split() for row in page.locator("#book tr").all_inner_texts()]
    assert sum(int(row[1]) for row in rows) == page.evaluate("about.book") == 4
    assert {row[0] for row in rows} <= set(page.evaluate("shown.legal.map(each => each.move)"))
    page.fill("#move", rows[0][0])
    page.keyboard.press("Enter")
    page.wait_for_function("shown.moves.length === 1")
    replies = [row.split() for row in page.locator("#book tr").all_inner_texts()]
    assert sum(int(row[1]) for row in replies) == int(rows[0][1])


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


def test_a_move_after_the_time_ran_out_is_not_played(page):
    people(page)
    page.select_option("#clock", "1")
    page.wait_for_function("clock.side === 0")
    page.evaluate("clock.left[0] = 1e-6; play(shown.legal[0].action)")
    page.wait_for_function("document.getElementById('status').textContent.includes('ran out of time')")
    assert page.evaluate("game.actions.length") == 0
