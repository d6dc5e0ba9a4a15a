"""Playing on the page in Chromium, as people do."""

import shutil

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


def launch(playwright):
    """Chromium without a window."""
    return playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])


def click(page, source):
    """Clicks one legal move, square by square, or its button; `source` (of `random`) draws it."""
    before = page.evaluate("game.ply")
    move = source.choice(page.evaluate("shown.legal"))
    for square in move["squares"]:
        page.click(f'#squares button[data-square="{square}"]')
    if not move["squares"]:
        page.get_by_role("group", name="legal moves").get_by_role("button", name=move["move"]).click()
    page.wait_for_function(f"game.ply > {before} && shown.moves.length === game.ply")
    assert page.evaluate("shown.moves")[before] == move["move"]


def settled(page):
    """Waits until it is the turn of a person, or the game is over."""
    page.wait_for_function("shown.over || (game.ply === shown.moves.length && mine())")


def play_to_the_end(page, source):
    """Clicks moves until the game is over; returns how many."""
    for plies in range(400):
        settled(page)
        if page.evaluate("shown.over"):
            return plies
        click(page, source)
    raise AssertionError("the game did not end")


def people(page):
    """Lets people play both sides."""
    for seat in (0, 1):
        page.select_option(f"#player{seat}", "person")
    page.wait_for_function("shown !== null")
