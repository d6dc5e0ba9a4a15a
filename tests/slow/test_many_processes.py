"""A run of several processes on this machine: faults of one process, and the restart."""

import json
import signal
import subprocess

import pytest
from killing import TIMEOUT_SECONDS, TRAIN, assert_equal_runs, train_command
from many_devices import rows
from many_processes import GAME, finish, start, wait_for_checkpoint

pytestmark = pytest.mark.slow

MAX_SECONDS = 30


def _line(lost, how, rank):
    return (
        f"azjax: process {lost} {how}, so that process {rank} stops too; the same command with --resume in every "
        "process goes on from the last checkpoint\n"
    )


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    folder = tmp_path_factory.mktemp("straight") / "run"
    assert finish(start(folder, "--iterations=30")) == [(0, ""), (0, "")]
    return folder


@pytest.mark.parametrize(("processes", "victim"), [(2, 0), (2, 1), (3, 2)])
def test_all_processes_stop_naming_a_killed_one_and_a_restart_continues_to_the_same_bit(
    straight, tmp_path, processes, victim
):
    folder = tmp_path / "run"
    run = start(folder, "--iterations=30", processes=processes)
    wait_for_checkpoint(folder, 9, run)
    run[victim].kill()
    ended = finish(run, MAX_SECONDS)
    for rank, (code, err) in enumerate(ended):
        assert (code, err) == ((-9, "") if rank == victim else (1, _line(victim, "died", rank)))
    assert {code for code, _ in finish(start(folder, "--iterations=30", processes=processes))} == {0}
    if processes == 2:
        assert_equal_runs(folder, straight)


def test_a_process_that_hangs_counts_as_dead(tmp_path):
    folder = tmp_path / "run"
    run = start(folder)
    wait_for_checkpoint(folder, 3, run)
    run[1].send_signal(signal.SIGSTOP)
    (ended,) = finish(run[:1], MAX_SECONDS)
    assert ended == (1, _line(1, "gave no sign of life for 15 seconds", 0))
    run[1].kill()
    finish(run[1:])


def test_a_signal_to_one_process_saves_and_stops_all(straight, tmp_path):
    folder = tmp_path / "run"
    run = start(folder, "--iterations=30")
    wait_for_checkpoint(folder, 3, run)
    run[1].send_signal(signal.SIGTERM)
    assert finish(run) == [(143, ""), (143, "")]
    assert finish(start(folder, "--iterations=30")) == [(0, ""), (0, "")]
    assert_equal_runs(folder, straight)


def test_a_process_prints_its_own_error_and_the_others_name_it(tmp_path):
    folder = tmp_path / "run"
    assert finish(start(folder, "--iterations=3")) == [(0, ""), (0, "")]
    (folder / "metrics.jsonl").write_text("")  # only process 0 reads it
    (code, err), other = finish(start(folder, "--iterations=6"))
    assert (code, err.splitlines()) == (1, [err.strip()])
    assert "metrics.jsonl: line 1 is damaged or missing" in err
    assert other == (1, _line(0, "stopped", 1))


def test_a_run_of_two_processes_continues_in_one(straight, tmp_path):
    """Metrics equal those of one device up to rounding; see test_sharding."""
    folder = tmp_path / "run"
    assert finish(start(folder, "--iterations=3")) == [(0, ""), (0, "")]
    config = json.loads((folder / "config.json").read_text())
    assert config["devices"] == 2
    sizes = [f"--{name.replace('_', '-')}={config['config'][name]}" for name in ("num_games", "batch_size", "width")]
    sizes += [f"--num-simulations={config['config']['num_simulations']}", "--replay-size=128", "--evaluate-every=2"]
    sizes += ["--updates-per-iteration=1", "--checkpoint-every=3", "--evaluation-share=100", "--iterations=6"]
    done = subprocess.run(
        train_command(GAME, folder, sizes, TRAIN), capture_output=True, text=True, timeout=TIMEOUT_SECONDS
    )
    assert done.returncode == 0, done.stderr
    assert "was made with devices = 2, requested 1; going on with the requested values" in done.stderr
    for ours, theirs in zip(rows(folder), rows(straight), strict=False):
        assert ours["loss"] == pytest.approx(theirs["loss"], rel=1e-4)
