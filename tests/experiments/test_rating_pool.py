"""The pools of games, and the ratings that follow from them."""

import json
from collections import Counter

import pytest
from studies import load_study

from azjax.core.errors import InputError
from azjax.evaluation import Record, rate


@pytest.fixture(scope="module")
def study():
    return load_study("rating_pool")


@pytest.fixture(scope="module")
def results(study):
    return json.loads((study.RESULTS / "ratings.json").read_text())


def games_of(study, agent):
    """The lines of a committed pool; they are not played again, which takes minutes."""
    return [json.loads(line) for line in (study.RESULTS / "pools" / f"{agent}.jsonl").read_text().splitlines()]


def test_games_of_an_agent_that_was_packaged_before_are_not_gone_on_with(study, results, tmp_path):
    """The committed games are of the agents that come with azjax."""
    known = {row["agent"]: row["agent_digest"] for row in results["rows"] if "agent_digest" in row}
    assert {"brandub", "santorini_5x5"} <= known.keys()
    assert known == {name: load_study("study").agent_digest(name) for name in known}
    before = [{**row, "agent_digest": "0"} for row in results["rows"]]
    (tmp_path / "ratings.json").write_text(json.dumps({**results, "rows": before}))
    with pytest.raises(
        InputError, match=r"ratings.json has brandub with agent_digest 0, not [0-9a-f]{16}: name another"
    ):
        study.main(("brandub",), pools=tmp_path, output=tmp_path / "ratings.json")


@pytest.mark.parametrize("number", range(3))
def test_committed_ratings_are_those_of_the_committed_games(study, results, number):
    row = results["rows"][number]
    games = [game for game in games_of(study, row["agent"]) if game["end"] is None]
    counts = Counter(name for game in games for name in game["players"])
    assert dict(zip(row["players"], row["games"], strict=True)) == counts
    results_of_first = ((game["players"], game["rewards"][0]) for game in games)
    pairings = [(*players, Record(int(won > 0), int(won == 0), int(won < 0))) for players, won in results_of_first]
    ratings = rate(pairings, anchor=f"{row['agent']}:{results['settings']['anchor']}")
    assert ratings.players == tuple(row["players"])
    assert ratings.elo == pytest.approx(row["elo"], abs=0.1)
    for found, told in zip(ratings.intervals, row["intervals"], strict=True):
        assert found == pytest.approx(study.ends_of(told), abs=2)


def test_every_committed_game_is_of_the_rules_that_its_pool_names(study, results):
    for row in results["rows"]:
        rules = {(game["azjax"], game["game"], json.dumps(game["options"])) for game in games_of(study, row["agent"])}
        assert rules == {(1, study.GAMES[row["agent"]][0], json.dumps(row["options"]))}


def test_the_page_tells_the_games_against_opentafl(study):
    results, crashes = Counter(), 0
    for game in games_of(study, "brandub"):
        if "opentafl:opentafl-1s" in game["players"]:
            seat = game["players"].index("opentafl:opentafl-1s") ^ 1
            crashes += game["end"] is not None
            if game["end"] is None:
                results[game["players"][seat], ("attackers", "defenders")[seat], game["rewards"][seat]] += 1
    assert crashes == 0
    assert results == {
        ("brandub:1600", "attackers", 1.0): 48,
        ("brandub:1600", "attackers", 0.0): 2,
        ("brandub:1600", "defenders", 1.0): 50,
        ("brandub:400", "attackers", 1.0): 10,
        ("brandub:400", "defenders", 1.0): 10,
    }
    page = " ".join((study.DOCS / "ratings.md").read_text().split())
    assert "it lost 98 of 100 games and drew two, and against `brandub:400` it lost all 20." in page
    assert "As attackers `brandub:1600` won 48 of 50 games and drew two." in page


def test_the_page_tells_the_games_against_opentafl_with_ten_seconds(study):
    results = Counter()
    for game in games_of(study, "brandub_against_opentafl_10s"):
        (seat,) = (seat for seat, name in enumerate(game["players"]) if name.startswith("brandub:"))
        assert game["end"] is None
        results[game["players"][seat], ("attackers", "defenders")[seat], game["rewards"][seat]] += 1
    assert results == {
        ("brandub:4000", "attackers", 1.0): 48,
        ("brandub:4000", "attackers", 0.0): 2,
        ("brandub:4000", "defenders", 1.0): 50,
        ("brandub:6400", "attackers", 1.0): 5,
        ("brandub:6400", "defenders", 1.0): 5,
    }
    page = " ".join((study.DOCS / "ratings.md").read_text().split())
    assert "It lost 98 of 100 games against `brandub:4000` and drew two: the agent scores 99% (96.1% to" in page
    assert "as attackers it won 48 of 50 and drew two. It also lost all ten games against `brandub:6400`" in page


def test_the_page_tells_the_games_against_alpha_zero_general(study):
    won, rival = Counter(), "line:alpha-zero-general-800"
    for game in games_of(study, "santorini_5x5"):
        if rival in game["players"]:
            assert game["end"] is None
            seat = game["players"].index(rival) ^ 1
            won[game["players"][seat]] += game["rewards"][seat] == 1
    assert won == {"santorini_5x5:16": 16, "santorini_5x5:100": 19, "santorini_5x5:400": 20}
    page = " ".join((study.DOCS / "ratings.md").read_text().split())
    assert "With 16 simulations the agent won 16 of 20 games against it, with 100 19, and with 400 all 20." in page


def test_the_page_tells_the_games_against_santorini_ai(study):
    games, won = Counter(), Counter()
    for game in games_of(study, "santorini_5x5_against_santorini_ai"):
        (seat,) = (seat for seat, name in enumerate(game["players"]) if name.startswith("santorini_5x5"))
        assert game["players"][1 - seat].startswith("santorini:santorini-ai-0.2s, ")
        assert game["end"] is None
        assert game["options"] == {"size": 5, "workers": 2, "placement": False}
        games[game["players"][seat]] += 1
        won[game["players"][seat]] += game["rewards"][seat] == 1
    page = (study.DOCS / "ratings.md").read_text()
    for player, count in games.items():
        own, seconds = player.removesuffix(" s").split(", ")
        option = {"": "", " + solver": "proofs", " + reused tree": "kept tree"}[own.removeprefix("santorini_5x5")]
        assert f"| {seconds} | {option} | {count} | {won[player] / count:.0%} |" in page
    readme = " ".join((study.DOCS.parent / "README.md").read_text().split())
    kept = "santorini_5x5 + reused tree, 1 s"
    assert f"`santorini_5x5` with one second a move won {won[kept]} of {games[kept]} games" in readme


@pytest.mark.slow
def test_a_pool_grows_and_is_rated(study, tmp_path, monkeypatch):
    monkeypatch.setattr(study, "GAMES", {"tictactoe": ("tictactoe", {}, ("uct:10", "uct:100"))})
    output, plot = tmp_path / "ratings.json", tmp_path / "ratings.png"
    for levels in (("100",), ("100", "medium")):
        study.main(("tictactoe",), levels, games=2, opening_plies=2, pools=tmp_path / "pools", output=output, plot=plot)
    (row,) = json.loads(output.read_text())["rows"]
    assert sorted(row["players"]) == ["tictactoe:100", "tictactoe:medium", "uct:10", "uct:100"]
    assert set(row["games"]) == {6}
    assert row["elo"][row["players"].index("tictactoe:100")] == 0
    assert plot.read_bytes().startswith(b"\x89PNG")
