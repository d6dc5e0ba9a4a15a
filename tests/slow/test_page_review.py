"""The page in Chromium: what the agent thinks, reviews, exact values and the book."""

import json
import random

import pytest
from clicking import CHROMIUM, click, people

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")]


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


def test_the_first_game_of_a_file_keeps_its_players_and_its_random_opening_until_a_move(page):
    people(page)
    source = random.Random(3)
    for _ in range(2):
        click(page, source)
    page.click("summary:has-text('Set up')")
    page.click("#save")
    page.wait_for_function("document.getElementById('line').value !== ''")
    record = json.loads(page.input_value("#line")) | {"players": ["Ann", "Bob"], "opening_plies": 1}
    text = f"{json.dumps(record)}\n" * 3
    page.set_input_files("#file", {"name": "games.jsonl", "mimeType": "application/json", "buffer": text.encode()})
    page.wait_for_function("document.getElementById('message').textContent === 'the first of 3 games' && mine()")

    def saved():
        page.fill("#line", "")
        page.click("#save")
        page.wait_for_function("document.getElementById('line').value !== ''")
        return json.loads(page.input_value("#line"))

    assert saved() == record
    click(page, source)
    later = saved()
    assert (later["players"], later["opening_plies"]) == (["person", "person"], 0)


def test_the_agent_shows_what_it_thinks_and_gives_hints(page):
    people(page)
    page.click("#analyze")
    page.wait_for_function("document.querySelectorAll('#policy tr').length > 0")
    page.wait_for_function("document.querySelectorAll('#tree > *').length > 0")
    assert "simulations" in page.inner_text("#thought")
    assert page.inner_text("#variation").startswith("It expects ")
    page.click("#hint")
    page.wait_for_function("document.getElementById('thought').textContent.startsWith('Hint: ')")


def test_what_is_pressed_while_a_position_is_on_its_way_loses_nothing(page):
    people(page)
    page.evaluate("play(shown.legal[0].action); for (const id of ['hint', 'review', 'place']) $(id).click()")
    page.wait_for_function("shown.moves.length === 1 && arrived()")
    assert page.evaluate("edits") is None
    assert page.inner_text("#thought") == "nothing yet"
    assert page.inner_text("#reviewed") == ""


def test_an_analysis_that_is_stopped_keeps_what_it_found(page):
    people(page)
    page.click("#analyze")
    page.wait_for_function("document.querySelectorAll('#tree > *').length > 0")
    page.click("#analyze")
    assert page.get_attribute("#analyze", "aria-pressed") == "false"
    assert "simulations" in page.inner_text("#thought")
    assert page.evaluate("document.querySelectorAll('#policy tr').length") > 0


def test_an_open_tree_gives_way_to_that_of_the_next_position(page):
    people(page)
    page.click("#analyze")
    page.wait_for_function("document.querySelectorAll('#tree > *').length > 0")
    page.evaluate("document.querySelector('#tree details')?.setAttribute('open', '')")
    click(page, random.Random(2))
    page.wait_for_function("thoughtAt === 1 && document.querySelectorAll('#tree > *').length > 0")
    assert page.locator("#tree details[open]").count() == 0


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
    expected = {
        "tictactoe": "With best play: a3 b3 c3 a2 b2 c2 a1 b1 c1 draw",
        "connect2": "With best play: b1 c1 win; a1 d1 draw",
    }
    assert values == expected.get(game, "")


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
