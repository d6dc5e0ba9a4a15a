"""Faults around the command `azjax train`: signals, full disks, a second trainer and too little memory."""

import json
import os
import re
import signal
import subprocess
import time
import warnings

import pytest
from killing import (
    KILLED,
    TIMEOUT_SECONDS,
    TRAIN,
    assert_equal_runs,
    hangups_heard,
    train_command,
    train_to_the_end,
)
from small_disk import fill, mount, small_disk

from azjax.runs import Checkpoints, load_variables
from azjax.runs.metrics import read_rows

pytestmark = pytest.mark.slow

OPTIONS = [f"--{name}={value}" for name, value in KILLED.items()]


def _start(folder, *options, program=TRAIN):
    return subprocess.Popen(
        train_command("connect2", folder, [*OPTIONS, *options], program),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _refused(folder, *options, program=TRAIN):
    """The one line with which a run ends that cannot continue."""
    process = _start(folder, *options, program=program)
    _, err = process.communicate(timeout=TIMEOUT_SECONDS)
    assert process.returncode == 1, err
    assert len(err.splitlines()) == 1, err
    return err


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    folder = tmp_path_factory.mktemp("straight") / "run"
    train_to_the_end("connect2", folder, OPTIONS)
    return folder


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_saves_at_once_and_the_run_continues_to_the_same_bit(straight, tmp_path, number, code):
    folder = tmp_path / "run"
    with hangups_heard():
        process = _start(folder)
    while not (folder / "checkpoints" / "3.json").exists() and process.poll() is None:
        time.sleep(0.001)
    sent = time.time()
    process.send_signal(number)
    out, err = process.communicate(timeout=TIMEOUT_SECONDS)
    assert (process.returncode, err) == (code, "")
    stopped = int(re.search(r"stopped at iteration (\d+) and saved", out).group(1))
    assert stopped < KILLED["iterations"]
    # Iterations take milliseconds here; 10 seconds are what the documentation promises.
    assert (folder / "checkpoints" / f"{stopped}.json").stat().st_mtime - sent < 10
    train_to_the_end("connect2", folder, OPTIONS)
    assert_equal_runs(folder, straight)


def test_a_terminal_that_is_closed_saves_the_run(straight, tmp_path):
    """The system sends SIGHUP, and writing to the terminal fails from then on."""
    folder, (ours, theirs) = tmp_path / "run", os.openpty()
    own_terminal = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    command = train_command("connect2", folder, [*OPTIONS, "--checkpoint-every=1000"], own_terminal + TRAIN)
    with hangups_heard():
        process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    while not (rows := read_rows(folder / "metrics.jsonl")) and process.poll() is None:
        os.read(ours, 65536)
        time.sleep(0.001)
    os.close(ours)
    assert process.wait(TIMEOUT_SECONDS) == 128 + signal.SIGHUP
    (stopped,) = Checkpoints(folder / "checkpoints").steps()
    assert len(rows) <= stopped < KILLED["iterations"]
    train_to_the_end("connect2", folder, [*OPTIONS, "--accept-changes"])
    assert_equal_runs(straight, folder)


def test_a_full_disk_is_reported_in_one_line_and_the_run_continues_with_more_space(straight, tmp_path):
    with small_disk(tmp_path / "disk") as disk:
        line = _refused(disk / "run", "--keep-checkpoints=1000")
        assert re.search(r"checkpoint \d+ could not be written to .* MB are needed and .* MB are free", line)
        last = Checkpoints(disk / "run" / "checkpoints").steps()[-1]
        assert last >= 3
        assert load_variables(disk / "run")[0] == last
        # There is no space even for what is written before the first checkpoint.
        fill(disk, free=0)
        assert "No space left on device" in _refused(disk / "other")
        assert "No space left on device" in _refused(disk / "run", "--keep-checkpoints=1000")
        assert load_variables(disk / "run")[0] == last
        (disk / "filler").unlink()
        mount("remount,size=100m", disk)
        train_to_the_end("connect2", disk / "run", [*OPTIONS, "--accept-changes"])
        assert_equal_runs(disk / "run", straight)


def test_a_disk_that_fills_despite_the_check_is_reported_in_one_line(tmp_path):
    with small_disk(tmp_path / "disk") as disk:
        # As with a quota, or with another process that writes.
        program = "import shutil, types; shutil.disk_usage = lambda _: types.SimpleNamespace(free=1e9); " + TRAIN
        line = _refused(disk / "run", "--keep-checkpoints=1000", program=program)
        assert "No space left on device" in line
        last = Checkpoints(disk / "run" / "checkpoints").steps()[-1]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that the half-written step is damaged
            assert load_variables(disk / "run")[0] == last


def test_a_read_only_disk_is_reported_in_one_line_and_can_be_read(tmp_path):
    with small_disk(tmp_path / "disk") as disk:
        train_to_the_end("connect2", disk / "run", [*OPTIONS, "--iterations=3"])
        mount("remount,ro", disk)
        assert _refused(disk / "run") == f"azjax: {disk}/run cannot be written: Read-only file system\n"
        assert _refused(disk / "other") == f"azjax: {disk}/other cannot be made: Read-only file system\n"
        assert load_variables(disk / "run")[0] == 3


def test_one_of_two_trainers_in_a_folder_is_refused(straight, tmp_path):
    folder = tmp_path / "run"
    processes = [_start(folder), _start(folder)]
    ended = [(*process.communicate(timeout=TIMEOUT_SECONDS), process.returncode) for process in processes]
    codes = sorted(code for *_, code in ended)
    assert codes == [0, 1], ended
    ((_, err, _),) = (one for one in ended if one[2] == 1)
    (winner,) = (process.pid for process in processes if process.returncode == 0)
    assert err == f"azjax: {folder}: another process trains there: number {winner} on {os.uname().nodename}\n"
    assert_equal_runs(folder, straight)


def test_the_lock_of_a_killed_trainer_is_released(straight, tmp_path):
    folder = tmp_path / "run"
    process = _start(folder)
    while not (folder / "checkpoints" / "3.json").exists() and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGSTOP)  # it would end before the other process has begun
    assert f"number {process.pid} on" in _refused(folder)
    process.kill()
    process.communicate()
    train_to_the_end("connect2", folder, OPTIONS)
    assert_equal_runs(folder, straight)


def test_a_run_that_needs_too_much_memory_is_refused_in_one_line(tmp_path):
    replay = _refused(tmp_path / "run", "--replay-size=1000000000")
    assert re.search(r"replay [\d.,]+ GB \(replay_size = 1000000000\).*; lower replay_size$", replay.strip())
    trees = _refused(tmp_path / "run", "--num-games=1000000", "--num-simulations=256", "--replay-size=100000000")
    assert re.search(r"num_games = 1000000, num_simulations = 256\).*; lower num_games or num_simulations", trees)
    assert not (tmp_path / "run").exists()


def test_changes_are_refused_and_accepted_by_the_command(tmp_path):
    folder = tmp_path / "run"
    train_to_the_end("connect2", folder, [*OPTIONS, "--iterations=3"])
    line = _refused(folder, "--c-puct=2.5")
    assert line == (
        f"azjax: {folder} was made with c_puct = 1.25, requested 2.5; nothing was changed; "
        "--accept-changes goes on with the requested values\n"
    )
    train_to_the_end("connect2", folder, [*OPTIONS, "--iterations=6", "--c-puct=2.5", "--accept-changes"])
    assert Checkpoints(folder / "checkpoints").steps()[-1] == 6
    assert json.loads((folder / "config.json").read_text())["config"]["hyper"]["c_puct"] == 2.5
