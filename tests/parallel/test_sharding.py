"""One device and many play the same games, learn alike up to rounding, and can resume from each other's checkpoints."""

import re

import jax
import numpy as np
import pytest
from killing import checkpoint_bits
from many_devices import GAME, rows, train_on
from small_run import SMALL, with_changes

from azjax.games.registry import make
from azjax.parallel.sharding import make_mesh
from azjax.runs import train
from azjax.training import init, make_iteration

SIZES = {"num_games": 16, "batch_size": 16, "replay_size": 256, "symmetries": True}
TOLERANCE = 1e-4  # of the metrics of the first iterations; see docs/many_devices.md


def assert_alike(ours, theirs):
    """Rows of metrics are equal up to rounding; the games of the first iteration are equal."""
    counted = ("games", "first_wins", "draws", "second_wins", "replay_positions", "plies_per_game", "proven_share")
    for name in counted:
        assert ours[0][name] == theirs[0][name]
    for our, their in zip(ours, theirs, strict=True):
        assert our.keys() == their.keys()
        for name in our:
            if our[name] is not None:
                assert our[name] == pytest.approx(their[name], rel=TOLERANCE, abs=TOLERANCE), (our["iteration"], name)


@with_changes(
    {"policy": "gumbel", "solver": True, "trace_cut": 0.9, "td_lambda": 0.8},
    {"network": "resnet", "width": 8},
    {"reuse_tree": True, "forced_playouts": 2.0, "random_start_plies": 2},
    {"fast_simulations": 2, "full_search_fraction": 0.5, "temperature_plies": 2.0},
    {"first_simulations": 1, "doubling_iterations": 2},
    {"random_start_plies": 2, "schedule_iterations": 3.0, "final_temperature": 0.2, "final_random_start_plies": 0.0},
    {"gate_games": 8, "gate_rounds": 2, "gate_threshold": 0.3},
    {"restart_candidates": 2, "restart_fraction": 0.8, "surprise_weighting": True, "merge_equal_positions": True},
    {"reanalyzed_steps": 2},
    {"network": "board", "width": 4, "auxiliary_losses": ("outcome", "plies_left", "short_term", "opponent_policy")},
    {"network": "board", "width": 4, "auxiliary_losses": ("value_error",), "uncertainty_weighting": True},
    {"ladder_every": 2, "ladder_games": 8, "ladder_opponents": ("random",), "evaluation_share": 9.0},
)
def test_several_devices_learn_alike_and_a_checkpoint_of_all_goes_on_on_one(changes, tmp_path):
    counts = [1, 2, 8] if changes else [1, 2]
    runs = train_on(tmp_path, counts, {**SIZES, **changes})
    most = counts[-1]
    for count in counts[1:]:
        assert_alike(runs[1], runs[count])
    config = SMALL.replace(**SIZES, **changes)
    made = f"was made with devices = {most}, requested 1; going on with the requested values"
    with pytest.warns(UserWarning, match=made):
        train(make(GAME), config.replace(iterations=6), tmp_path / str(most), resume=True)
    train(make(GAME), config.replace(iterations=6), tmp_path / "1", resume=True)
    assert_alike(rows(tmp_path / "1"), rows(tmp_path / str(most)))
    assert checkpoint_bits(tmp_path / str(most))[0] == 6


@pytest.mark.slow
def test_a_checkpoint_of_one_device_goes_on_on_eight(tmp_path):
    config = SMALL.replace(**SIZES)
    train(make(GAME), config, tmp_path / "8")
    train(make(GAME), config.replace(iterations=6), tmp_path / "1")
    assert_alike(rows(tmp_path / "1"), train_on(tmp_path, [8], {**SIZES, "iterations": 6})[8])


@pytest.mark.slow
def test_a_mesh_of_one_device_changes_no_bit():
    game, config = make(GAME), SMALL
    hyper = jax.tree.map(np.float32, config.hyper)
    begin = jax.jit(lambda: init(game, config, 0, hyper))
    plain, meshed = (jax.jit(make_iteration(game, config, mesh)) for mesh in (None, make_mesh()))
    ours, theirs = begin(), begin()
    for _ in range(2):
        (ours, metrics), (theirs, other_metrics) = meshed(ours, hyper), plain(theirs, hyper)
        jax.tree.map(np.testing.assert_array_equal, metrics, other_metrics)
    jax.tree.map(np.testing.assert_array_equal, ours.variables, theirs.variables)


@pytest.mark.parametrize("devices", [0, 99])
def test_more_devices_than_there_are_are_refused(devices, tmp_path):
    there = len(jax.local_devices())
    message = f"devices must be 1..{there}, the devices of this process, or all; got {devices}"
    with pytest.raises(ValueError, match=re.escape(message)):
        train(make(GAME), SMALL, tmp_path / "run", devices=devices)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("field", ["num_games", "batch_size"])
def test_sizes_that_cannot_be_split_evenly_are_refused(field, monkeypatch):
    devices = [*jax.devices()] * 8
    monkeypatch.setattr(jax, "devices", lambda: devices)
    monkeypatch.setattr(jax, "local_devices", lambda: devices)
    config = SMALL.replace(**{**SIZES, field: 12})
    with pytest.raises(ValueError, match=f"{field} must be a multiple of the number of devices, 8; got 12"):
        make_mesh("all", num_games=config.num_games, batch_size=config.batch_size)
