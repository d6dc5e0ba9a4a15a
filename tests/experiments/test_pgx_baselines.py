"""The agents of games of pgx beside those of others."""

import json

import pytest
from rich.console import Console
from studies import load_study

from azjax.games.registry import make
from azjax.training import preset


def test_a_baseline_of_pgx_that_is_missing_is_left_out_with_a_line(tmp_path, capsys):
    pytest.importorskip("pgx", reason="pgx is not installed")
    study = load_study("pgx_baselines")
    assert study.baseline(make("pgx:hex"), "hex", tmp_path, 4, Console()) is None
    assert capsys.readouterr().out == (
        f"left out, pgx's baseline of hex: it needs dm-haiku and {tmp_path}/hex_v0.ckpt, which "
        f"pgx.make_baseline_model('hex_v0', '{tmp_path}') downloads\n"
    )


def test_the_example_of_pgx_plays_whole_games_and_learns_from_each_position_once():
    pytest.importorskip("pgx", reason="pgx is not installed")
    study, game = load_study("pgx_baselines"), make("pgx:othello")
    config = study.as_in_the_example(game, preset(game))
    assert config.steps_per_iteration == game.max_plies == 120
    assert config.updates_per_iteration * config.batch_size == config.num_games * 120
    # In self-play 16 simulations and the root of each position, and learning.
    assert study.evaluations(config) == config.num_games * 120 * (17 + 1)


@pytest.mark.slow
def test_othello_is_learned_beside_pgx_and_openspiel_at_tiny_sizes(tmp_path, monkeypatch):
    pytest.importorskip("pgx", reason="pgx is not installed")
    pytest.importorskip("pyspiel", reason="OpenSpiel is not installed")
    study = load_study("pgx_baselines")
    study.main(games=("othello",), quick=True, folder=tmp_path)
    row = json.loads((tmp_path / "pgx_baselines.json").read_text())["rows"]["othello"]
    assert [match["kind"] for match in row["matches"]] == ["random", "pgx + mctx", "OpenSpiel"]
    assert all(sum(match["won_drawn_lost"]) == 2 for match in row["matches"])
    # A finished study has no match left to play.
    monkeypatch.setattr(study, "play_match", None)
    study.main(games=("othello",), quick=True, folder=tmp_path)
