"""The report of a run in Chromium."""

import pytest
from clicking import CHROMIUM
from small_run import SMALL

from azjax.games.registry import make
from azjax.report import gather, write_report
from azjax.runs import train

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "small"
    train(make("connect2"), SMALL, folder)
    return write_report(gather(folder, num_simulations=8, num_games=4, num_sample_games=2)).read_text()


@pytest.fixture
def page(browser, text):
    page = browser.new_page(color_scheme="dark")
    page.set_content(text)
    yield page
    page.close()


def test_the_curve_has_the_value_of_a_board_at_the_ply_of_the_board(page):
    game = page.locator(".game").first
    values = page.evaluate("games[0].expected")
    points = game.locator("polyline").get_attribute("points").split()
    assert len(points) == len(values) > 0
    for ply, (point, share) in enumerate(zip(points, values, strict=True)):
        game.locator("input").fill(str(ply))
        x, y = (float(number) for number in point.split(","))
        assert x == pytest.approx(float(game.locator("line").nth(1).get_attribute("x1")))
        assert y == pytest.approx(50 - 50 * share)


def test_in_dark_colours_figures_are_inverted_and_the_tree_has_its_own(page):
    def filters(selector):
        return set(page.eval_on_selector_all(selector, "all => all.map(each => getComputedStyle(each).filter)"))

    assert filters(".figure > svg:not(.azjax-tree)") == {"invert(0.9) hue-rotate(180deg)"}
    assert filters(".azjax-tree, .azjax-tree svg") == {"none"}
