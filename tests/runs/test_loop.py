import dataclasses
import io
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys

import jax
import numpy as np
import pytest
import small_run
from killing import KILLED, assert_equal_runs, checkpoint_bits, hangups_heard, train_killed, train_to_the_end
from rich.console import Console

from azjax.core.errors import FileError, InputError, RunError
from azjax.games.registry import make
from azjax.runs import Callback, Checkpoints, load_variables, loop, train
from azjax.runs.evaluation import PeriodicEvaluation
from azjax.runs.memory import Memory, memory_need
from azjax.runs.metrics import METRICS, TIMING, read_rows
from azjax.training import init

SMALL = dataclasses.replace(small_run.SMALL, iterations=6)

GAME = make("connect2")


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    folder = tmp_path_factory.mktemp("straight") / "run"
    train(GAME, SMALL, folder)
    return folder


def test_a_run_in_two_halves_equals_a_straight_one_to_the_bit(straight, tmp_path):
    folder = tmp_path / "run"
    train(GAME, dataclasses.replace(SMALL, iterations=3), folder)
    train(GAME, SMALL, folder, resume=True)
    assert_equal_runs(folder, straight)


# One entry for each option.
OPTIONS = [
    {"network": "resnet", "optimizer": "muon"},
    {"precision": "bfloat16", "network": "equivariant_mlp", "activation": "squared_relu"},
    {"policy": "gumbel", "max_num_considered_actions": 2, "value_scale": 0.5, "rescale_values": False},
    {"fast_simulations": 2, "full_search_fraction": 0.5},
    {"reuse_tree": True, "forced_playouts": 2.0},
    {"selection": "variance_scaled"},
    {"solver": True, "root_value_fraction": 0.5},
    {"trace_cut": 0.9},
    {"td_lambda": 0.8},
    {"truncate_at_ply": 2},
    {"random_start_plies": 2, "start_positions": ("____", "X___")},
    {"exploring_starts": 0.5, "exploring_plies": 2, "evaluation_share": 10.0},
    {"first_simulations": 2, "doubling_iterations": 3},
    {"random_start_plies": 2, "schedule_iterations": 4.0, "final_temperature": 0.1, "final_random_start_plies": 0.0},
    {"symmetries": False, "ema_decay": 0.9},
    {"restart_candidates": 3, "restart_fraction": 0.7, "surprise_weighting": True, "reanalyzed_steps": 2},
    {"merge_equal_positions": True},
    {"network": "board", "auxiliary_losses": ("outcome", "plies_left", "short_term", "opponent_policy")},
    {"network": "board", "auxiliary_losses": ("value_error",), "uncertainty_weighting": True},
    {"warmup_updates": 3, "decay_updates": 6, "final_learning_rate": 1e-4, "max_gradient_norm": 1.0},
    {"gate_games": 4, "gate_rounds": 2, "gate_threshold": 0.6, "gate_tolerance": 0.1},
    {"ladder_every": 2, "ladder_games": 2, "ladder_opponents": ("random", "uct:2"), "evaluation_share": 1.0},
    {"temperature": 0.5, "temperature_plies": 2.0, "late_temperature": 0.0},
    {"dirichlet_fraction": 0.5, "dirichlet_alpha": 1.0, "c_puct": 2.0, "l2": 0.0, "learning_rate": 1e-2},
]
NUMBERED = {"exploring_starts"}
"""Options for games that number their positions."""
SIZES = {"seed", "iterations", "width", "depth", "num_simulations", "num_games", "steps_per_iteration", "batch_size"}
SIZES |= {"replay_size", "updates_per_iteration", "evaluate_every", "checkpoint_every", "keep_checkpoints"}


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(options))
def test_a_run_with_an_option_in_two_halves_equals_a_straight_one_to_the_bit(options, tmp_path):
    game = make("santorini", size=2, workers=1) if options.keys() & NUMBERED else GAME
    config = dataclasses.replace(SMALL.replace(**options), iterations=4)
    train(game, config, tmp_path / "straight")
    train(game, dataclasses.replace(config, iterations=3), tmp_path / "halves")
    train(game, config, tmp_path / "halves", resume=True)
    assert_equal_runs(tmp_path / "halves", tmp_path / "straight")


@pytest.mark.slow
def test_the_rate_of_simulations_is_that_of_the_iteration(tmp_path):
    train(GAME, SMALL.replace(iterations=3, first_simulations=1, doubling_iterations=1), tmp_path / "run")
    timing = read_rows(tmp_path / "run" / TIMING)
    # Four games of four plies.
    assert [round(row["simulations_per_second"] * row["seconds"]) for row in timing] == [16, 32, 64]


def test_every_option_has_its_entry():
    fields = {field.name for part in (SMALL, SMALL.hyper) for field in dataclasses.fields(part)}
    assert fields - SIZES - {"hyper", "max_skipped_updates"} == {name for options in OPTIONS for name in options}


def test_updates_that_were_skipped_to_the_end_are_told(tmp_path):
    wild = dataclasses.replace(SMALL, iterations=2, max_skipped_updates=100).replace(learning_rate=1e30)
    with pytest.warns(UserWarning, match=r"the last \d updates were skipped, since their gradient was not finite"):
        train(GAME, wild, tmp_path / "run")


@pytest.mark.usefixtures("types_unchecked")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((GAME, {"iterations": 3}, "run"), r"config must be a Config, such as azjax.preset\(game\), got {'iterations'"),
        ((GAME, SMALL, None), "folder must be a path, got None"),
        ((type(GAME), SMALL, "run"), "game must be a game, such as .*, got its class"),
        ((GAME, SMALL, "run", [len]), "loss_terms must be a sequence of LossTerm, .*, got <built-in function len>"),
        ((GAME, SMALL, "run", "value"), "loss_terms must be a sequence of LossTerm, .*, got 'value'"),
    ],
)
def test_arguments_of_other_types_are_refused_before_a_folder_is_made(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = {"loss_terms": arguments[3]} if arguments[3:] else {}
    with pytest.raises(InputError, match=message):
        train(*arguments[:3], **options)
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("types_unchecked")
@pytest.mark.parametrize("step", [2.0, "2", True])
def test_a_step_that_is_no_number_is_refused(straight, step):
    with pytest.raises(InputError, match=f"step must be the number of a checkpoint, 'best' or None, got {step!r}"):
        load_variables(straight, step)


def test_a_damaged_metrics_row_is_named_and_nothing_is_dropped(straight, tmp_path):
    folder = shutil.copytree(straight, tmp_path / "run")
    metrics = folder / "metrics.jsonl"
    damaged = metrics.read_bytes().replace(b'{"iteration": 2', b'{"iteration: 2')
    metrics.write_bytes(damaged)
    config = (folder / "config.json").read_bytes()
    with (
        pytest.warns(UserWarning, match="learning_rate"),
        pytest.raises(RunError, match=r"metrics.jsonl: line 2 is damaged or missing; there must be rows 1 to 6"),
    ):
        train(GAME, SMALL.replace(learning_rate=1e-4), folder, resume=True, accept_changes=True)
    assert metrics.read_bytes() == damaged
    assert (folder / "config.json").read_bytes() == config


def test_a_second_trainer_is_refused_and_the_lock_of_a_dead_one_is_not(straight):
    program = "import fcntl, sys; file = open(sys.argv[1], 'a+'); fcntl.flock(file, fcntl.LOCK_EX); print(); input()"
    command = [sys.executable, "-c", program, straight / "lock"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as trainer:
        trainer.stdout.readline()
        # The lock names the last process that trained there.
        with pytest.raises(RunError, match=rf"another process trains there: number {os.getpid()} on "):
            train(GAME, SMALL, straight, resume=True)
        trainer.kill()
    assert train(GAME, SMALL, straight, resume=True).iteration == 6


def test_updates_skipped_in_a_row_stop_the_run_and_leave_their_batch(tmp_path):
    folder = tmp_path / "run"
    wild = SMALL.replace(learning_rate=1e30, max_skipped_updates=3)
    with pytest.raises(RunError, match=r"updates in a row were skipped .* their gradient was not finite") as raised:
        train(GAME, wild, folder)
    (path,) = folder.glob("skipped_batch_*.npz")
    assert str(path) in str(raised.value)
    with np.load(path, allow_pickle=False) as batch:
        assert batch["key"].shape == (2,)
        assert {len(leaf) for name, leaf in batch.items() if name != "key"} == {SMALL.batch_size}
    last = json.loads((folder / "metrics.jsonl").read_text().splitlines()[-1])
    assert last["skipped_in_a_row"] > 3
    for step in Checkpoints(folder / "checkpoints").steps():
        _, variables = load_variables(folder, step)
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(variables))


def test_a_run_that_does_not_fit_into_the_memory_is_refused_before_it_is_compiled(tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "memory_of", lambda *_: Memory(5000, 5000))
    monkeypatch.setattr(loop, "PeriodicEvaluation", None)
    message = (
        r"5\.0 kB are free, .* replay \d\.\d kB \(replay_size = 64\), .*num_games = 4, num_simulations = 4.*; lower "
    )
    with pytest.raises(RunError, match=message):
        train(GAME, SMALL, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_run_that_goes_on_long_after_its_schedule_is_told(tmp_path):
    with pytest.warns(UserWarning, match="falls until optimizer step 4 of 12 and then stays at final_learning_rate"):
        train(GAME, SMALL.replace(decay_updates=4, evaluate_every=0), tmp_path / "run")


@pytest.mark.slow
def test_the_temporary_arrays_of_the_iteration_count_too(tmp_path, monkeypatch):
    config = SMALL.replace(batch_size=64)
    like = jax.eval_shape(lambda: init(GAME, config, 0, config.hyper))
    free = memory_need(GAME, config, like).total
    monkeypatch.setattr(loop, "memory_of", lambda *_: Memory(free, free))
    with pytest.raises(RunError, match=r"temporary arrays .* kB \(batch_size = 64\)"):
        train(GAME, config, tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_an_interrupted_first_write_does_not_block_the_folder(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "lock").write_text("")
    (folder / "config.json.partial").write_text("{")
    assert train(GAME, dataclasses.replace(SMALL, iterations=1), folder).iteration == 1


def test_a_run_without_a_later_field_continues_with_its_default(straight, tmp_path):
    folder = shutil.copytree(straight, tmp_path / "run")
    config = folder / "config.json"
    lines = "reuse_tree|max_gradient_norm"
    config.write_text(re.sub(rf'\s*"({lines})": .*,', "", config.read_text()))
    assert "reuse_tree" not in config.read_text()
    assert train(GAME, SMALL, folder, resume=True).iteration == 6
    with pytest.raises(RunError, match="was made with solver = False, requested True"):
        train(GAME, dataclasses.replace(SMALL, solver=True), folder, resume=True)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_saves_and_stops_and_the_run_continues_to_the_same_bit(straight, tmp_path, number):
    folder = tmp_path / "run"

    def interrupt(update):
        if update.iteration == 3:
            signal.raise_signal(number)

    with hangups_heard():
        result = train(GAME, SMALL, folder, callbacks=[interrupt])
    assert (result.stopped_by, result.iteration) == (number, 3)
    assert Checkpoints(folder / "checkpoints").steps()[-1] == 3  # no multiple of `checkpoint_every`
    assert train(GAME, SMALL, folder, resume=True).stopped_by is None
    assert_equal_runs(folder, straight)


def test_the_checkpoint_of_a_stop_is_never_the_best(tmp_path, monkeypatch):
    scores = itertools.count(0, -1)  # each better than the one before
    monkeypatch.setattr(PeriodicEvaluation, "score", lambda *_: next(scores))
    stop = [lambda update: update.iteration == 3 and signal.raise_signal(signal.SIGTERM)]
    assert train(GAME, SMALL, tmp_path, callbacks=stop).iteration == 3
    checkpoints = Checkpoints(tmp_path / "checkpoints")
    assert (checkpoints.steps()[-1], checkpoints.best_step()) == (3, 2)
    train(GAME, SMALL, tmp_path, resume=True)
    assert checkpoints.best_step() == 6


def test_a_run_whose_output_nobody_reads_any_more_saves_and_stops(tmp_path, monkeypatch):
    discarded = []
    monkeypatch.setattr(loop, "discard_output", discarded.append)

    def print_to_nobody(update):
        if update.iteration == 3:
            raise BrokenPipeError

    result = train(GAME, SMALL, tmp_path, callbacks=[print_to_nobody])
    assert (result.stopped_by, result.iteration, discarded) == (signal.SIGPIPE, 3, [[1]])
    assert Checkpoints(tmp_path / "checkpoints").steps()[-1] == 3


def test_a_hangup_that_is_ignored_stops_nothing(straight, tmp_path):
    """As in a run that was begun with nohup."""
    folder, before = tmp_path / "run", signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        result = train(GAME, SMALL, folder, callbacks=[lambda _: signal.raise_signal(signal.SIGHUP)])
    finally:
        signal.signal(signal.SIGHUP, before)
    assert result.stopped_by is None
    assert checkpoint_bits(folder) == checkpoint_bits(straight)


def test_a_callback_sees_each_iteration_with_its_metrics_and_state(straight, tmp_path):
    seen = []

    class Seen(Callback):
        def begin(self, folder, config, iteration):
            seen.append(("begin", folder.name, config.iterations, iteration))

        def __call__(self, update):
            seen.append((update.iteration, update.iterations, int(update.state.iteration)))
            assert update.metrics.keys() >= {"loss", "games"}
            assert update.timing["seconds"] > 0
            assert read_rows(tmp_path / "run" / METRICS)[-1]["iteration"] == update.iteration

        def save(self):
            seen.append("save")

        def end(self):
            seen.append("end")

    short = dataclasses.replace(SMALL, iterations=2, checkpoint_every=2)
    train(GAME, short, tmp_path / "run", callbacks=[Seen()])
    assert seen == [("begin", "run", 2, 0), (1, 2, 1), (2, 2, 2), "save", "end"]


@pytest.mark.usefixtures("types_unchecked")
@pytest.mark.parametrize("callback", [3, Callback], ids=str)
def test_what_is_no_callback_is_refused_before_a_folder_is_made(tmp_path, callback):
    with pytest.raises(InputError, match="callbacks must be functions of an Update or objects of Callback, got "):
        train(GAME, SMALL, tmp_path / "run", callbacks=[callback])
    assert not (tmp_path / "run").exists()


def test_an_exception_of_a_callback_ends_the_run_and_the_callbacks(tmp_path):
    ended = []

    class Broken(Callback):
        def __call__(self, update):
            raise ZeroDivisionError

        def end(self):
            ended.append(True)

    with pytest.raises(ZeroDivisionError):
        train(GAME, SMALL, tmp_path / "run", callbacks=[Broken()])
    assert ended == [True]


@pytest.mark.slow
def test_a_killed_run_resumes_to_the_same_bit(tmp_path):
    """The slow suite kills more often."""
    options = [f"--{name}={value}" for name, value in {**KILLED, "iterations": 40}.items()]
    train_to_the_end("connect2", tmp_path / "straight", options)
    assert train_killed("connect2", tmp_path / "killed", options, kills=1, longest=2.0, seed=0) > 0
    assert_equal_runs(tmp_path / "straight", tmp_path / "killed")


def test_a_configuration_that_is_removed_while_the_run_goes_on_is_written_again(straight, tmp_path):
    def remove(update):
        if update.iteration == 1:
            (tmp_path / "run/config.json").unlink()

    with pytest.warns(UserWarning, match=r"run/config\.json was missing and is written again"):
        train(GAME, SMALL, tmp_path / "run", callbacks=[remove])
    assert (tmp_path / "run/config.json").read_bytes() == (straight / "config.json").read_bytes()


def test_a_lock_that_is_removed_while_the_run_goes_on_ends_it(tmp_path):
    def remove(update):
        if update.iteration == 1:
            (tmp_path / "run/lock").unlink()

    with pytest.raises(FileError, match=r"run/lock was removed or replaced .* another process may train there"):
        train(GAME, SMALL, tmp_path / "run", callbacks=[remove])


@pytest.mark.parametrize("change", ["removed", "renamed"])
def test_a_folder_that_vanishes_while_the_run_goes_on_is_told(tmp_path, change):
    folder = tmp_path / "run"

    def vanish(update):
        if update.iteration == 1:
            shutil.rmtree(folder) if change == "removed" else folder.rename(tmp_path / "other")

    with pytest.raises(FileError, match=r"run/metrics\.jsonl was removed or replaced while the run went on"):
        train(GAME, SMALL, folder, callbacks=[vanish])
    assert not folder.exists()


@pytest.mark.parametrize(("warm_up", "decay", "told"), [(0, 8, False), (3, 5, False), (0, 9, True), (9, 0, True)])
def test_a_run_that_ends_before_the_schedule_of_its_learning_rate_says_so(tmp_path, warm_up, decay, told):
    """4 iterations of 2 updates."""
    schedule = {"warmup_updates": warm_up, "decay_updates": decay}
    output, config = io.StringIO(), small_run.SMALL.replace(evaluate_every=0, **schedule)
    train(make("connect2"), config, tmp_path / "run", console=Console(file=output))
    note = f"warmup_updates is {warm_up}, decay_updates is {decay}, and this run has 8 updates"
    assert (note in output.getvalue()) == told
