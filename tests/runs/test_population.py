"""Populations: their members are ordinary runs."""

import functools
import json
import shutil
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from killing import assert_equal_runs
from small_run import SMALL, with_changes

from azjax.core.errors import InputError, RunError
from azjax.core.pytree import replace_fields
from azjax.games.registry import make
from azjax.parallel.sharding import devices_for_members, make_member_mesh
from azjax.runs import Checkpoints, load_run, members_of, train, train_population
from azjax.training import init, make_iteration

GAME = make("connect2")
CLIMBING = SMALL.replace(ladder_every=2, ladder_games=2, ladder_opponents=("random",), evaluation_share=100.0)


def trained(configs, folder, **options):
    folders = [folder / f"member_{number}" for number in range(len(configs))]
    return train_population(GAME, configs, folders, **options)


def rows(folder):
    return (folder / "metrics.jsonl").read_text()


def assert_close_metrics(one, other):
    """Metrics are equal up to rounding: under full optimization of XLA a loss may round differently."""
    for ours, theirs in zip(rows(one).splitlines(), rows(other).splitlines(), strict=True):
        assert json.loads(ours) == pytest.approx(json.loads(theirs), rel=1e-6, nan_ok=True)


def assert_equal_states(one, other):
    assert all(jax.tree.leaves(jax.tree.map(lambda a, b: bool((a == b).all()), one, other)))


def test_members_are_all_combinations_with_the_seeds_after_the_first():
    members = members_of(SMALL.replace(seed=5), {"learning_rate": [1e-3, 3e-3]}, 4)
    assert [(each.hyper.learning_rate, each.seed) for each in members] == [(1e-3, 5), (1e-3, 6), (3e-3, 5), (3e-3, 6)]
    members = members_of(SMALL, {"seed": [7, 3], "l2": [0.0, 1e-4]})
    assert [(each.hyper.l2, each.seed) for each in members] == [(0.0, 7), (0.0, 3), (1e-4, 7), (1e-4, 3)]
    assert members_of(SMALL, {}, 2) == [SMALL, SMALL.replace(seed=1)]


@pytest.mark.parametrize(
    ("values", "size", "reason"),
    [
        ({"width": [16, 32]}, None, "vary: 'width' cannot differ within a population; seed and c_puct, "),
        ({"l2": []}, None, r"vary: l2 must have one or more different values, got \[\]"),
        ({"seed": [0, 0]}, None, r"vary: seed must have one or more different values, got \[0, 0\]"),
        ({"l2": [0.0, 1e-4]}, 3, "population must be a multiple of 2, the combinations of values; got 3"),
        ({}, 2**31, "population must be at most 65,536, got 2,147,483,648"),
        ({}, 0, "population must be at least 1, got 0"),
        ({"seed": [1, 2]}, 4, "population must be 2, the combinations of values; got 4"),
        ({"learning_rate": [0.0]}, None, "learning_rate must be above 0 in float32, got 0.0"),
        ({"restart_fraction": [0.1, 0.9]}, None, "vary: restart_fraction has no effect with restart_candidates = 0"),
    ],
)
def test_wrong_values_or_sizes_of_a_population_are_refused(values, size, reason):
    with pytest.raises(ValueError, match=reason):
        members_of(SMALL, values, size)


@pytest.mark.parametrize("folders", [[], ["one"], ["one", "one"]])
def test_each_member_needs_a_folder_of_its_own(tmp_path, folders):
    configs = members_of(SMALL, {}, 2)
    with pytest.raises(InputError, match="one member or more, each with a folder of its own; got 2 configurations"):
        train_population(GAME, configs, [tmp_path / folder for folder in folders])
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_member_equals_the_run_alone_to_the_bit_even_if_it_was_interrupted(tmp_path):
    configs = members_of(CLIMBING, {"learning_rate": [1e-3, 1e-2]}, 4)
    trained([each.replace(iterations=2) for each in configs], tmp_path)
    # A process killed between the saves of two members leaves some ahead, with more rows.
    results = trained(configs, tmp_path, resume=True)
    for member in (results[0].folder, results[2].folder):
        (member / "checkpoints" / "4.json").unlink()
        shutil.rmtree(member / "checkpoints" / "4")
    results = trained(configs, tmp_path, resume=True)
    assert [result.iteration for result in results] == [4] * 4
    lone = train(GAME, configs[0], tmp_path / "lone")
    assert_close_metrics(results[0].folder, lone.folder)
    assert_equal_states(results[0].state, lone.state)
    assert rows(results[0].folder) != rows(results[1].folder)
    assert load_run(results[3].folder)[1].hyper.learning_rate == 1e-2


@pytest.mark.slow
def test_a_member_on_several_devices_equals_the_run_alone_to_the_bit(tmp_path):
    settings = "--iterations 4 --width 16 --num-simulations 4 --num-games 4 --updates-per-iteration 2 --batch-size 8"
    command = [sys.executable, "-m", "azjax", "train", "connect2", *settings.split(), "--folder", str(tmp_path)]
    command += ["--population", "4", "--devices", "2", "--vary", "learning_rate=1e-3,1e-2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    config = load_run(tmp_path / "member_03")[1]
    assert (config.hyper.learning_rate, config.seed) == (1e-2, 1)
    lone = train(GAME, config, tmp_path / "lone")
    assert_equal_runs(tmp_path / "member_03", lone.folder)


def test_members_with_and_without_a_number_are_refused(tmp_path):
    configs = [SMALL.replace(dirichlet_alpha=alpha) for alpha in (None, 0.3)]
    with pytest.raises(ValueError, match="what is None in the hyper of one member of a population must be None in all"):
        trained(configs, tmp_path)


def test_members_that_cannot_be_split_evenly_over_the_devices_are_refused(monkeypatch):
    with pytest.raises(ValueError, match=r"devices must be 1\.\.1, the devices of this process, or all; got 2"):
        make_member_mesh(4, 2)
    monkeypatch.setattr(jax, "local_devices", lambda: jax.devices() * 2)
    with pytest.raises(ValueError, match="population must be a multiple of the number of devices, 2; got 3"):
        make_member_mesh(3, 2)
    # The largest number that divides the members.
    assert [devices_for_members(count) for count in (1, 2, 3, 4)] == [1, 2, 1, 2]


@pytest.mark.slow
def test_a_member_is_a_run_that_can_continue_alone(tmp_path):
    configs = members_of(SMALL, {}, 2)
    second = trained(configs, tmp_path)[1]
    longer = load_run(second.folder)[1].replace(iterations=6)
    assert train(GAME, longer, second.folder, resume=True).iteration == 6
    assert Checkpoints(second.folder / "checkpoints").steps()[-1] == 6


@pytest.mark.slow
def test_a_member_that_diverges_leaves_the_others_alone(tmp_path):
    config = SMALL.replace(max_skipped_updates=1)
    with pytest.warns(UserWarning, match="member_1: the last 7 updates were skipped"):
        sound, broken = trained(members_of(config, {"learning_rate": [1e-3, 3e38]}), tmp_path)
    last = [json.loads(rows(each.folder).splitlines()[-1]) for each in (sound, broken)]
    assert [row["iteration"] for row in last] == [4, 4]
    assert last[0]["skipped_in_a_row"] == 0
    assert last[1]["skipped_in_a_row"] > 1
    lone = train(GAME, config, tmp_path / "lone")
    assert_close_metrics(sound.folder, lone.folder)
    assert_equal_states(sound.state, lone.state)


@pytest.mark.slow_except("False-small")
@with_changes(
    {"policy": "gumbel", "solver": True, "trace_cut": 0.9, "td_lambda": 0.8},
    {"network": "resnet", "width": 8},
    {"reuse_tree": True, "random_start_plies": 2, "temperature_plies": 2.0},
    {"reuse_tree": True, "forced_playouts": 2.0},
    {"fast_simulations": 2, "full_search_fraction": 0.5},
    {"first_simulations": 1, "doubling_iterations": 1},
    {"random_start_plies": 2, "schedule_iterations": 2.0, "final_temperature": 0.1, "final_random_start_plies": 0.0},
    {"gate_games": 8, "gate_rounds": 2, "gate_threshold": 0.3},
    {"restart_candidates": 2, "restart_fraction": 0.8, "surprise_weighting": True, "merge_equal_positions": True},
    {"reanalyzed_steps": 2},
)
@pytest.mark.parametrize("in_turn", [True, False])
def test_one_iteration_of_all_is_that_of_each_alone(changes, in_turn, monkeypatch):
    """To the bit on CPU; up to rounding where members share every operation, as on accelerators."""
    if not in_turn:
        monkeypatch.setattr("azjax.parallel.members.jax.default_backend", lambda: "gpu")
    config = SMALL.replace(**changes)
    values = {"c_puct": [0.5, 3.0], "dirichlet_fraction": [0.1, 0.5], "temperature": [0.5, 2.0], "l2": [0.0, 0.1]}
    read = [name for name in values if name not in config.unread]
    configs = members_of(config, {name: values[name] for name in read[:3]})
    seeds = np.array([each.seed for each in configs], np.uint32) + np.arange(len(configs), dtype=np.uint32)
    hypers = jax.tree.map(lambda *values: np.array(values, np.float32), *(each.hyper for each in configs))
    iteration = make_iteration(GAME, config)
    begin, iterate = jax.jit(functools.partial(init, GAME, config)), jax.jit(iteration)
    together = jax.jit(jax.vmap(begin))(seeds, hypers)
    iterate_together = jax.jit(jax.vmap(iteration))
    alone = [begin(seed, jax.tree.map(lambda leaf: leaf[number], hypers)) for number, seed in enumerate(seeds)]
    for _ in range(3):
        together, _ = iterate_together(together, hypers)
        alone = [
            iterate(state, jax.tree.map(lambda leaf: leaf[number], hypers))[0] for number, state in enumerate(alone)
        ]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *alone)
    assert_equal_states(stacked.games, together.games)
    assert_equal_states(stacked.replay.steps.states, together.replay.steps.states)
    assert int(stacked.replay.ready.sum()) > 0
    if in_turn:
        if config.surprise_weighting:  # sums of logarithms, which XLA rounds by how it vectorizes a loop
            surprises = stacked.replay.steps.surprise, together.replay.steps.surprise
            np.testing.assert_allclose(*surprises, atol=1e-6)
            steps = replace_fields(together.replay.steps, surprise=surprises[0])
            together = replace_fields(together, replay=replace_fields(together.replay, steps=steps))
        assert_equal_states(stacked, together)
    else:
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-4), stacked.variables, together.variables)


@pytest.mark.slow
def test_a_population_goes_on_with_the_members_that_it_began_with(tmp_path):
    trained(members_of(SMALL, {}, 2), tmp_path)
    before = rows(tmp_path / "member_0")
    with pytest.raises(RunError, match=r"member_2 has no checkpoint and .*member_0 has: a population goes on with"):
        trained(members_of(SMALL, {}, 3), tmp_path, resume=True)
    assert rows(tmp_path / "member_0") == before
    assert Checkpoints(tmp_path / "member_0" / "checkpoints").steps()
