"""The page in Chromium: clocks, resigning, and moves that are taken back."""

import random

import pytest
from clicking import CHROMIUM, click, people

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium"),
    # A move is one click or two, and in Othello a player may have to pass.
    pytest.mark.parametrize("address", ["connect_four", "othello", "santorini"], indirect=True),
]


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


def test_a_move_after_the_time_ran_out_is_not_played(page):
    people(page)
    page.select_option("#clock", "1")
    page.wait_for_function("clock.side === 0")
    page.evaluate("clock.left[0] = 1e-6; play(shown.legal[0].action)")
    page.wait_for_function("document.getElementById('status').textContent.includes('ran out of time')")
    assert page.evaluate("game.actions.length") == 0


def test_a_hint_while_one_looks_back_takes_none_of_the_agents_time(page):
    page.select_option("#clock", "1")
    click(page, random.Random(14))
    page.wait_for_function("shown.over || (mine() && game.actions.length >= 2)")
    page.evaluate("jump(1)")
    page.wait_for_function("shown.moves.length === 1 && arrived()")
    page.click("#hint")
    page.wait_for_function("document.getElementById('thought').textContent.startsWith('Hint')")
    assert page.evaluate("clock.side === null || people(clock.side)")


def test_seconds_that_are_no_limit_are_refused(page):
    page.evaluate("$('seconds').addEventListener('invalid', () => { window.complained = true; })")
    for seconds, is_refused in (("0.25", False), ("0", True), ("2", False), ("-1", True)):
        page.evaluate("window.complained = false")
        page.fill("#seconds", seconds)
        page.press("#seconds", "Enter")
        page.locator("#seconds").blur()
        assert page.evaluate("complained") == is_refused


def test_at_the_start_of_a_game_nothing_can_be_taken_back(page):
    people(page)
    click(page, random.Random(15))
    page.evaluate("jump(0)")
    page.wait_for_function("shown.moves.length === 0 && arrived()")
    assert page.is_disabled("#undo")
    page.keyboard.press("u")
    assert page.evaluate("game.actions.length") == 1
