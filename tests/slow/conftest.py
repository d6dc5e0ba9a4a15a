"""What the slow tests share. The last game of the page is registered by a file outside the package."""

import threading
import time

import jax
import pytest
import uvicorn
from clicking import launch
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


@pytest.fixture(scope="module")
def browser():
    """Chromium, while the tests of a module run."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = launch(playwright)
        yield found
        found.close()


@pytest.fixture(scope="module")
def hexapawn(tmp_path_factory):
    """Registers the game of the docs while these tests run."""
    with games_forgotten():
        load_example("hexapawn", tmp_path_factory.mktemp("elsewhere"))
        yield


@pytest.fixture(scope="module", params=GAMES)
def address(request, hexapawn):
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
