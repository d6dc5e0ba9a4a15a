"""The matches against UCT, against the agents before, and the cards of packaged agents."""

import dataclasses
import functools
import json

import jax
import pytest
from studies import load_study

from azjax import packaged
from azjax.core.errors import InputError
from azjax.evaluation import (
    MatchResult,
)
from azjax.games.registry import make
from azjax.training import preset


def test_shares_are_told_with_wilsons_interval():
    # Of 0 of 100 it ends at z^2 / (100 + z^2), z = 1.96.
    assert load_study("packaged_agents").with_interval(0.0, 100) == "0.0% (0.0% to 3.7%)"


@pytest.mark.parametrize("name", ["brandub", "santorini_5x5"])
def test_committed_matches_are_drawn(name, tmp_path):
    study = load_study("against_uct")
    rows = json.loads((study.RESULTS / f"{name}.json").read_text())["rows"]
    study.draw(rows, "network + 100 simulations", tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
    assert {row["games"] for row in rows if row["iteration"] == rows[-1]["iteration"]} == {200}


@pytest.mark.slow
def test_matches_against_the_agent_before_are_played_at_tiny_sizes(tmp_path, monkeypatch):
    study = load_study("against_before")
    game = make("santorini", size=2, workers=1)
    small = dataclasses.replace(preset(game), iterations=4, checkpoint_every=1, keep_checkpoints=4, num_games=16)
    monkeypatch.setattr(study.azjax, "preset", lambda game: small.replace(batch_size=16))
    monkeypatch.setitem(study.GAMES, "santorini_2x2", ("santorini", {"size": 2, "workers": 1}))
    monkeypatch.setitem(study.SIDES, "santorini_2x2", ("first", "second"))
    study.main(
        "santorini_2x2",
        num_simulations=2,
        games=4,
        games_on_the_way=2,
        opening_plies=1,
        balance=1.0,
        folder=tmp_path / "run",
        output=tmp_path / "results.json",
        plot=tmp_path / "plot.png",
    )
    rows = json.loads((tmp_path / "results.json").read_text())["rows"]
    assert [(row["iteration"], row["rival"], row["games"]) for row in rows] == [
        (1, "before", 2),
        (2, "before", 2),
        (3, "before", 2),
        (4, "before", 4),
        (4, "iteration 3", 4),
    ]
    assert all(sum(row["won_drawn_lost"]) == row["games"] for row in rows)
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(InputError, match="has one checkpoint, and this study compares two or more"):
        study.main("santorini_2x2", iterations=1, folder=tmp_path / "short")


def test_results_against_the_agent_before_are_not_replaced_by_those_against_another(tmp_path):
    study = load_study("against_before")
    committed = json.loads((study.RESULTS / "brandub_before.json").read_text())
    (tmp_path / "results.json").write_text(json.dumps(committed))
    # The packaged agent is the one that was measured, not the one before it.
    before = committed["settings"]["before"]
    with pytest.raises(InputError, match=f"with digest {before}, not .*: put the agent before into"):
        study.main("brandub", folder=tmp_path / "run", output=tmp_path / "results.json")
    assert not (tmp_path / "run").exists()


def test_draws_before_the_last_ply_are_told_apart():
    study = load_study("against_uct")
    starts = jax.vmap(make("tictactoe").init)(jax.random.split(jax.random.key(0), 4))
    match = MatchResult(
        "agent", "uct:10", (0.0, 0.0, 1.0, -1.0), tuple((0,) * plies for plies in (30, 512, 40, 50)), starts=starts
    )
    assert study.early_draws(match, 512) == 1


@pytest.mark.slow
def test_matches_against_uct_are_played_and_an_agent_is_packed_at_tiny_sizes(tmp_path, monkeypatch):
    study, packing = load_study("against_uct"), load_study("packaged_agents")
    game = make("santorini", size=2, workers=1)
    small = dataclasses.replace(preset(game), iterations=2, checkpoint_every=1, num_games=16, batch_size=16)
    for module in (study.azjax, packing.azjax):
        monkeypatch.setattr(module, "preset", lambda game: small)
    monkeypatch.setitem(study.GAMES, "brandub", ("santorini", {"size": 2, "workers": 1}))
    folder, output, plot = tmp_path / "runs" / "brandub-0", tmp_path / "brandub.json", tmp_path / "brandub.png"
    for _ in range(2):  # the second time the run is there
        study.main(
            "brandub",
            rival="uct:4",
            num_simulations=4,
            other_simulations=(8,),
            games=4,
            games_on_the_way=2,
            folder=folder,
            output=output,
            plot=plot,
        )
    results = json.loads(output.read_text())
    rows, itself = results["rows"], results["rival_against_itself"]
    assert itself["games"] == sum(itself["won_drawn_lost"]) == 4
    assert [(row["iteration"], row["rival"], row["games"]) for row in rows] == [
        (1, "uct:4", 2),
        (2, "uct:4", 4),
        (2, "uct:4", 4),
        (2, "random", 4),
        (2, "uct:4", 4),
    ]
    assert all(sum(row["won_drawn_lost"]) == row["games"] for row in rows)
    assert plot.read_bytes().startswith(b"\x89PNG")

    monkeypatch.setattr(packaged.archive, "FOLDER", tmp_path)
    monkeypatch.setattr(packing, "RUNS", tmp_path / "runs")
    monkeypatch.setattr(packing, "RESULTS", tmp_path)
    recipe = packing.Recipe("santorini", {"size": 2, "workers": 1}, packing.in_matches, ("against_uct.py",))
    monkeypatch.setitem(packing.RECIPES, "brandub", recipe)
    small_levels = functools.partial(packing.levels.main, games=2, output=tmp_path / "levels.json", cards=tmp_path)
    monkeypatch.setattr(packing.levels, "main", small_levels)
    packing.main(("brandub",), commit="abc", studies=False)
    card = (tmp_path / "brandub.md").read_text()
    assert "| Commit | abc |" in card
    assert card.count("| uct:4 | 4 |") == 3
    assert packaged.load_agent("brandub").game == game
