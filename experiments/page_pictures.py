"""Takes pictures of the page on which people play.

Serves the page of each game, goes to the position of `pictures.py`, reviews every move, analyzes the position and takes
a picture in Chromium: in light colors, for Santorini in dark colors too, and for Brandub also on a phone. It needs the
extras `play` and `dev`, Chromium, and about three minutes on 2 CPU cores.

    python experiments/page_pictures.py

Writes docs/pictures/page_*.png.
"""

import contextlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pictures import PICTURES, POSITIONS, play
from study import refuse_unknown, run_study

import azjax

# The player of each picture's game.
PLAYERS = {
    "tictactoe": ["tictactoe"],
    "connect2": ["connect2"],
    "connect_four": ["connect_four"],
    "gomoku": ["random", "--game", "mnk", "--columns", "15", "--rows", "15", "--in-a-row", "5"],
    "santorini": ["santorini_5x5"],
    "brandub": ["brandub"],
}
DESK, PHONE = {"width": 1200, "height": 900}, {"width": 390, "height": 844}
ALSO: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "santorini": [("dark", {"viewport": DESK, "color_scheme": "dark"})],
    "brandub": [("phone", {"viewport": PHONE, "color_scheme": "light", "device_scale_factor": 2})],
}


def main(games: tuple[str, ...] = tuple(PLAYERS)) -> None:
    """Takes the pictures.

    Args:
      games: the games to take pictures of, by their files.
    """
    refuse_unknown("game", games, PLAYERS)
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for file, name, options, moves, _ in POSITIONS:
            if file not in games:
                continue
            _, actions = play(azjax.make(name, **options), moves)
            with served(PLAYERS[file]) as address:
                looks = [("", {"viewport": DESK, "color_scheme": "light"}), *ALSO.get(file, [])]
                for look, context in looks:
                    page = browser.new_page(reduced_motion="reduce", bypass_csp=True, **context)
                    page.goto(address)
                    show(page, actions)
                    path = PICTURES / f"page_{file}{'_' * bool(look)}{look}.png"
                    page.screenshot(path=path, full_page=True)
                    page.close()
                    print(path)
        browser.close()


@contextlib.contextmanager
def served(player: list[str]) -> Iterator[str]:
    """Serves the page of a player and yields its address."""
    command = [str(Path(sys.executable).with_name("azjax")), "play", *player, "--web", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().split()[0]
        finally:
            server.terminate()


def show(page: Any, actions: list[int]) -> None:
    """Shows the last position of a game with its review and analysis."""
    page.set_default_timeout(120_000)
    page.wait_for_function("shown !== null")
    page.select_option("#player1", "person")
    page.evaluate("actions => begin(null, actions)", actions)
    page.wait_for_function("shown.moves.length === game.actions.length")
    page.click("#review")
    page.wait_for_function("document.getElementById('reviewed').textContent.includes(' away ')")
    page.click("#analyze")
    page.wait_for_function("/[1-9],[0-9]{3} sim|certain/.test(document.getElementById('thought').textContent)")
    page.click("#branches summary")
    page.wait_for_timeout(1500)


if __name__ == "__main__":
    run_study(main)
