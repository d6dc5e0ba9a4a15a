"""The study of variants of presets."""

import json

import pytest
from studies import load_study

from azjax.core.errors import InputError
from azjax.games.registry import make


def test_the_better_half_of_the_variants_goes_on_and_always_the_base():
    study = load_study("what_learns")
    scores = {"base": 0.1, "a": 0.5, "b": 0.2, "c": 0.4, "d": 0.3}
    rows = [{"variant": name, "score": score} for name, score in scores.items()]
    assert study.go_on(rows) == ["base", "a", "c", "d"]
    assert study.go_on([row for row in rows if row["variant"] in ("base", "a")]) == ["base", "a"]


def test_every_variant_is_a_configuration_of_every_game():
    study = load_study("what_learns")
    games = make("santorini", size=3, workers=1), make("connect_four")
    for options in study.GAMES.values():
        rules = dict(options)
        game = make(rules.pop("name"), **rules)
        for name in study.VARIANTS:
            assert study.config_of(game, name, quick=False).decay_updates == 0
    assert set(study.QUICK) & {"restart_candidates", "surprise_weighting"} == set()
    # Santorini 3x3 has muon and numbers its positions; Connect Four has Adam, at another rate, and numbers none.
    names = "Adam", "Muon", "exploring starts: 0.75", "board"
    assert [[study.differs(game, name) for name in names] for game in games] == [
        [True, False, True, True],
        [True, True, False, True],
    ]


def test_rows_of_an_earlier_preset_are_dropped_only_if_that_is_asked_for(tmp_path):
    study, output = load_study("what_learns"), tmp_path / "results.json"
    settings = {"match_games": 200, "num_simulations": study.SIMULATIONS, "opening_plies": study.OPENING_PLIES}
    written = json.dumps({"settings": settings, "rows": [{"game": "connect_four", "variant": "base", "config": "0"}]})
    output.write_text(written)
    with pytest.raises(InputError, match=r"has 1 rows of connect_four with other configurations: --again drops them"):
        study.main("connect_four", output=output)
    assert output.read_text() == written


@pytest.mark.slow
def test_what_learns_at_tiny_sizes_goes_on_where_it_stopped(tmp_path):
    study = load_study("what_learns")
    options = {"game": "santorini_3x3", "variants": ("restarts by regret", "surprise weighting"), "quick": True}
    options |= {"folder": tmp_path, "output": tmp_path / "results.json", "plot": tmp_path / "plot.png"}
    study.main(minutes=(0.01,), **options)
    study.main(minutes=(0.01, 0.02), **options)
    rows = json.loads((tmp_path / "results.json").read_text())["rows"]
    # The better two of the three go on, and the base if it is not among them.
    assert [row["minutes"] for row in rows] in ([0.01] * 3 + [0.02] * count for count in (2, 3))
    assert rows[3]["iterations"] == pytest.approx(2 * rows[0]["iterations"], abs=1)
    assert all(0 <= row["score"] <= 1 for row in rows)
    assert (tmp_path / "plot.png").exists()
    # Rows of another preset are measured again if that is asked for.
    results = json.loads((tmp_path / "results.json").read_text())
    results["rows"] = [{**row, "config": "other"} for row in rows] + [{**rows[0], "game": "connect_four"}]
    (tmp_path / "results.json").write_text(json.dumps(results))
    study.main(minutes=(0.01,), again=True, **options | {"folder": tmp_path / "again"})
    rows = json.loads((tmp_path / "results.json").read_text())["rows"]
    assert [row["game"] for row in rows] == ["connect_four"] + ["santorini_3x3"] * 3
    assert "other" not in {row["config"] for row in rows[1:]}
