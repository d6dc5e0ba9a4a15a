"""The page without a server in Chromium: an agent that comes with azjax plays in the browser."""

import functools
import http.server
import random
import threading

import pytest
from clicking import CHROMIUM, play_to_the_end, settled

from azjax.commands.play import play_command

AGENTS = ("tictactoe", "santorini_3x3", "connect_four", "brandub")

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")]


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="module", params=AGENTS)
def folder(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("exhibition") / request.param
    play_command([request.param, "--export", str(folder), "--num-simulations", "32"])
    return folder


@pytest.fixture(scope="module")
def address(folder):
    handler = functools.partial(Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture
def page(browser, address):
    page = browser.new_page(reduced_motion="reduce")
    page.errors, page.asked = [], []
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    page.on("console", lambda message: page.errors.append(message.text) if message.type == "error" else None)
    page.on("request", lambda request: page.asked.append(request.url))
    page.goto(address)
    settled(page)
    yield page
    assert page.errors == []
    assert all(url.startswith((address, "data:", "blob:")) for url in page.asked)
    page.close()


def test_a_person_plays_the_agent_to_the_end_and_reviews_the_game(page):
    # The agent searches at its first moves; then a person plays both sides, as a game of searches would take long.
    source = random.Random(1)
    for _ in range(2):
        before = page.evaluate("game.ply")
        move = source.choice(page.evaluate("shown.legal"))
        for square in move["squares"]:
            page.click(f'#squares button[data-square="{square}"]')
        page.wait_for_function(f"game.ply >= {before + 2} || shown.over", timeout=120_000)
        settled(page)
        if page.evaluate("shown.over"):
            break
    assert "simulations" in page.inner_text("#thought")
    page.select_option("#player1", "person")
    play_to_the_end(page, source)
    assert "won" in page.inner_text("#status") or "draw" in page.inner_text("#status")
    page.click("#begin")
    page.select_option("#strength", "16")
    page.click("#review")
    page.wait_for_function("/give|No move/.test(document.getElementById('reviewed').textContent)", timeout=300_000)


def test_the_picture_tells_the_position_in_words(page):
    page.select_option("#player1", "person")
    settled(page)
    move = page.evaluate("shown.legal[0].move")
    page.evaluate("play(shown.legal[0].action)")
    page.wait_for_function("shown.moves.length === 1")
    label = page.get_attribute("#picture svg", "aria-label")
    assert label.startswith(f"{page.evaluate('about.game')}: ")
    assert label.endswith(f"to move. Moves: {move}")


def test_a_page_that_was_opened_from_the_disk_says_what_it_needs(browser, folder):
    page = browser.new_page()
    page.goto((folder / "index.html").as_uri())
    page.wait_for_function("document.getElementById('message').textContent.includes('needs a web server')")
    page.close()


def test_levels_hints_and_analysis_answer(page):
    page.click("#hint")
    page.wait_for_function("document.getElementById('thought').textContent.startsWith('Hint')", timeout=120_000)
    for level, said in (("medium", "the network alone"), ("easy", "the network alone")):
        page.select_option("#player1", "person")
        page.click("#new")
        settled(page)
        page.select_option("#player0", level)
        page.wait_for_function("game.ply === 1 && shown.moves.length === 1", timeout=60_000)
        assert said in page.inner_text("#thought")
        page.select_option("#player0", "person")
        settled(page)
    page.click("#analyze")
    page.wait_for_function("/simulations/.test(document.getElementById('thought').textContent)", timeout=60_000)
    page.click("#analyze")
    settled(page)


def test_what_needs_a_server_is_not_shown_and_the_address_holds_the_game(page, address, browser):
    for name in ("setting", "notation", "branches", "book"):
        assert page.locator(f"#{name}").is_hidden()
    page.select_option("#player1", "person")
    settled(page)
    page.evaluate("play(shown.legal[0].action)")
    page.wait_for_function("shown.moves.length === 1")
    again = browser.new_page()
    again.goto(page.evaluate("location.href"))
    again.wait_for_function("shown && shown.moves.length >= 1")  # there the agent replies
    assert again.evaluate("game.actions")[:1] == page.evaluate("game.actions")
    again.close()
