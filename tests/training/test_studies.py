"""The studies of learning under experiments/: their arithmetic, and in the slow suite each at a tiny size."""

import dataclasses
import json
import os
import subprocess
import sys

import jax
import numpy as np
import pytest
from rich.console import Console
from studies import EXPERIMENTS, load_study

from azjax import packaged
from azjax.evaluation import (
    MatchResult,
    mistakes,
    network_player,
    random_player,
    save_endings,
    solve,
    solve_endings,
    tabulate,
)
from azjax.evaluation.exact import random_table
from azjax.games.registry import make
from azjax.networks import NetworkOutput, Resnet
from azjax.packaged import load_agent
from azjax.training import preset


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


def test_random_moves_keep_as_many_wins_as_the_solved_sample_says(golden):
    study, game = load_study("santorini_3x3"), make("santorini", size=3, workers=1)
    solved = study.load_sample(game)
    lines = [line for line in golden("solved/santorini_3_1_public") if line["legal"]]
    assert len(solved.values) == len(lines)
    shares = {(line["value"], line["plies"] >= 7): [] for line in lines}
    for line in lines:
        right = np.array(line["action_values"]) == line["value"]
        shares[line["value"], line["plies"] >= 7].append(right.mean())
    found = study.shares(random_player(game), solved)
    assert found["wins_kept"] == pytest.approx(np.mean(shares[1, True] + shares[1, False]), abs=1e-4)
    assert found["long_wins_kept"] == pytest.approx(np.mean(shares[1, True]), abs=1e-4)
    assert found["signs_right"] == 0  # it has no values


def test_mistakes_on_all_positions_of_a_solved_game_are_counted():
    study = load_study("santorini_3x3")
    game = make("tictactoe")
    found = study.on_all_positions(random_player(game), game)
    expected = mistakes(solve(game), random_table)
    assert found["positions"] == 4520
    assert found["mistakes"] == pytest.approx(expected.count, rel=1e-5)
    assert found["share"] == pytest.approx(expected.share, abs=1e-5)


def test_shares_are_told_with_wilsons_interval():
    # Of 0 of 100 it ends at z^2 / (100 + z^2), z = 1.96.
    assert load_study("packaged_agents").with_interval(0.0, 100) == "0.0% (0.0% to 3.7%)"


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("ablation", ("rows",)),
        ("connect_four", ("rivals", "rows")),
        ("holding_back", ("rows", "base", "agent")),
        ("networks", ("rows",)),
        ("search_scaling", ("throughput",)),
        ("santorini_3x3", ("rows",)),
        ("tactics", ("mates", "proofs")),
    ],
)
def test_committed_results_are_drawn(name, parts, tmp_path):
    study = load_study(name)
    results = json.loads((study.RESULTS / f"{name}.json").read_text())
    study.draw(*(results[part] for part in parts), tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_mistakes_on_the_way_are_summed_up_over_seeds():
    found = load_study("best_of_sweep").summary([[4, 0, 0, 0], [2, 1, 0, 1], [3, 2, 1, 0]])
    assert {name: value["mean"] for name, value in found.items()} == {
        "mistakes_at_the_end": 0.333,
        "mean_mistakes_on_the_way": 1.167,
        # After 2, 3, and all of 4 parts.
        "share_of_simulations_until_no_mistake": 0.75,
    }


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
    with pytest.raises(SystemExit, match="has one checkpoint, and this study compares two or more"):
        study.main("santorini_2x2", iterations=1, folder=tmp_path / "short")


def test_draws_before_the_last_ply_are_told_apart():
    study = load_study("against_uct")
    starts = jax.vmap(make("tictactoe").init)(jax.random.split(jax.random.key(0), 4))
    match = MatchResult(
        "agent", "uct:10", (0.0, 0.0, 1.0, -1.0), tuple((0,) * plies for plies in (30, 512, 40, 50)), starts=starts
    )
    assert study.early_draws(match, 512) == 1


@pytest.mark.slow
def test_the_best_point_of_the_committed_sweep_is_trained_again_at_tiny_size(tmp_path):
    study = load_study("best_of_sweep")
    study.main(2, 1_640_000, runs=tmp_path / "runs", output=tmp_path / "found.json")
    found = json.loads((tmp_path / "found.json").read_text())
    before, best = found["rows"]
    assert before["settings"] == study.BEFORE
    assert best["settings"].keys() == study.BEFORE.keys()
    assert {len(counts) for row in found["rows"] for counts in row["mistakes"]} == {study.PARTS}
    assert found["settings"]["seeds"] == 2


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
    recipe = packing.Recipe("santorini", {"size": 2, "workers": 1}, packing.in_matches, "against_uct.py")
    monkeypatch.setitem(packing.RECIPES, "brandub", recipe)
    packing.main(("brandub",), commit="abc")
    card = (tmp_path / "brandub.md").read_text()
    assert "| Commit | abc |" in card
    assert card.count("| uct:4 | 4 |") == 3
    assert packaged.load_agent("brandub").game == game


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
def test_tictactoe_is_searched_and_played_at_tiny_sizes(tmp_path, capsys):
    study = load_study("tictactoe_uct")
    output, plot = tmp_path / "uct.json", tmp_path / "uct.png"
    study.main(counts=(4, 8), games=4, shown_nodes=5, output=output, plot=plot)
    rows = json.loads(output.read_text())["rows"]
    assert [row["simulations"] for row in rows] == [4, 8]
    for row in rows:
        assert {name: sum(rival["won_drawn_lost"]) for name, rival in row["against"].items()} == {
            "random": 4,
            "optimal": 4,
        }
        assert row["against"]["optimal"]["won_drawn_lost"][0] == 0
    assert plot.read_bytes().startswith(b"\x89PNG")
    shown = capsys.readouterr().out
    assert "nodes in the order in which they were added" in shown
    assert "wins of X" in shown


@pytest.mark.slow
def test_connect2_is_learned_twice_at_tiny_sizes(tmp_path, monkeypatch):
    study = load_study("connect2")
    small = dataclasses.replace(preset("connect2"), iterations=2, checkpoint_every=1, width=8, depth=1)
    monkeypatch.setattr(study, "NOTEBOOK", small)
    monkeypatch.setattr(study.azjax, "preset", lambda game: small)
    output = tmp_path / "connect2.json"
    study.main(runs=tmp_path / "runs", output=output)
    results = json.loads(output.read_text())
    assert len(results["rows"]) == 23
    assert {row["position"]: row["value"] for row in results["rows"]}["_X__"] == -1
    for row in results["rows"]:
        assert sum(row["preset"]["policy"]) == pytest.approx(1, abs=0.003)
    assert set(results["agents"]) == {"notebook", "preset"}


@pytest.mark.slow
def test_a_game_is_played_with_what_was_predicted(tmp_path):
    study = load_study("brandub")
    output, picture = tmp_path / "game.json", tmp_path / "game.svg"
    study.main(agent="tictactoe", num_simulations=8, output=output, picture=picture)
    results = json.loads(output.read_text())
    # Two who make no mistake draw.
    assert len(results["moves"]) == 9
    assert {move["result"] for move in results["moves"]} == {0}
    assert results["simulations_per_second"] > 0
    assert picture.read_text().startswith("<svg")


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


@pytest.mark.slow
def test_the_speed_of_self_play_is_measured_at_tiny_sizes(tmp_path):
    output = tmp_path / "speed.json"
    # In a process of its own, since JAX runs in this one, on one device.
    code = f"""if True:
        import pathlib, self_play_speed as study
        study.NETWORKS = (("mlp", 8, 1), ("resnet", 4, 1))
        sizes = dict(num_simulations=2, num_games=64, plies=2, batch_size=64, rounds=1)
        study.main(**sizes, output=pathlib.Path({str(output)!r}))
    """
    variables = {**os.environ, "JAX_NUM_CPU_DEVICES": "2", "PYTHONPATH": f"{EXPERIMENTS}:{EXPERIMENTS.parent}"}
    done = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, timeout=900)
    assert (done.returncode, done.stderr) == (0, "")
    rows = json.loads(output.read_text())["rows"]
    assert [(row["network"], row["devices"]) for row in rows] == [("mlp", 1), ("mlp", 2), ("resnet", 1), ("resnet", 2)]
    rival, with_flax = "pgx + mctx", "pgx + mctx, convolutions of Flax"
    for row in rows:
        rivals = {rival, with_flax} if row["network"] == "resnet" else {rival}
        assert row["ratio"].keys() == rivals
        assert row["positions_per_second"].keys() == {"azjax", *rivals}
        assert all(ratio > 0 for ratio in row["ratio"].values())


@pytest.mark.slow
def test_the_study_of_a_gpu_measures_every_part_at_tiny_sizes(tmp_path):
    output = tmp_path / "gpu.json"
    # In a process of its own, which starts JAX.
    code = f"""if True:
        import dataclasses, pathlib, on_a_gpu as study
        study.CASES = (dataclasses.replace(study.CASES[0], batch=4, num_simulations=4),)
        study.GAMES, study.NUM_SIMULATIONS, study.RUNS = ("connect_four",), 2, pathlib.Path({str(tmp_path)!r})
        tiny = dict(width=4, depth=1, num_games=16, num_simulations=2, batch_size=16, updates_per_iteration=1)
        study.LEARNING = study.LEARNING.replace(**tiny)
        study.TRAINING = study.TRAINING.replace(**tiny, iterations=2, checkpoint_every=1, precision="float32")
        for part in ("games", "search", "learning", "training"):
            study.main((part,), repeats=1, output=pathlib.Path({str(output)!r}))
    """
    variables = {**os.environ, "PYTHONPATH": f"{EXPERIMENTS}:{EXPERIMENTS.parent}"}
    done = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, timeout=900)
    assert (done.returncode, done.stderr) == (0, "")
    parts = json.loads(output.read_text())["parts"]
    assert list(parts) == ["games", "search", "learning", "training"]
    assert parts["search"][0]["simulations_per_second"].keys() == {"azjax", "mctx"}
    assert parts["learning"][0]["ratio"].keys() == {"pgx + mctx"}
    assert [row["player"] for row in parts["training"]] == ["network", "network + 2"]


def test_the_residual_network_with_convolutions_of_flax_is_the_same_function():
    game, variants = make("connect_four"), (Resnet(8, 1), load_study("self_play_speed").FlaxResnet(8, 1))
    ours, plain = (network.for_game(game) for network in variants)
    variables = ours.init(jax.random.key(0), game)
    observations = jax.random.normal(jax.random.key(1), (4, *game.observation_shape))
    outputs = [network.apply(variables, observations, train=False)[0] for network in (ours, plain)]
    np.testing.assert_allclose(outputs[0].prior_logits, outputs[1].prior_logits, atol=1e-5)
    np.testing.assert_allclose(outputs[0].value, outputs[1].value, atol=1e-5)


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


@pytest.mark.slow
def test_the_gated_rounds_of_santorini_never_keep_a_network_that_did_not_pass(monkeypatch):
    study = load_study("santorini_small")
    monkeypatch.setattr(study, "TRIES", 1)
    small = dataclasses.replace(
        study.GATED, num_simulations=8, updates_per_iteration=4, gate_rounds=2, gate_games=20, num_games=8, batch_size=8
    )
    monkeypatch.setattr(study, "GATED", small)
    game = make("santorini", size=2, workers=1)
    rows = study.gated(game, study.solve(game), seed=0)
    assert all(row["gate_score"] >= 0.55 for row in rows)


def test_a_perceptron_has_two_flops_for_each_weight_and_the_biases():
    study, game = load_study("network_speed"), make("connect2")
    planes, width = 4 * game.observation_shape[-1], 8
    weights = planes * width + width * width + width * game.num_actions + width
    flops = study.flops_of_evaluation(study.make_network("mlp", game, width=width, depth=2), game)
    assert 2 * weights <= flops <= 2 * weights + 100


@pytest.mark.slow
def test_networks_are_timed_at_tiny_sizes(tmp_path):
    study, output = load_study("network_speed"), tmp_path / "results.json"
    study.main(evaluated=8, learned=8, networks=(("mlp", 8, 1), ("resnet", 4, 1)), output=output)
    results = json.loads(output.read_text())
    assert [(row["network"], row["precision"]) for row in results["rows"]] == [
        (network, precision) for network in ("mlp", "resnet") for precision in ("float32", "bfloat16")
    ]
    for row in results["rows"]:
        gflops = 3 * row["flops"] * row["learned_per_second"] / 1e9
        assert row["learned_gflops"] == pytest.approx(gflops, abs=0.1)


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
    names = "Adam", "Muon", "more exploring starts", "board"
    assert [[study.differs(game, name) for name in names] for game in games] == [
        [True, False, True, True],
        [True, True, False, True],
    ]


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
    # Rows of another preset are measured anew.
    before = [{**row, "config": "other"} for row in rows] + [{**rows[0], "game": "connect_four"}]
    (tmp_path / "results.json").write_text(json.dumps({"rows": before}))
    study.main(minutes=(0.01,), **options | {"folder": tmp_path / "anew"})
    rows = json.loads((tmp_path / "results.json").read_text())["rows"]
    assert [row["game"] for row in rows] == ["connect_four"] + ["santorini_3x3"] * 3
    assert "other" not in {row["config"] for row in rows[1:]}


def test_the_truth_about_positions_is_that_of_the_solution():
    study, game = load_study("networks"), make("santorini", size=2, workers=1)
    solution = solve(game)
    drawn = study.draw_positions(solution, 10**6)
    assert len(drawn.values) == solution.num_unfinished
    assert len({position.tobytes() for position in drawn.observations}) == solution.num_unfinished
    assert (drawn.best <= drawn.legal).all()
    assert drawn.best.any(axis=1).all()
    # The mistakes of random moves are counted in another way by `mistakes`.
    given_away = (1 - drawn.best.sum(axis=1) / drawn.legal.sum(axis=1)).sum()
    assert given_away == pytest.approx(mistakes(solution, random_table).count, rel=1e-5)


def test_mistakes_are_legal_moves_that_give_away_value_and_signs_are_those_of_the_values():
    study = load_study("networks")
    logits = np.array([[3.0, 2, 1], [1, 2, 3], [0, 5, 1], [9, 0, 1]])
    values = np.array([0.5, -0.5, 0.5, 0.5])

    class Network:
        def apply(self, variables, observations, train):
            return NetworkOutput(observations @ logits, observations @ values), {}

    positions = study.Positions(
        observations=np.eye(4, dtype=np.float32),
        best=np.array([[1, 0, 0], [0, 1, 0], [1, 0, 1], [0, 1, 1]], bool),
        legal=np.array([[1, 1, 1], [1, 1, 1], [1, 0, 1], [0, 1, 1]], bool),
        values=np.array([1.0, 1, 1, 1], np.float32),
    )
    # Only the second gives value away: the highest logits of the last two are illegal.
    assert study.measure(Network(), {}, positions) == {"mistakes": 0.25, "signs_right": 0.75}


@pytest.mark.slow
def test_the_targets_of_a_search_are_compared_with_the_solution(monkeypatch):
    study, agent = load_study("targets"), load_agent("santorini_2x2")
    solution = solve(agent.game)
    drawn = study.draw(solution, 10**6)
    assert len(drawn) == solution.num_unfinished
    row = study.measure(agent, solution, drawn, 64, 16)
    network = network_player(agent.game, agent.network, agent.variables, temperature=0.0)
    assert row["mistakes, network"] == pytest.approx(
        mistakes(solution, tabulate(network, solution, jax.random.key(0))).share, abs=1e-4
    )
    # A search sees no less than its network, and the value of the best actions is nearer to the truth than the mean.
    assert row["mistakes, policy"] <= row["mistakes, network"]
    assert row["squared error, value"] < row["squared error, mean of the simulations"]


@pytest.mark.slow
def test_networks_learn_the_truth_at_tiny_sizes(tmp_path, monkeypatch):
    study = load_study("networks")
    monkeypatch.setattr(study, "NETWORKS", {"equivariant_mlp": {"network": "equivariant_mlp", "width": 32, "depth": 1}})
    output, plot = tmp_path / "networks.json", tmp_path / "plot.png"
    study.main(seconds=1, size=2, positions=3000, held_out=500, points=2, output=output, plot=plot)
    rows = json.loads(output.read_text())["rows"]
    assert [(row["optimizer"], row["network"]) for row in rows] == [
        (rule, "equivariant_mlp") for rule in ("adam", "adam", "muon", "muon")
    ]
    assert all(row["mistakes"] < 0.1 for row in rows[1::2])
    assert plot.exists()


@pytest.fixture(scope="module")
def scaling():
    return load_study("scaling")  # once: it registers a game


def test_the_exponents_of_a_power_law_are_found(scaling):
    def share(flops, simulations):
        return 0.5 * flops**-0.4 * (simulations + 1) ** -0.2

    rows = [
        {"seed": seed, "training_flops": flops, "num_simulations": count, "mistakes": share(flops, count)}
        for seed in (0, 1)
        for flops in (2.0**20, 2.0**22, 2.0**25)
        for count in scaling.SIMULATIONS
    ]
    # A larger network that needs more for the same is not on the frontier.
    rows += [{**row, "training_flops": 4 * row["training_flops"], "mistakes": 2 * row["mistakes"]} for row in rows]
    for fit in scaling.fits_of(rows):
        assert (fit.training, fit.play) == (pytest.approx(0.4), pytest.approx(0.2))
        assert fit.doublings == pytest.approx(2.0)


def test_the_interval_over_seeds_is_that_of_student(scaling):
    # t(0.975, 2 degrees of freedom) = 4.3027; the standard error of 1, 2, 3 is 1 / sqrt(3).
    assert scaling.summary([1.0, 2.0, 3.0]) == {
        "by_seed": [1.0, 2.0, 3.0],
        "mean": 2.0,
        "interval": [pytest.approx(2 - 4.3027 / 3**0.5, abs=1e-3), pytest.approx(2 + 4.3027 / 3**0.5, abs=1e-3)],
    }
    assert scaling.summary([1.0]) == {"by_seed": [1.0], "mean": 1.0}


def test_a_decision_has_a_move_that_loses_value_and_one_that_does_not(scaling):
    game = make("tictactoe")
    positions = scaling.decisions(game, 10_000)
    legal = np.asarray(jax.vmap(game.legal_action_mask)(positions.states))
    assert (positions.loses <= legal).all()
    assert positions.loses.any(axis=1).all()
    assert (legal & ~positions.loses).any(axis=1).all()


@pytest.mark.slow
def test_the_scaling_study_goes_on_where_it_stopped(scaling, tmp_path):
    options = {"widths": (8,), "num_positions": 64, "folder": tmp_path}
    options |= {"output": tmp_path / "results.json", "plot": tmp_path / "plot.png", "doublings": 1}
    scaling.main(seeds=(0,), **options)
    scaling.main(seeds=(0, 1), **options)
    results = json.loads((tmp_path / "results.json").read_text())
    assert len(results["rows"]) == 2 * 2 * len(scaling.SIMULATIONS)
    assert all(0 <= row["mistakes"] <= 1 for row in results["rows"])
    assert "interval" in results["exponents"]["exponent of training"]
    assert (tmp_path / "plot.png").exists()


def test_the_error_of_the_mean_of_targets_leaves_out_what_varies():
    study = load_study("value_targets")
    truth = np.array([1, -1])
    found = study.errors(np.array([[1.0, 0.0, 1.0, 0.0], [-0.5, -0.5, -0.5, -0.5]]), truth)
    # Pairs of different games: one of six has two errors of 1; then always 1/4.
    assert found["systematic"] == pytest.approx((1 / 6 + 1 / 4) / 2, abs=1e-4)
    assert found["of_one_game"] == pytest.approx((1 / 2 + 1 / 4) / 2, abs=1e-4)
    alone = study.errors(np.array([[0.0], [-1.0]]), truth)
    assert (alone["systematic"], alone["of_one_game"]) == (0.5, 0.5)


@pytest.mark.slow
def test_value_targets_are_those_of_games_from_the_positions(tmp_path, monkeypatch):
    study, agent = load_study("value_targets"), load_agent("connect_four")
    monkeypatch.setattr(study, "LAST_PLY", 3)
    monkeypatch.setattr(study, "VARIANTS", {name: study.VARIANTS[name] for name in ("results", "values")})
    settings = preset(agent.game).replace(num_simulations=2)
    monkeypatch.setattr(study.azjax, "preset", lambda game: settings)
    study.main(games=2, output=tmp_path / "results.json")
    rows = json.loads((tmp_path / "results.json").read_text())["rows"]
    assert [row["target"] for row in rows] == ["the network itself", "results", "values"]
    assert rows[1]["of_one_game"] > rows[1]["systematic"]
    assert rows[2]["of_one_game"] < 0.7
    # The results of games are -1, 0 and 1.
    positions = study.load_positions(agent.game, json.loads(study.POSITIONS.read_text()))
    states = jax.tree.map(lambda leaf: leaf[positions.plies <= 3], positions.states)
    play = study.make_play(agent, settings.replace(root_value_fraction=0.0, solver=False), states)
    assert set(np.asarray(play(jax.random.key(0))).tolist()) <= {-1.0, 0.0, 1.0}


def test_a_run_that_a_study_cannot_go_on_with_ends_it_with_a_line(tmp_path):
    study = load_study("study")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(SystemExit, match=r"is not a run folder: its config\.json cannot be read"):
        study.trained(make("connect2"), tmp_path, Console())


@pytest.mark.slow
def test_the_agent_is_judged_by_endings_at_tiny_sizes(tmp_path, monkeypatch):
    study = load_study("brandub_endings")
    monkeypatch.setattr(study, "GAMES", 16)
    monkeypatch.setattr(study, "BATCH", 16)
    monkeypatch.setattr(study, "SIMULATIONS", (0, 4))
    monkeypatch.setattr(study, "DOCS", tmp_path)
    save_endings(solve_endings(make("brandub"), 2), tmp_path / "endings.npz")
    study.main(table=tmp_path / "endings.npz", games=16, positions=32, output=tmp_path / "results.json")
    results = json.loads((tmp_path / "results.json").read_text())
    assert [part["won"] for part in results["endings"][:2]] == [72, 1936]
    for players in results["agent"].values():
        assert list(players) == ["network", "4 simulations"]
    drawn = results["agent"]["even_draws"]["network"]
    sides = [drawn["by_side"][f"won, {side} to move"]["positions"] for side in ("attackers", "defenders")]
    # With two pawns nothing is drawn, and a position in which some moves lose value is won.
    assert sides == [16, 16]
    assert drawn["kept"] <= drawn["positions"] == 32


@pytest.mark.slow
def test_small_boards_are_learned_and_judged_at_tiny_sizes(tmp_path, monkeypatch):
    study = load_study("small_boards")
    monkeypatch.setattr(study, "BOARDS", {"hex_3x3": ("hex", {"size": 3})})
    paths = {"runs": tmp_path, "output": tmp_path / "results.json", "figure": tmp_path / "figure.png"}
    for _ in range(2):  # the second time nothing is left to judge
        study.main(seeds=1, iterations=1, **paths)
        (row,) = json.loads(paths["output"].read_text())["rows"]
        assert (row["board"], row["seed"], row["iteration"]) == ("hex_3x3", 0, 1)
        assert 0 < row["mistakes"] < row["positions"] < 5_514
    assert paths["figure"].stat().st_size > 10_000


@pytest.mark.slow
def test_the_first_minutes_are_judged_at_tiny_sizes(tmp_path, monkeypatch):
    study = load_study("first_minutes")
    monkeypatch.setattr(study, "GAMES", ("chomp",))
    monkeypatch.setattr(study, "SHARE", 1 / 400)
    paths = {"runs": tmp_path, "output": tmp_path / "results.json"}
    for _ in range(2):  # the second time nothing is left to play
        study.main(num_simulations=4, games=4, **paths)
    alone, searching = json.loads(paths["output"].read_text())["rows"]
    assert [row["player"] for row in (alone, searching)] == ["network", "network + 4 simulations"]
    for row in (alone, searching):
        assert row["iterations"] == 1
        assert sum(row["total"]) == row["games"] == 4
        assert [sum(row["first"]), sum(row["second"])] == [2, 2]


def test_mates_are_proven_and_a_start_keeps_its_bounds_at_the_limit(tmp_path, monkeypatch):
    study, output, mates = load_study("proofs"), tmp_path / "results.json", tmp_path / "mates.json"
    starts = {"tictactoe": ("tictactoe", {}), "hex_4x4": ("hex", {"size": 4})}
    monkeypatch.setattr(study, "STARTS", {"tictactoe": starts["tictactoe"]})
    texts = ["_______/_______/_______/_______/___O___/_O_XX__"]
    mates.write_text(json.dumps({"mates": [{"game": "Connect Four", "moves": 2, "texts": texts}]}))
    study.main(1000, 20_000, mates, output)
    monkeypatch.setattr(study, "STARTS", starts)
    study.main(1000, 50, mates, output)
    results = json.loads(output.read_text())
    (row,) = results["mates"]
    assert (row["mates"], row["proven"], row["refuted"]) == (1, 1, 0)
    assert 7 < row["positions"]["50%"] <= 1000
    solved, given_up = results["starts"]
    assert (solved["board"], solved["value"], solved["at_least"], solved["at_most"]) == ("tictactoe", 0, 0, 0)
    assert len(solved["best_move"]) == 2
    assert (given_up["value"], given_up["best_move"], given_up["at_least"], given_up["at_most"]) == (None, None, -1, 1)
    assert 50 <= given_up["positions"] < 500


@pytest.mark.slow
def test_levels_are_told_in_the_card_and_measured_anew_for_the_agents_that_are_named(tmp_path):
    study, output = load_study("levels"), tmp_path / "levels.json"
    card = (packaged.archive.FOLDER / "connect2.md").read_text()
    (tmp_path / "connect2.md").write_text(card)
    rows = [{"agent": "brandub", "level": "easy", "against": "hard", "points": 0.25}]
    output.write_text(json.dumps({"rows": rows}))
    study.main(("connect2",), games=4, output=output, cards=tmp_path)
    kept, *own = json.loads(output.read_text())["rows"]
    assert kept == rows[0]
    pairs = [("beginner", "easy"), ("beginner", "medium"), ("beginner", "hard"), ("easy", "medium"), ("easy", "hard")]
    assert [(row["level"], row["against"]) for row in own] == [*pairs, ("medium", "hard")]
    assert all(row["low"] <= row["points"] <= row["high"] for row in own)
    told = (tmp_path / "connect2.md").read_text()
    # Only the section at the end is new.
    assert told.partition(study.TITLE)[0] == card.partition(study.TITLE)[0]
    assert told.count(study.TITLE) == 1
    medium = next(row for row in own if (row["level"], row["against"]) == ("medium", "hard"))
    assert f"| medium |  |  | {medium['points']:.1%} (" in told


@pytest.mark.parametrize("name", packaged.packaged())
def test_the_levels_in_each_card_are_those_of_the_committed_results(name):
    study = load_study("levels")
    rows = [row for row in json.loads((study.RESULTS / "levels.json").read_text())["rows"] if row["agent"] == name]
    card = (packaged.archive.FOLDER / f"{name}.md").read_text()
    assert study.with_levels(card, rows) == card
    assert packaged.levels_of(name) == study.summary(rows)
