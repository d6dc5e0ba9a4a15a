"""The studies of speed: self-play, networks, a GPU."""

import json
import os
import subprocess
import sys

import jax
import numpy as np
import pytest
from studies import EXPERIMENTS, load_study

from azjax.games.registry import make
from azjax.networks import Resnet


@pytest.mark.slow
def test_the_speed_of_self_play_is_measured_at_tiny_sizes(tmp_path):
    output = tmp_path / "speed.json"
    # In a process of its own, since JAX runs in this one, on one device.
    code = f"""if True:
        import pathlib, self_play_speed as study
        study.NETWORKS = (("mlp", 8, 1, "float32"), ("resnet", 4, 1, "bfloat16"))
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


@pytest.mark.slow
def test_the_residual_network_with_convolutions_of_flax_is_the_same_function():
    game, variants = make("connect_four"), (Resnet(8, 1), load_study("self_play_speed").FlaxResnet(8, 1))
    ours, plain = (network.for_game(game) for network in variants)
    variables = ours.init(jax.random.key(0), game)
    observations = jax.random.normal(jax.random.key(1), (4, *game.observation_shape))
    outputs = [network.apply(variables, observations, train=False)[0] for network in (ours, plain)]
    np.testing.assert_allclose(outputs[0].prior_logits, outputs[1].prior_logits, atol=1e-5)
    np.testing.assert_allclose(outputs[0].value, outputs[1].value, atol=1e-5)


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
