"""The report page of a run, parsed as HTML and as Markdown."""

import dataclasses
import json
import re
from html.parser import HTMLParser

import jax
import numpy as np
import pytest
from small_run import SMALL

from azjax.core.errors import RunError
from azjax.evaluation import optimal_player, random_player, solve
from azjax.games.registry import make
from azjax.report import boards, gather, write_report
from azjax.report.figures import learning_figures
from azjax.report.page import _turning_ply, facts, throughput_rows
from azjax.report.sample_games import calibrate, sample_games
from azjax.runs import train

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
    """Elements that were not closed, and references to other files."""

    def __init__(self):
        super().__init__()
        self.open, self.references = [], []

    def handle_starttag(self, tag, attributes):
        self.references += [
            value for name, value in attributes if name in ("src", "href") and not value.startswith("#")
        ]
        if tag not in ("meta", "input", "br", "link", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_well_formed_and_has_no_external_references(page):
    tags = _Tags()
    tags.feed(page)
    assert tags.open == []
    assert tags.references == []
    assert "https://" not in re.sub(
        r"xmlns\S*|https?://(www\.w3\.org|purl\.org|creativecommons\.org|matplotlib\.org)\S*", "", page
    )
    assert "a&lt;b&gt;" in page
    assert "a<b>" not in page


def test_the_page_shows_settings_and_strength(report, page):
    labels = facts(report)
    assert labels["game"].startswith("connect2")
    assert f" to iteration {SMALL.iterations}; this report is of checkpoint " in labels["training"]
    for fact in labels.values():
        assert fact.replace("'", "&#39;") in page
    assert report.changed_settings["iterations"] == (SMALL.iterations, 100)
    assert "network + 8 simulations" in page
    assert "20 games against optimal" in page


def test_the_page_contains_all_frames_of_its_games(report, page):
    games = json.loads(re.search(r'<script type="application/json" id="games">(.*?)</script>', page, re.S).group(1))
    assert len(games) == 2
    for shown, played in zip(games, report.games, strict=True):
        assert len(shown["frames"]) == len(shown["moves"]) + 1 == len(played.states)
        assert all(frame.startswith("<svg") for frame in shown["frames"])
        assert all(share is None or 0 <= share <= 1 for share in shown["expected"])
    assert "after 2 random moves" in games[1]["title"]
    assert games[1]["expected"][:2] == [None, None]


def test_a_game_without_pictures_is_shown_as_text(report, monkeypatch, tmp_path):
    monkeypatch.setattr(boards, "has_picture", lambda game: False)
    path = write_report(dataclasses.replace(report, folder=tmp_path, tree=None))
    games = json.loads(
        re.search(r'<script type="application/json" id="games">(.*?)</script>', path.read_text()).group(1)
    )
    assert games[0]["frames"][0] == f"<pre>{CONNECT2.draw(report.games[0].states[0])}</pre>"
    assert "tree.svg" not in (tmp_path / "report.md").read_text()
    assert not (tmp_path / "report" / "tree.svg").exists()


def test_the_page_shows_the_throughput_of_each_part(report, page):
    rows = throughput_rows(report)
    assert [part for part, *_ in rows] == ["network", "tree and rules", "optimizer steps"]
    assert sum(share for _, share, _, _ in rows) == pytest.approx(1)
    # Four games of four plies, each with evaluations of a root and four leaves; two steps of eight positions.
    assert rows[0][3] == f"{4 * 4 * 5 / report.throughput.network:,.0f} positions evaluated"
    assert rows[2][3] == f"{2 * 8 / report.throughput.optimizer_steps:,.0f} training positions"
    for part, _, seconds, rate in rows:
        assert f"{part}</td>" in page
        assert f">{seconds}</td>" in page
        assert f">{rate}</td>" in page


def test_missing_metrics_are_not_drawn(report):
    names = [*learning_figures(report.rows, report.timing)]
    assert {"loss", "results", "agreement", "plies", "speed"} <= set(names)
    old = [{name: value for name, value in row.items() if not name.endswith("_accuracy")} for row in report.rows]
    assert [*learning_figures(old, report.timing)] == [name for name in names if name != "agreement"]


def test_a_game_opens_where_its_value_changed_most(report):
    played = report.games[0]
    for values, ply in (([0.0, 0.1, -0.8, -0.9], 2), ([np.nan, np.nan, 0.5, 0.4], 3), ([np.nan] * 4, 4)):
        assert _turning_ply(played._replace(values=values, actions=[0] * 4)) == ply


def test_the_markdown_report_has_the_same_content_and_its_pictures_exist(report, page):
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


def test_the_values_of_optimal_play_are_calibrated():
    best = optimal_player(solve(CONNECT2))
    calibration = calibrate(CONNECT2, best, 8, jax.random.key(0))
    assert calibration.predicted == calibration.results == (-1, 1)
    # The first player wins in three plies: two positions of the winner and one of the loser.
    assert calibration.positions == (8, 16)
    for result, (low, high) in zip(calibration.results, calibration.intervals, strict=True):
        assert low <= result <= high
        assert high - low < 0.7


def test_a_folder_without_a_run_or_without_metrics_is_refused(tmp_path, report):
    with pytest.raises(RunError, match="is not a run folder"):
        gather(tmp_path)
    (tmp_path / "config.json").write_bytes((report.folder / "config.json").read_bytes())
    with pytest.raises(ValueError, match="has no metrics to report yet"):
        gather(tmp_path)
    with pytest.raises(ValueError, match="num_sample_games must be at least 1, got 0"):
        gather(report.folder, num_sample_games=0)


def test_the_rate_is_that_of_the_iterations_without_the_evaluations(report):
    timing = [{"seconds": 1.0, "evaluation_seconds": 3.0, "simulations_per_second": 100.0}] * 2
    assert facts(dataclasses.replace(report, timing=timing))["search"].endswith("; 100 per second")
