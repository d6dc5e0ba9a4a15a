"""Tables and messages print the names of players as they are given: rich would replace `:100:` and take `[b]`."""

import dataclasses
import io
import re

import jax
import pytest
from rich.console import Console

from azjax.commands import evaluate
from azjax.evaluation import play_round_robin, random_player, rate, solve
from azjax.evaluation.ratings import pairings_of
from azjax.games.registry import make
from azjax.report import by_ply_table, match_table, measure, ratings_table, strength_table

GAME = make("connect2")
NAMES = ("uct:100: won", "[b]bold[/b]", ":smiley: [red]")


@pytest.fixture(scope="module")
def players():
    return [dataclasses.replace(random_player(GAME), name=name) for name in NAMES]


def printed(table):
    """What a console with markup and emoji, as rich's own, prints."""
    console = Console(width=200, file=io.StringIO())
    console.print(table)
    return console.file.getvalue()


def test_names_in_tables_of_strength_are_printed_as_given(players):
    strengths = measure(GAME, players, num_games=2, key=jax.random.key(0), solution=solve(GAME))
    for table in (strength_table(GAME, strengths), by_ply_table(GAME, strengths)):
        assert all(name in printed(table) for name in NAMES)


def test_names_in_tables_of_matches_are_printed_as_given(players):
    matches = play_round_robin(GAME, players, 4, jax.random.key(0))
    text = printed(match_table(GAME, matches))
    assert f"{NAMES[0]} against {NAMES[1]}" in text
    assert f"{NAMES[1]} against {NAMES[2]}" in text
    ratings = printed(ratings_table(GAME, rate(pairings_of(matches))))
    assert all(name in ratings for name in NAMES)


def test_forfeits_have_a_column_and_the_score_is_told_without_them(players):
    match = play_round_robin(GAME, players[:2], 4, jax.random.key(0))[0]
    forfeits = (None, "illegal move: 'z9'", None, "illegal move: 'z9'")
    match = dataclasses.replace(match, rewards=(1.0, 1.0, 0.0, 1.0), ends=forfeits)
    lines = printed(match_table(GAME, [match])).splitlines()
    assert any(re.search(r"lost +forfeited", line) for line in lines)
    # The first two games were won, the third drawn and the fourth won; the second and the fourth were forfeited.
    for start, figures in {
        NAMES[0]: "87.5% .* 3 1 0 2",
        "moving first": "75.0% .* 1 1 0 0",
        "moving second": "100.0% .* 2 0 0 2",
        "not forfeited": "75.0% .* 1 1 0 0",
        "forfeited, 2 times: illegal move: 'z9'": "",
    }.items():
        assert any(re.search(re.escape(start) + ".*" + figures, " ".join(line.split())) for line in lines), start
    plain = printed(match_table(GAME, [dataclasses.replace(match, ends=(None,) * 4)]))
    assert "forfeited" not in plain


@pytest.mark.slow
def test_names_in_what_is_told_meanwhile_are_printed_as_given(monkeypatch):
    console = Console(width=200, file=io.StringIO(), force_terminal=True)
    monkeypatch.setattr(evaluate, "console", console)
    evaluate.print_strength("uct:100", GAME, evaluate.EvaluateOptions(games=2))
    assert "uct:100: 2 games against random" in console.file.getvalue()
