"""The ablation, and the study of what holds learning back."""

import dataclasses
import json

import pytest
from studies import load_study


@pytest.fixture(scope="module")
def ablation():
    return load_study("ablation")


def test_network_evaluations_are_those_of_the_roots_and_the_leaves(ablation):
    count = ablation.evaluations_per_iteration
    assert count(ablation.BASE) == 256 * 8 * 17
    # A quarter of the searches is full: 8 + 24 / 4 = 14 simulations on average.
    assert count(ablation.BASE.replace(num_simulations=32, fast_simulations=8)) == 256 * 8 * 15


@pytest.mark.parametrize(("name", "most"), [("ablation", 2), ("holding_back", 2)])
def test_each_variant_changes_one_thing_of_the_base(name, most):
    study = load_study(name)
    base = dataclasses.asdict(study.BASE)
    for variants in study.GROUPS.values():
        for name, config in variants.items():
            changed = dataclasses.asdict(config)
            hyper = {field for field in base["hyper"] if changed["hyper"][field] != base["hyper"][field]}
            fields = {field for field in base if field != "hyper" and changed[field] != base[field]}
            assert len(hyper | fields) <= most, name
            assert (config == study.BASE) is (name == study.BASE_NAME)


def test_the_interval_is_students(ablation):
    # Mean 2, deviation 1 of three: 4.3027 / sqrt(3)
    assert ablation.interval([1, 2, 3]) == (2.0, pytest.approx(2.4841, abs=1e-4))


@pytest.mark.slow
def test_the_study_of_what_holds_back_runs_through_at_tiny_sizes(tmp_path, monkeypatch):
    study = load_study("holding_back")
    small = dataclasses.replace(study.BASE, width=8, depth=1, num_games=64, num_simulations=2, batch_size=16)
    monkeypatch.setattr(study, "BASE", small)
    monkeypatch.setattr(study, "GROUPS", {"replay": {"once": dataclasses.replace(small, updates_per_iteration=1)}})
    output, plot = tmp_path / "holding_back.json", tmp_path / "holding_back.png"
    for _ in range(2):  # the second time all is there
        study.main(seconds=2.0, points=2, num_simulations=2, output=output, plot=plot)
    results = json.loads(output.read_text())
    assert [row["name"] for row in results["rows"]] == ["base", "once"]
    assert sum(results["base"]["time"].values()) == pytest.approx(1, abs=0.01)
    for whose in ("base", "agent"):
        assert {len(values) for values in results[whose]["by_ply"].values()} == {41}
    assert plot.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_the_ablation_runs_through_at_tiny_sizes(ablation, tmp_path, monkeypatch):
    small = dataclasses.replace(ablation.BASE, width=8, depth=1, num_games=16, replay_size=2048, batch_size=16)
    groups = {group: {name: small for name in list(variants)[:2]} for group, variants in ablation.GROUPS.items()}
    monkeypatch.setattr(ablation, "GROUPS", groups)
    output, plot = tmp_path / "ablation.json", tmp_path / "ablation.png"
    for _ in range(2):  # the second time all is there
        ablation.main(evaluations=10_000, seeds=2, points=2, output=output, plot=plot)
    rows = json.loads(output.read_text())["rows"]
    assert [row["group"] for row in rows] == [group for group in groups for _ in groups[group]]
    assert all(len(row["curve"]) == 2 and len(row["mistakes"]) == 2 for row in rows)
    assert plot.read_bytes().startswith(b"\x89PNG")
