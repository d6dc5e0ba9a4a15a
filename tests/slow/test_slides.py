"""The slides of game records, operated in Chromium."""

import shutil

import pytest

from azjax.evaluation import GameRecord
from azjax.games.registry import make

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")]

TICTACTOE = make("tictactoe")
FIRST = GameRecord(TICTACTOE, ("Ann", "Bob"), ("a1", "a2", "b1", "b2", "c1"), (1.0, -1.0))
SECOND = GameRecord(TICTACTOE, ("Ann", "Bob"), ("b2", "c3"), None)


def slides(record):
    """What a notebook shows of a record."""
    return record._repr_mimebundle_()["text/html"]


@pytest.fixture
def open_page():
    """Opens a page with both games; errors and requests of the page fail the test."""
    from playwright.sync_api import sync_playwright

    problems = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])

        def open_it(**options):
            page = browser.new_page(reduced_motion="reduce", **options)
            page.on("pageerror", lambda error: problems.append(str(error)))
            page.on("request", lambda request: problems.append(request.url))
            page.set_content(f"<!doctype html>{slides(FIRST)}{slides(SECOND)}")
            return page

        yield open_it
        browser.close()
    assert problems == []


def visible(page, number=0):
    """The number of visible pieces on a board."""
    pieces = page.locator(".azjax-slideshow").nth(number).locator(".board .pieces > *")
    return sum(
        float(opacity) for opacity in pieces.evaluate_all("all => all.map(one => getComputedStyle(one).opacity)")
    )


def ply(page, number=0):
    return page.locator(".azjax-slideshow").nth(number).locator("output").inner_text()


def test_slider_buttons_keys_and_moves_change_the_slide_of_one_game_alone(open_page):
    page = open_page()
    show = page.locator(".azjax-slideshow").nth(0)
    assert (ply(page), visible(page)) == ("5 of 5", 5)
    show.locator("input").evaluate("slider => { slider.value = 2; slider.dispatchEvent(new Event('input')); }")
    assert (ply(page), visible(page)) == ("2 of 5", 2)
    show.locator("[data-go=back]").click()
    assert (ply(page), visible(page)) == ("1 of 5", 1)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert (ply(page), visible(page)) == ("3 of 5", 3)
    page.keyboard.press("Home")
    assert (ply(page), visible(page)) == ("0 of 5", 0)
    assert "X to move" in show.locator(".board svg").get_attribute("aria-label")
    show.get_by_role("button", name="b2").click()
    assert (ply(page), visible(page)) == ("4 of 5", 4)
    assert show.locator("li button[aria-current]").inner_text() == "b2"
    assert "Last move b2" in show.locator(".board svg").get_attribute("aria-label")
    show.locator("input").focus()
    page.keyboard.press("ArrowRight")
    assert ply(page) == "5 of 5"
    assert (ply(page, 1), visible(page, 1)) == ("2 of 2", 2)


def test_the_play_button_runs_to_the_end(open_page):
    page = open_page()
    show = page.locator(".azjax-slideshow").nth(1)
    show.get_by_role("button", name="play").click()
    assert ply(page, 1) == "0 of 2"
    show.get_by_role("button", name="pause").wait_for()
    page.wait_for_function("document.querySelectorAll('output')[1].value === '2 of 2'")
    show.get_by_role("button", name="play").wait_for()
    assert visible(page, 1) == 2


def test_without_scripts_the_last_slide_is_visible_and_controls_are_not(open_page):
    page = open_page(java_script_enabled=False)
    shapes = page.locator(".board").first.locator(".pieces > *")
    assert shapes.count() == 5
    assert all(shapes.nth(number).is_visible() for number in range(5))
    assert not page.locator(".controls").first.is_visible()
    assert page.locator("li button:enabled").count() == 0


def test_slides_fit_a_phone_and_follow_dark_mode(open_page):
    colors = []
    for scheme in ("light", "dark"):
        page = open_page(color_scheme=scheme, viewport={"width": 360, "height": 700})
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        colors.append(page.locator(".azjax-slideshow").first.evaluate("show => getComputedStyle(show).backgroundColor"))
    assert colors[0] != colors[1]
