import dataclasses
import fcntl
import os
import re
import shutil
import signal
import threading
import time

import pytest
import small_run
from killing import KILLED, assert_equal_runs, checkpoint_bits, train_killed, train_to_the_end

from azjax.games.game import make
from azjax.training import Checkpoints, RunError, load_run, load_variables, train

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


def test_a_run_folder_is_never_overwritten(straight):
    before = checkpoint_bits(straight)
    with pytest.raises(RunError, match="holds a run already: go on with --resume"):
        train(GAME, SMALL, straight)
    assert checkpoint_bits(straight) == before


def test_resuming_a_finished_run_trains_nothing(straight):
    before = (straight / "metrics.jsonl").read_bytes()
    result = train(GAME, SMALL, straight, resume=True)
    assert result.iteration == 6
    assert (straight / "metrics.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_simulations": 5}, "num_simulations = 4, asked for 5"),
        ({"hyper": dataclasses.replace(SMALL.hyper, c_puct=2.0)}, r"c_puct = 1.25, asked for 2.0"),
    ],
)
def test_another_configuration_stops_naming_the_field(straight, changes, message):
    with pytest.raises(RunError, match=message):
        train(GAME, dataclasses.replace(SMALL, **changes), straight, resume=True)


def test_another_game_stops_naming_it(straight):
    config = dataclasses.replace(SMALL, replay_size=128)
    with pytest.raises(RunError, match="game = connect2, asked for tictactoe"):
        train(make("tictactoe"), config, straight, resume=True)


def test_a_configuration_that_does_not_fit_leaves_no_folder(tmp_path):
    with pytest.raises(ValueError, match="replay_size must be at least"):
        train(GAME, dataclasses.replace(SMALL, replay_size=16), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_folder_that_is_not_a_run_is_refused_and_kept(tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(RunError, match=r"is not a run folder: there is no config\.json"):
        train(GAME, SMALL, tmp_path, resume=True)
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


@pytest.mark.parametrize("content", ["", "[]", '{"game": "connect2"}'])
def test_a_config_that_cannot_be_read_is_told(tmp_path, content):
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(RunError, match=r"its config\.json cannot be read"):
        load_run(tmp_path)


def test_a_config_of_another_time_is_told(straight, tmp_path):
    text = (straight / "config.json").read_text()
    for changed in (text.replace('"start_positions"', '"starts"'), text.replace('"depth"', '"deepness"')):
        (tmp_path / "config.json").write_text(changed)
        with pytest.raises(RunError, match=r"its config\.json does not describe a run"):
            load_run(tmp_path)


def test_a_run_folder_gives_back_game_config_and_network(straight):
    assert load_run(straight) == (GAME, SMALL)
    step, variables = load_variables(straight)
    assert step == 6
    assert variables["params"]["policy"]["kernel"].shape == (16, 4)


def test_a_damaged_newest_checkpoint_is_told_and_the_one_before_goes_on(straight, tmp_path):
    folder = tmp_path / "run"
    train(GAME, SMALL, folder)
    (folder / "checkpoints" / "6" / "_CHECKPOINT_METADATA").write_text("damaged")
    with pytest.warns(UserWarning, match="checkpoint 6 is damaged"):
        train(GAME, SMALL, folder, resume=True)
    assert_equal_runs(folder, straight)


def test_where_all_checkpoints_are_lost_it_stops_and_keeps_the_metrics(straight, tmp_path):
    folder = shutil.copytree(straight, tmp_path / "run")
    for manifest in (folder / "checkpoints").glob("*.json"):
        manifest.unlink()
    before = (folder / "metrics.jsonl").read_bytes()
    with pytest.raises(RunError, match="has metrics and no checkpoint"):
        train(GAME, SMALL, folder, resume=True)
    assert (folder / "metrics.jsonl").read_bytes() == before


def test_a_damaged_metrics_row_is_told_and_nothing_is_cut(straight, tmp_path):
    folder = shutil.copytree(straight, tmp_path / "run")
    metrics = folder / "metrics.jsonl"
    damaged = metrics.read_bytes().replace(b'{"iteration": 2', b'{"iteration: 2')
    metrics.write_bytes(damaged)
    with pytest.raises(RunError, match=r"metrics.jsonl: line 2 is damaged or missing; there must be rows 1 to 6"):
        train(GAME, SMALL, folder, resume=True)
    assert metrics.read_bytes() == damaged


def test_a_second_trainer_is_refused(straight):
    with (straight / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(RunError, match="another process trains there"):
            train(GAME, SMALL, straight, resume=True)


def test_a_loss_that_is_no_number_stops_before_it_is_saved(tmp_path):
    wild = dataclasses.replace(SMALL, hyper=dataclasses.replace(SMALL.hyper, learning_rate=1e30))
    with pytest.raises(RunError, match=r"the loss is (nan|inf) at iteration"):
        train(GAME, wild, tmp_path / "run")


def test_a_first_writing_that_was_cut_off_does_not_block_the_folder(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "config.json.partial").write_text("{")
    assert train(GAME, dataclasses.replace(SMALL, iterations=1), folder).iteration == 1


def test_another_version_of_a_package_is_told(straight, tmp_path):
    folder = shutil.copytree(straight, tmp_path / "run")
    config = folder / "config.json"
    config.write_text(re.sub(r'"jax": ".*?"', '"jax": "0.0.1"', config.read_text()))
    with pytest.warns(UserWarning, match=r"was made with jax 0\.0\.1, this is .*: bits may differ"):
        train(GAME, SMALL, folder, resume=True)


def test_a_run_from_before_a_field_was_there_goes_on_with_its_default(straight, tmp_path):
    folder = shutil.copytree(straight, tmp_path / "run")
    config = folder / "config.json"
    config.write_text(re.sub(r'\s*"reuse_tree": false,', "", config.read_text()))
    assert "reuse_tree" not in config.read_text()
    assert train(GAME, SMALL, folder, resume=True).iteration == 6
    with pytest.raises(RunError, match="was made with solver = False, asked for True"):
        train(GAME, dataclasses.replace(SMALL, solver=True), folder, resume=True)


def test_a_signal_saves_and_stops_and_the_run_goes_on_to_the_same_bit(straight, tmp_path):
    folder = tmp_path / "run"
    # Sent from another thread as soon as the first rows are there.
    timing = folder / "timing.jsonl"

    def interrupt():
        while not timing.exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=interrupt)
    thread.start()
    result = train(GAME, SMALL, folder)
    thread.join()
    assert result.stopped_by == signal.SIGTERM
    assert Checkpoints(folder / "checkpoints").steps()[-1] == result.iteration < 6
    assert train(GAME, SMALL, folder, resume=True).stopped_by is None
    assert checkpoint_bits(folder) == checkpoint_bits(straight)


def test_kill_9_at_any_moment_resumes_to_the_same_bit(tmp_path):
    """A sample: the slow suite kills more often."""
    options = [f"--{name}={value}" for name, value in KILLED.items()]
    train_to_the_end("connect2", tmp_path / "straight", options)
    assert train_killed("connect2", tmp_path / "killed", options, kills=1, longest=2.0, seed=0) > 0
    assert_equal_runs(tmp_path / "straight", tmp_path / "killed")
