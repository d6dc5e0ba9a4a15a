"""The page of a run, read as a browser and a reader of Markdown would."""

import json
import re
from html.parser import HTMLParser

import jax
import numpy as np
import pytest
from small_run import SMALL

from azjax.evaluation import optimal_player, random_player, solve
from azjax.games.registry import make
from azjax.report import gather, write_report
from azjax.report.learning_curve import progress_figure
from azjax.report.page import facts, throughput_rows
from azjax.report.run_report import calibrate
from azjax.report.sample_games import sample_games
from azjax.runs import RunError, train

CONNECT2, TICTACTOE = make("connect2"), make("tictactoe")


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "a<b>"
    train(CONNECT2, SMALL, folder)
    return gather(folder, num_simulations=8, num_games=20, num_sample_games=2)


@pytest.fixture(scope="module")
def page(report):
    return write_report(report).read_text()


class _Tags(HTMLParser):
    """Elements that are open at the end, and addresses that are asked for."""

    def __init__(self):
        super().__init__()
        self.open, self.asked = [], []

    def handle_starttag(self, tag, attributes):
        self.asked += [value for name, value in attributes if name in ("src", "href") and not value.startswith("#")]
        if tag not in ("meta", "input", "br", "link", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_whole_and_asks_for_nothing_else(page):
    tags = _Tags()
    tags.feed(page)
    assert tags.open == []
    assert tags.asked == []
    assert "https://" not in re.sub(
        r"xmlns\S*|https?://(www\.w3\.org|purl\.org|creativecommons\.org|matplotlib\.org)\S*", "", page
    )
    assert "a&lt;b&gt;" in page
    assert "a<b>" not in page


def test_the_page_tells_what_was_run_and_how_strong_it_is(report, page):
    told = facts(report)
    assert told["game"].startswith("connect2")
    assert told["training"].startswith(f"{SMALL.iterations} iterations in ")
    for fact in told.values():
        assert fact.replace("'", "&#39;") in page
    assert report.changed_settings["iterations"] == (SMALL.iterations, 200)
    assert "network + 8 simulations" in page
    assert "20 games against optimal" in page


def test_the_games_of_the_page_can_be_clicked_through(report, page):
    games = json.loads(re.search(r'<script type="application/json" id="games">(.*?)</script>', page, re.S).group(1))
    assert len(games) == 2
    for shown, played in zip(games, report.games, strict=True):
        assert len(shown["frames"]) == len(shown["moves"]) + 1 == len(played.states)
        assert all(frame.startswith("<svg") for frame in shown["frames"])
        assert all(share is None or 0 <= share <= 1 for share in shown["expected"])
    assert "after 2 random moves" in games[1]["title"]
    assert games[1]["expected"][:2] == [None, None]


def test_the_page_tells_where_the_time_goes(report, page):
    rows = throughput_rows(report)
    assert [part for part, *_ in rows] == ["network", "tree and rules", "optimiser steps"]
    assert sum(share for _, share, _, _ in rows) == pytest.approx(1)
    # Four games by four plies, of which each judges a root and four leaves; two steps of eight positions.
    assert rows[0][3] == f"{4 * 4 * 5 / report.throughput.network:,.0f} positions judged"
    assert rows[2][3] == f"{2 * 8 / report.throughput.optimiser_steps:,.0f} positions learned from"
    for part, _, seconds, rate in rows:
        assert f"{part}</td>" in page
        assert f">{seconds}</td>" in page
        assert f">{rate}</td>" in page


def test_what_was_not_measured_is_not_drawn(report):
    assert len(progress_figure(report.rows, report.timing).axes) == 3
    old = [{name: value for name, value in row.items() if not name.endswith("_accuracy")} for row in report.rows]
    assert len(progress_figure(old, report.timing).axes) == 2


def test_markdown_tells_the_same_with_pictures_beside(report, page):
    folder = report.folder
    text = (folder / "report.md").read_text()
    for picture in re.findall(r"\]\((.*?)\)", text):
        assert (folder / picture).read_text().startswith("<svg")
    assert "| 20 games against optimal |" in text
    title = re.search(r"<h3>(Game 2, .*?)</h3>", page).group(1)
    assert f"2. {title}: " in text


def test_sample_games_follow_the_rules():
    games = sample_games(TICTACTOE, random_player(TICTACTOE), 20, jax.random.key(0), opening_plies=3)
    for number, played in enumerate(games):
        state = TICTACTOE.init(jax.random.key(0))
        for action, after in zip(played.actions, played.states[1:], strict=True):
            state = TICTACTOE.step(state, np.int32(action))
            assert TICTACTOE.to_text(state) == TICTACTOE.to_text(after)
        assert bool(state.terminated)
        assert played.result == state.rewards[0]
        opening = [preferences is None for preferences in played.preferences]
        assert sum(opening) == (3 if number else 0)
        assert len(played.values) == len(played.actions)
    assert len({tuple(played.actions) for played in games}) == 20


def test_exact_values_are_honest_and_random_play_has_none():
    best = optimal_player(solve(CONNECT2))
    found = calibrate(CONNECT2, best, 8, jax.random.key(0))
    assert found.predicted == found.scores == (-1, 1)
    # Whoever moves first wins in three plies: two positions of the winner and one of the loser.
    assert found.positions == (8, 16)
    for score, (low, high) in zip(found.scores, found.intervals, strict=True):
        assert low <= score <= high
        assert high - low < 0.7


def test_what_cannot_be_reported_is_refused(tmp_path, report):
    with pytest.raises(RunError, match="is not a run folder"):
        gather(tmp_path)
    (tmp_path / "config.json").write_bytes((report.folder / "config.json").read_bytes())
    with pytest.raises(ValueError, match="has no metrics to report yet"):
        gather(tmp_path)
    with pytest.raises(ValueError, match="num_sample_games must be at least 1, got 0"):
        gather(report.folder, num_sample_games=0)
